// Handles POST …/query with a known API key without Fastify, which otherwise takes half of the service's time for a small query
// (docs/decisions/0029-a-short-path-for-queries.md). It takes only requests that pass isUsual(), and decides before it reads the
// body. Every other request takes the ordinary path. test/door/quick-query.test.ts sends the same requests through both.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Authenticator } from '../auth/authenticate.ts'
import type { Arrival, Trace } from '../auth/caller.ts'
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

export interface QuickQuery {
  readonly authenticator: Pick<Authenticator, 'known'>
  readonly id: string
  readonly route: Route
  readonly operation: Operation
  /** Reads a body as the ordinary path does. Throws its refusals. */
  readonly parse: (body: Buffer) => unknown
  /** Answers an error as the ordinary path does. */
  readonly refusal: (error: unknown, requestId: string) => Refusal
  /** Called after each answer. Null if metrics and access log are off. */
  readonly answered: ((answered: Answered) => void) | null
  readonly isTraced: boolean
}

/** Longer bodies take the ordinary path, which scans them in slices. */
const BODY_BYTES_MAX = 32_768
const JSON_TYPES: ReadonlySet<string> = new Set(['application/json', 'application/json; charset=utf-8'])

interface Sent {
  readonly status: number
  readonly code: string | null
}

/** Returns true if it handles the request. Otherwise the body is still unread. */
export type Take = (request: IncomingMessage, response: ServerResponse, requestId: string) => boolean

export function quickQuery(door: QuickQuery): Take {
  const { authenticator, route, id } = door
  const form = pathForm(route.path)
  return (request, response, requestId) => {
    const { method, url = '', headers } = request
    const { authorization } = headers
    if (method !== route.method || authorization === undefined || !isUsual(request)) return false
    const [, teamId = '', datasourceId = ''] = form.exec(url) ?? []
    if (teamId === '') return false
    const caller = authenticator.known(authorization, headers['user-agent'])
    const knownAt = performance.now()
    if (caller === null || !isAdmitted(caller, knownAt, route)) return false
    const trace: Trace | undefined = door.isTraced ? { query: null } : undefined
    const arrival: Arrival = {
      caller,
      knownAt,
      via: 'REST',
      requestId,
      trace,
      signal: hangUpOf(response),
      client: clientOf(headers['user-agent']),
      address: undefined,
    }
    readBody(request, Number(headers['content-length']), (body) => {
      const params = { teamId, id: datasourceId }
      void answer(door, arrival, params, body, response, requestId).then(({ status, code }) => {
        const durationMs = performance.now() - knownAt
        const traceparent = headers['traceparent']
        const traced = { trace, ...(typeof traceparent === 'string' && { traceparent }) }
        door.answered?.({ requestId, method, operation: id, status, code, durationMs, caller, params, ...traced })
      })
    })
    return true
  }
}

/** Path parameters hold only characters of ids. A URL with percent-encoding or a query string takes the ordinary path. */
function pathForm(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, String.raw`([\w-]{1,200})`)}$`)
}

/** HTTP/1.1, one plain JSON body of known length. */
function isUsual({ headers, httpVersionMinor, httpVersionMajor }: IncomingMessage): boolean {
  const length = headers['content-length'] ?? ''
  return (
    httpVersionMajor === 1 &&
    httpVersionMinor === 1 &&
    JSON_TYPES.has(headers['content-type'] ?? '') &&
    LENGTH.test(length) &&
    Number(length) <= BODY_BYTES_MAX &&
    headers['transfer-encoding'] === undefined &&
    headers['content-encoding'] === undefined &&
    // A cross-origin request may need CORS headers.
    headers.origin === undefined &&
    headers.expect === undefined &&
    headers.upgrade === undefined
  )
}

const LENGTH = /^[1-9]\d{0,4}$/

/** Calls `done` with the whole body. If the client disconnects first, does not call it. */
function readBody(request: IncomingMessage, length: number, done: (body: Buffer) => void): void {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const [only] = parts
    done(only !== undefined && parts.length === 1 ? only : Buffer.concat(parts, length))
  })
}

/** Sends the answer. Returns its status, and the error code if it is a refusal. Never rejects. */
async function answer(
  { operation, parse, refusal, route }: QuickQuery,
  arrival: Arrival,
  params: Readonly<Record<string, string>>,
  body: Buffer,
  response: ServerResponse,
  requestId: string,
): Promise<Sent> {
  try {
    const value = await operation(arrival, { params, body: parse(body) })
    if (!isPrebuilt(value)) throw new TypeError('the query operation must return serialized JSON')
    const status = route.status ?? 200
    send(response, requestId, status, headersOf(value.headers), value.json)
    return { status, code: null }
  } catch (error) {
    const { status, code, headers, json } = refusal(error, requestId)
    send(response, requestId, status, headers, json)
    return { status, code }
  }
}

/** Sends headers and body in one write: Node collects what is written before the end of a tick. */
function send(
  response: ServerResponse,
  requestId: string,
  status: number,
  headers: Readonly<Record<string, string>>,
  json: Prebuilt['json'],
): void {
  if (response.destroyed) return
  const lines = ['x-content-type-options', 'nosniff', REQUEST_ID, requestId]
  for (const name in headers) lines.push(name, headers[name] ?? '')
  lines.push('content-length', String(isLent(json) ? json.byteLength : Buffer.byteLength(json)))
  response.writeHead(status, lines)
  if (!isLent(json)) return void response.end(json)
  // The event comes after the last write has ended, or the socket is closed: only then does nobody read the memory.
  response.once('close', () => json.release())
  for (const part of json.parts) response.write(part)
  response.end()
}
