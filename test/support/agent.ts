// Sends messages to the agent connector as raw HTTP, in both generations of the protocol. The answer is JSON or a
// stream of events.
import type { TestApp } from './app.ts'

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly messages: readonly any[]
  /** The last message of the answer. */
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any
}

export interface AskOptions {
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly id?: unknown
  /** More fields of `_meta`. The version, the capabilities and the client are always there. */
  readonly meta?: object
  readonly signal?: AbortSignal
}

export const ERAS = ['modern', 'legacy'] as const
export type Era = (typeof ERAS)[number]

const META = 'io.modelcontextprotocol/'
export const MODERN = '2026-07-28'

export class Agent {
  readonly #app: TestApp
  readonly #token: string | undefined

  constructor(app: TestApp, token?: string) {
    this.#app = app
    this.#token = token
  }

  ask(era: Era, method: string, params: object = {}, options: AskOptions = {}): Promise<Reply> {
    return this.post(
      messageOf(era, method, params, options),
      { ...headersOf(era, method, params), ...options.headers },
      options,
    )
  }

  call(era: Era, name: string, args: object = {}, options: AskOptions = {}): Promise<Reply> {
    return this.ask(era, 'tools/call', { name, arguments: args }, options)
  }

  /** Calls a tool, and returns the structured content of the answer. */
  // oxlint-disable-next-line typescript/no-explicit-any
  async tool(name: string, args: object = {}, era: Era = 'modern'): Promise<any> {
    const reply = await this.call(era, name, args)
    if (reply.json?.result === undefined) throw new Error(`${name}: ${reply.status} ${reply.text}`)
    return reply.json.result.structuredContent
  }

  /** Sends a string unchanged, and any other body as JSON. Leaves out headers that are undefined. */
  async post(
    body: unknown,
    headers: Readonly<Record<string, string | undefined>> = {},
    { signal }: Pick<AskOptions, 'signal'> = {},
  ): Promise<Reply> {
    const all = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
      ...headers,
    }
    const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const response = await fetch(`${this.#app.url}/mcp`, {
      method: 'POST',
      headers: given,
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal !== undefined && { signal }),
    })
    const text = await response.text()
    const messages = messagesOf(text, response.headers.get('content-type') ?? '')
    return { status: response.status, headers: response.headers, text, messages, json: messages.at(-1) }
  }
}

export function headersOf(era: Era, method: string, params: object): Record<string, string> {
  if (era === 'legacy') return method === 'initialize' ? {} : { 'mcp-protocol-version': '2025-11-25' }
  const name = ['name', 'uri'].map((key) => Reflect.get(params, key)).find((value) => typeof value === 'string')
  return { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...(name !== undefined && { 'mcp-name': name }) }
}

export function messageOf(era: Era, method: string, params: object, { id = 1, meta = {} }: AskOptions = {}): object {
  const own = {
    [`${META}protocolVersion`]: MODERN,
    [`${META}clientCapabilities`]: {},
    [`${META}clientInfo`]: { name: 'test-agent', version: '1.2.3' },
  }
  const _meta = { ...(era === 'modern' && own), ...meta }
  const sent = Object.keys(_meta).length > 0 ? { ...params, _meta } : params
  return { jsonrpc: '2.0', id, method, params: sent }
}

function messagesOf(text: string, type: string): unknown[] {
  if (type.startsWith('text/event-stream')) {
    return [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data))
  }
  try {
    return [JSON.parse(text)]
  } catch {
    return []
  }
}
