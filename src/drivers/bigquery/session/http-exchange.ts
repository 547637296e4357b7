// Sends one HTTP request and reads a response of limited size. Follows no redirects and decodes no compression. Every
// request has a signal.
import type { Dispatcher } from 'undici'
import { ErrorResponse, errorResponseOf } from './error-response.ts'

export interface Request {
  readonly method: 'GET' | 'POST'
  /** With the query string. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Limits the bytes of a 2xx response. A longer response is Unreadable. */
  readonly bytesMax: number
}

/** The response is too long, or does not have BigQuery's format. The message says which. */
export class Unreadable extends Error {
  override readonly name = 'Unreadable'
}

/** Only this much of an error response is read. BigQuery's own error responses have a few hundred bytes. */
const ERROR_BYTES_MAX = 64 * 1024
const RETRY_AFTER_MS_MAX = 60_000

/**
 * Returns the body of a 2xx response. Throws ErrorResponse for another status. Throws Unreadable, the error of the
 * socket, or the signal's reason.
 */
export async function sendRequest(dispatcher: Dispatcher, request: Request, signal: AbortSignal): Promise<Buffer> {
  signal.throwIfAborted()
  const { method, path, headers, body, bytesMax } = request
  const answer = await dispatcher.request({
    method,
    path,
    headers: { ...headers, accept: 'application/json', 'user-agent': 'vitrine' },
    ...(body === undefined ? {} : { body }),
    signal,
  })
  const isSuccess = answer.statusCode >= 200 && answer.statusCode < 300
  const bytes = await readAll(answer.body, isSuccess ? bytesMax : ERROR_BYTES_MAX, isSuccess)
  if (isSuccess) return bytes
  throw errorResponseOf(answer.statusCode, jsonOf(bytes), retryAfterMs(answer.headers['retry-after']))
}

export function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** If the body is too long, throws Unreadable or, if `whole` is false, cuts the body. */
async function readAll(body: Dispatcher.ResponseData['body'], bytesMax: number, whole: boolean): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  // Leaving the loop destroys the body and its socket.
  for await (const part of body) {
    if (!Buffer.isBuffer(part)) throw new Unreadable('a body that is not bytes')
    length += part.length
    if (length > bytesMax) {
      if (whole) throw new Unreadable(`a response over ${bytesMax} bytes`)
      break
    }
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function retryAfterMs(header: string | string[] | undefined): number | null {
  const seconds = typeof header === 'string' && /^\d{1,6}$/.test(header) ? Number(header) : null
  return seconds === null ? null : Math.min(seconds * 1000, RETRY_AFTER_MS_MAX)
}

const RETRIED_STATUS = new Set([429, 500, 502, 503, 504])
const RETRIED_REASON = new Set(['rateLimitExceeded', 'backendError', 'jobRateLimitExceeded', 'jobBackendError'])
const NEVER_RETRIED = new Set(['quotaExceeded', 'invalidQuery'])
/** Errors of a socket after which the request is repeated. Usually the server had closed a keep-alive socket. */
const RETRIED_CODE = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/** True if the same request may succeed a little later. Every request of the service can be repeated safely. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof ErrorResponse) {
    if (NEVER_RETRIED.has(error.reason)) return false
    return RETRIED_STATUS.has(error.status) || RETRIED_REASON.has(error.reason)
  }
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' && RETRIED_CODE.has(code)
}
