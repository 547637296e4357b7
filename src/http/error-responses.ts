// Converts errors to answers of the REST API. The code of an AppError determines the status. The answer to an
// unexpected error contains a fixed text and the request id.
import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { AppError, STATUS, type Code } from '../errors.ts'
import { HungUp } from '../hang-up.ts'
import { headersOf } from './send-answer.ts'

const FASTIFY: Readonly<Record<string, readonly [Code, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'BODY_TOO_LARGE',
    'The body is too large. The limit is 1 MiB, for an exposure 8 MiB, for a sign-in 64 KiB, for a form of OAuth 16 KiB.',
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be JSON. Send it with Content-Type: application/json.',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['INVALID_REQUEST', 'The length of the body differs from Content-Length.'],
  FST_ERR_BAD_URL: ['NOT_FOUND', 'There is no such route.'],
  FST_ERR_MAX_PARAM_LENGTH: ['NOT_FOUND', 'There is no such route.'],
}

export function refuse(reply: FastifyReply, log: Logger, error: unknown): FastifyReply {
  const { status, code, headers, json } = refusalFor(error, log, reply.request.id)
  reply.request.refusal = code
  return reply.code(status).headers(headers).send(json)
}

export interface Refusal {
  readonly status: number
  readonly code: Code
  readonly headers: Readonly<Record<string, string>>
  readonly json: string
}

export function refusalFor(error: unknown, log: Logger, requestId: string): Refusal {
  const refusal = read(error, log, requestId)
  const headers: Record<string, string> = { ...refusal.headers }
  if (refusal.code === 'UNAUTHENTICATED') headers['www-authenticate'] = 'Bearer realm="vitrine"'
  const retryAfter = refusal.extra['retryAfter']
  if (typeof retryAfter === 'number') headers['retry-after'] = String(retryAfter)
  const body = { error: refusal.message, code: refusal.code, ...refusal.extra }
  return { status: STATUS[refusal.code], code: refusal.code, headers: headersOf(headers), json: JSON.stringify(body) }
}

/** For answers without Fastify. */
export function errorBodyOf(error: unknown, log: Logger, requestId: string): string {
  const { message, code, extra } = read(error, log, requestId)
  return JSON.stringify({ error: message, code, ...extra })
}

/** Recognizes errors of Fastify by their codes. Unexpected errors become INTERNAL. */
function read(error: unknown, log: Logger, requestId: string): AppError {
  if (error instanceof AppError && error.code !== 'INTERNAL') return error
  const known = fastifyRefusal(error)
  if (known !== null) return known
  if (!(error instanceof HungUp)) log.error({ requestId, err: error }, 'a defect')
  return new AppError(
    'INTERNAL',
    `The service failed to answer because of a defect. The server log has the details under ${requestId}.`,
    {
      extra: { requestId },
    },
  )
}

/** Returns null if it is not an error of Fastify. Replaces its text, because JSON.parse quotes the input. */
function fastifyRefusal(error: unknown): AppError | null {
  if (!(error instanceof Error)) return null
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const known = FASTIFY[code]
  if (known !== undefined) return new AppError(known[0], known[1], known[0] === 'INVALID_REQUEST' ? BODY : {})
  if ('statusCode' in error && error.statusCode === 400) {
    return notJson()
  }
  return null
}

export function notJson(): AppError {
  return new AppError('INVALID_REQUEST', 'The body is not valid JSON. Check quotes, commas and brackets.', BODY)
}

const BODY = {
  extra: { details: ['body: not valid JSON'], issues: [{ path: [], message: 'not valid JSON' }] },
} as const
