// Fastify takes half of the service's time for a small query. So a usual POST …/query with a known API key is answered
// without Fastify (docs/decisions/0029-a-short-path-for-queries.md). Usual queries come from node:http (quickQuery()
// below), or from query-connection.ts, which reads the socket itself.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Authenticator } from '../auth/authenticate.ts'
import type { Arrival, KeyCaller, Trace } from '../auth/caller.ts'
import { clientOf } from '../auth/client-name-and-address.ts'
import type { Route } from '../contract/route-type.ts'
import { isAdmitted } from '../operations/admit.ts'
import type { Operation } from '../operations/order-of-checks.ts'
import type { Prebuilt } from '../operations/operation-types.ts'
import { isLent } from '../operations/prebuilt-json.ts'
import { hangUpOf } from '../hang-up.ts'
import type { Answered } from './access-log.ts'
import type { Refusal } from './error-responses.ts'
import { headersOf, isPrebuilt } from './send-answer.ts'
import { REQUEST_ID } from './request-id.ts'
import { isUsualBody, pathForm, type UsualHead } from './usual-head.ts'

export interface QuickQuery {
  readonly authenticator: Pick<Authenticator, 'known'>
  readonly id: string
  readonly route: Route
  readonly operation: Operation
  /** Parses a body as Fastify would, and throws the same refusals. */
  readonly parse: (body: Buffer) => unknown
  /** Returns the answer that Fastify would send for an error. */
  readonly refusal: (error: unknown, requestId: string) => Refusal
  /** Reports an answer to the metrics, the access log and the tracing. Null if all three are off. */
  readonly answered: ((answered: Answered) => void) | null
  readonly isTraced: boolean
}

type Asked = Omit<UsualHead, 'length' | 'requestId'>

const NO_HEADERS: Readonly<Record<string, string>> = {}

export interface Sender {
  /** Sends `headers` in addition to the headers of every JSON answer. */
  send(requestId: string, status: number, headers: Readonly<Record<string, string>>, json: Prebuilt['json']): void
}

/** The body may not be read yet. */
export interface Begun {
  readonly asked: Asked
  readonly caller: KeyCaller
  /** By performance.now(). */
  readonly knownAt: number
}

/** Returns null if the request must go through Fastify. */
export function begin({ authenticator, route }: QuickQuery, asked: Asked): Begun | null {
  const caller = authenticator.known(asked.authorization, asked.userAgent)
  const knownAt = performance.now()
  return caller === null || !isAdmitted(caller, knownAt, route) ? null : { asked, caller, knownAt }
}

/** Never rejects. */
export async function finish(
  door: QuickQuery,
  { asked, caller, knownAt }: Begun,
  body: Buffer,
  requestId: string,
  signal: AbortSignal,
  sender: Sender,
): Promise<void> {
  const { operation, parse, refusal, route } = door
  const params = { teamId: asked.teamId, id: asked.datasourceId }
  const trace: Trace | undefined = door.isTraced ? { query: null } : undefined
  const [via, client, address] = ['REST', clientOf(asked.userAgent), undefined] as const
  const arrival: Arrival = { caller, knownAt, via, requestId, trace, signal, client, address }
  let status: number = route.status ?? 200
  let code: string | null = null
  try {
    const value = await operation(arrival, { params, body: parse(body) })
    if (!isPrebuilt(value)) throw new TypeError('the query operation must return serialized JSON')
    sender.send(requestId, status, value.headers ?? NO_HEADERS, value.json)
  } catch (error) {
    const refused = refusal(error, requestId)
    status = refused.status
    code = refused.code
    sender.send(requestId, status, refused.headers, refused.json)
  }
  // Like Fastify, report nothing if the caller hung up.
  if (door.answered === null || signal.aborted) return
  const durationMs = performance.now() - knownAt
  const { traceparent } = asked
  const traced = { trace, ...(traceparent !== undefined && { traceparent }) }
  const about = { requestId, method: route.method, operation: door.id, status, code, durationMs }
  door.answered({ ...about, caller, params, ...traced })
}

/** Returns false if the request must go through Fastify. Then its body has not been read. */
export type Take = (request: IncomingMessage, response: ServerResponse, requestId: string) => boolean

/** `isOpen` is false while answers must say that the connection will close. */
export function quickQuery(door: QuickQuery, isOpen: () => boolean): Take {
  const form = pathForm(door.route.path)
  return (request, response, requestId) => {
    const { method, url = '', headers } = request
    const { authorization, traceparent } = headers
    if (method !== door.route.method || authorization === undefined || !isUsual(request)) return false
    const [, teamId = '', datasourceId = ''] = form.exec(url) ?? []
    if (teamId === '') return false
    const more = {
      userAgent: headers['user-agent'],
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    }
    const begun = begin(door, { teamId, datasourceId, authorization, ...more })
    if (begun === null) return false
    const signal = hangUpOf(response)
    readBody(request, Number(headers['content-length']), (body) => {
      void finish(door, begun, body, requestId, signal, new ResponseSender(response, isOpen))
    })
    return true
  }
}

function isUsual({ headers, httpVersionMinor, httpVersionMajor }: IncomingMessage): boolean {
  return (
    httpVersionMajor === 1 &&
    httpVersionMinor === 1 &&
    isUsualBody(headers['content-type'] ?? '', headers['content-length'] ?? '') &&
    headers['transfer-encoding'] === undefined &&
    headers['content-encoding'] === undefined &&
    // The answer may need CORS headers.
    headers.origin === undefined &&
    headers.expect === undefined &&
    headers.upgrade === undefined
  )
}

/** Never calls `done` if the client disconnects before the whole body has arrived. */
function readBody(request: IncomingMessage, length: number, done: (body: Buffer) => void): void {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const [only] = parts
    done(only !== undefined && parts.length === 1 ? only : Buffer.concat(parts, length))
  })
}

/** Node joins all writes of one tick, so headers and body are sent together. */
class ResponseSender implements Sender {
  readonly #response: ServerResponse
  readonly #isOpen: () => boolean

  constructor(response: ServerResponse, isOpen: () => boolean) {
    this.#response = response
    this.#isOpen = isOpen
  }

  send(requestId: string, status: number, headers: Readonly<Record<string, string>>, json: Prebuilt['json']): void {
    const response = this.#response
    if (response.destroyed) return
    const lines = ['x-content-type-options', 'nosniff', REQUEST_ID, requestId]
    const all = headersOf(headers)
    for (const name in all) lines.push(name, all[name] ?? '')
    lines.push('content-length', String(isLent(json) ? json.byteLength : Buffer.byteLength(json)))
    if (!this.#isOpen()) lines.push('connection', 'close')
    response.writeHead(status, lines)
    if (!isLent(json)) return void response.end(json)
    // 'close' comes after the last write, or when the socket ends. Then the memory can be used again.
    response.once('close', () => json.release())
    for (const part of json.parts) response.write(part)
    response.end()
  }
}
