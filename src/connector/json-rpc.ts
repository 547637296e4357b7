// JSON-RPC messages of the Model Context Protocol. Recognizes a plain `tools/call`, and writes results and errors. In
// case of doubt, toolCallOf() leaves a message to the SDK.
import type { IncomingHttpHeaders } from 'node:http'
import { clientOf } from '../auth/client-name-and-address.ts'
import { VERSION } from '../contract/version.ts'
import { isObject, type JsonObject } from './json-object.ts'

export type MessageId = string | number

export interface ToolCall {
  readonly id: MessageId
  /** True for the stateless protocol of 2026-07-28, and false for versions that begin with `initialize`. */
  readonly isModern: boolean
  readonly name: string
  readonly args: JsonObject
  /** Set if the client asks for progress notifications, which must contain this token. */
  readonly progressToken: MessageId | undefined
  /** `name/version`. */
  readonly client: string | undefined
}

const MODERN_VERSION = '2026-07-28'
const LEGACY_VERSIONS: ReadonlySet<string> = new Set([
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
  '2024-10-07',
])

const META = 'io.modelcontextprotocol/'
export const SERVER_INFO = { name: 'vitrine', title: 'Vitrine', version: VERSION } as const

const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params'])
const PARAM_FIELDS: ReadonlySet<string> = new Set(['name', 'arguments', '_meta'])

/** Returns null for any other message and in case of doubt. Then the SDK answers the message. */
export function toolCallOf(headers: IncomingHttpHeaders, body: unknown): ToolCall | null {
  if (!isObject(body) || body['jsonrpc'] !== '2.0' || body['method'] !== 'tools/call') return null
  const { id, params } = body
  if (!isId(id) || !isObject(params) || !hasOnly(body, MESSAGE_FIELDS) || !hasOnly(params, PARAM_FIELDS)) return null
  const { name, arguments: args = {}, _meta: meta = {} } = params
  if (typeof name !== 'string' || !isObject(args) || !isObject(meta)) return null
  const progressToken = meta['progressToken']
  if (progressToken !== undefined && !isId(progressToken)) return null
  const isModern = `${META}protocolVersion` in meta
  if (!(isModern ? isModernCall(headers, name, meta) : isLegacyCall(headers))) return null
  const client = isModern ? clientInfoOf(meta[`${META}clientInfo`]) : undefined
  return { id, isModern, name, args, progressToken, client }
}

/** In the modern protocol, headers repeat fields of the body, so that proxies can read them. Both must agree. */
function isModernCall(headers: IncomingHttpHeaders, name: string, meta: JsonObject): boolean {
  const capabilities = meta[`${META}clientCapabilities`]
  const info = meta[`${META}clientInfo`]
  return (
    meta[`${META}protocolVersion`] === MODERN_VERSION &&
    headers['mcp-protocol-version'] === MODERN_VERSION &&
    headers['mcp-method'] === 'tools/call' &&
    headers['mcp-name'] === name &&
    isObject(capabilities) &&
    Object.values(capabilities).every(isObject) &&
    (info === undefined || clientInfoOf(info) !== undefined) &&
    !(`${META}logLevel` in meta)
  )
}

/** Like the SDK, requires that the client accepts JSON and event streams, and sends no unknown version. */
function isLegacyCall(headers: IncomingHttpHeaders): boolean {
  const { accept = '', 'mcp-protocol-version': version } = headers
  if (!accept.includes('application/json') || !accept.includes('text/event-stream')) return false
  return version === undefined || (typeof version === 'string' && LEGACY_VERSIONS.has(version))
}

/** Returns `name/version`, or undefined if the client's `info` about itself has another shape. */
export function clientInfoOf(info: unknown): string | undefined {
  if (!isObject(info)) return undefined
  const { name, version } = info
  if (typeof name !== 'string' || typeof version !== 'string') return undefined
  return clientOf(`${name}/${version}`)
}

export function isId(value: unknown): value is MessageId {
  return typeof value === 'string' || Number.isSafeInteger(value)
}

function hasOnly(value: JsonObject, fields: ReadonlySet<string>): boolean {
  return Object.keys(value).every((key) => fields.has(key))
}

export interface ToolAnswer {
  readonly json: string
  readonly isError: boolean
  /** A sentence for people. */
  readonly aside?: string
}

export function contentOf({ json, aside }: ToolAnswer): { readonly type: 'text'; readonly text: string }[] {
  const texts = aside === undefined ? [json] : [json, aside]
  return texts.map((text) => ({ type: 'text', text }))
}

const MODERN_END = `,"resultType":"complete","_meta":${JSON.stringify({ [`${META}serverInfo`]: SERVER_INFO })}`

/** Both `content` and `structuredContent` contain the JSON, because some clients show the model only one of them. */
export function resultMessage(call: Pick<ToolCall, 'id' | 'isModern'>, answer: ToolAnswer): string {
  const { json, isError } = answer
  const content = JSON.stringify(contentOf(answer))
  const end = `${isError ? ',"isError":true' : ''}${call.isModern ? MODERN_END : ''}`
  return `{"jsonrpc":"2.0","id":${JSON.stringify(call.id)},"result":{"content":${content},"structuredContent":${json}${end}}}`
}

export function progressMessage(progressToken: MessageId, progress: number, message: string): string {
  const params = { progressToken, progress, message }
  return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })
}

/** `refused` is in the range that JSON-RPC reserves for servers. */
export const RPC = { parse: -32700, invalidRequest: -32600, noMethod: -32601, refused: -32000 } as const

/** `id` is the id of the refused message, or null if it could not be read. */
export function errorMessage(code: number, message: string, data?: JsonObject, id: MessageId | null = null): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } })
}
