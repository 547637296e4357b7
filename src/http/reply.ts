// Sends answers and refusals; the only file that turns an AppError into a status. An answer passes through its schema,
// so undeclared fields never leave. Any other error is reported by its request id only.
import { once } from 'node:events'
import { pipeline, Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import type { Route } from '../contract/route.ts'
import type { Code } from '../errors.ts'
import { AppError, STATUS } from '../errors.ts'
import type { Prebuilt, Streamed } from '../operations/definitions.ts'
import { compressed, streamCompressor, type Encoding } from './compress.ts'
import { HungUp } from '../hang-up.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends a handler's value as its route declares. */
export function answer(
  reply: FastifyReply,
  route: Route,
  value: unknown,
  encoding: Encoding | null = null,
): FastifyReply | Promise<FastifyReply> {
  if (route.answer === null)
    return reply
      .code(route.status ?? 204)
      .header('cache-control', 'no-store')
      .send()
  const sent: unknown = route.answer.parse(value)
  const status = route.startsJob === true && hasJob(sent) ? 202 : (route.status ?? 200)
  return sendCompressed(reply, status, JSON.stringify(sent), {}, encoding)
}

/** Sends JSON that a room has written, or 304 if the caller already has it. */
export function answerPrebuilt(
  reply: FastifyReply,
  status: number,
  value: Prebuilt,
  ifNoneMatch: string | undefined,
  encoding: Encoding | null = null,
): FastifyReply | Promise<FastifyReply> {
  const headers: Record<string, string> = { ...value.headers }
  if (value.etag === undefined) return sendCompressed(reply, status, value.json, headers, encoding)
  headers['etag'] = value.etag
  if (!matches(value.etag, ifNoneMatch)) return sendCompressed(reply, status, value.json, headers, encoding)
  return reply.code(304).headers(headers).send()
}

/** Streams a file with backpressure. Errors before the first part are thrown. */
export async function answerStreamed(
  reply: FastifyReply,
  { contentType, filename, parts }: Streamed,
  isGzipped: boolean,
): Promise<FastifyReply> {
  const stream = Readable.from(parts)
  await once(stream, 'readable')
  return (
    reply
      .code(200)
      .headers({
        'content-type': contentType,
        'content-disposition': `attachment; filename="${filename}"`,
        'cache-control': 'no-store',
        vary: 'accept-encoding',
        ...(isGzipped && { 'content-encoding': 'gzip' }),
      })
      // A failing stream ends the compressor with its error, and so the response.
      .send(isGzipped ? pipeline(stream, streamCompressor(), () => undefined) : stream)
  )
}

/** Sends a refusal or failure. An internal error is logged under the request's id and answered as INTERNAL. */
export function refuse(reply: FastifyReply, log: Logger, error: unknown): FastifyReply {
  const { status, code, headers, json } = refusalFor(error, log, reply.request.id)
  reply.request.refusal = code
  return reply.code(status).headers(headers).send(json)
}

/** What a refused or failed request is answered. */
export interface Refusal {
  readonly status: number
  readonly code: Code
  readonly headers: Readonly<Record<string, string>>
  readonly json: string
}

/** Reads an error as refuse() answers it. */
export function refusalFor(error: unknown, log: Logger, requestId: string): Refusal {
  const refusal = read(error, log, requestId)
  const headers: Record<string, string> = { ...refusal.headers }
  if (refusal.code === 'UNAUTHENTICATED') headers['www-authenticate'] = 'Bearer realm="vitrine"'
  const retryAfter = refusal.extra['retryAfter']
  if (typeof retryAfter === 'number') headers['retry-after'] = String(retryAfter)
  const body = { error: refusal.message, code: refusal.code, ...refusal.extra }
  return { status: STATUS[refusal.code], code: refusal.code, headers: headersOf(headers), json: JSON.stringify(body) }
}

/** The headers of a JSON answer: its own, and those of every answer unless it says otherwise. */
export function headersOf(own: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { 'content-type': JSON_TYPE }
  if (own['cache-control'] === undefined) headers['cache-control'] = 'no-store'
  return Object.assign(headers, own)
}

export function isPrebuilt(value: unknown): value is Prebuilt {
  return typeof value === 'object' && value !== null && 'json' in value
}

/** The body of the refusal, for answers without Fastify. */
export function errorBodyOf(error: unknown, log: Logger, requestId: string): string {
  const { message, code, extra } = read(error, log, requestId)
  return JSON.stringify({ error: message, code, ...extra })
}

/** Maps any error to an AppError: Fastify's errors by their codes, unknown errors to INTERNAL. */
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

/** Sends JSON, compressed if the client asked for it. `encoding` null: as it is, at once. */
function sendCompressed(
  reply: FastifyReply,
  status: number,
  json: string | Buffer,
  headers: Record<string, string>,
  encoding: Encoding | null,
): FastifyReply | Promise<FastifyReply> {
  if (encoding === null) return sendJson(reply, status, json, headers)
  return compressed(json, encoding).then((body) => {
    const vary = { ...headers, vary: [headers['vary'], 'Accept-Encoding'].filter(Boolean).join(', ') }
    if (body === null) return sendJson(reply, status, json, vary)
    // The same answer in other bytes: only a weak tag may stand for both (RFC 9110 §8.8.1).
    const etag = headers['etag']
    const weak = etag === undefined || etag.startsWith('W/') ? {} : { etag: `W/${etag}` }
    return sendJson(reply, status, body, { ...vary, ...weak, 'content-encoding': encoding })
  })
}

function sendJson(
  reply: FastifyReply,
  status: number,
  json: string | Buffer,
  headers: Readonly<Record<string, string>>,
): FastifyReply {
  return reply.code(status).headers(headersOf(headers)).send(json)
}

function hasJob(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'jobId' in value
}

/** RFC 9110 §13.1.2: a list of entity tags, compared weakly. */
function matches(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) return false
  const bare = (tag: string) => tag.trim().replace(/^W\//, '')
  return ifNoneMatch.trim() === '*' || ifNoneMatch.split(',').some((tag) => bare(tag) === bare(etag))
}

const FASTIFY: Readonly<Record<string, readonly [Code, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'BODY_TOO_LARGE',
    'The body is too large. The limit is 1 MiB, for an exposure 8 MiB, for a sign-in 64 KiB.',
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be JSON. Send it with Content-Type: application/json.',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['INVALID_REQUEST', 'The length of the body differs from Content-Length.'],
  FST_ERR_BAD_URL: ['NOT_FOUND', 'There is no such route.'],
  FST_ERR_MAX_PARAM_LENGTH: ['NOT_FOUND', 'There is no such route.'],
}

/** Fastify's own refusals of bodies. We replace their texts, because JSON.parse quotes the input. */
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

/** The refusal of a body that JSON.parse does not take. */
export function notJson(): AppError {
  return new AppError('INVALID_REQUEST', 'The body is not valid JSON. Check quotes, commas and brackets.', BODY)
}

const BODY = {
  extra: { details: ['body: not valid JSON'], issues: [{ path: [], message: 'not valid JSON' }] },
} as const
