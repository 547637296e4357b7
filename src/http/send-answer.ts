// Sends answers. The schema of the route parses most of them, so that undeclared fields are not sent.
import { once } from 'node:events'
import { pipeline, Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Route } from '../contract/route-type.ts'
import { mapInSlices } from '../event-loop-slices.ts'
import { hangUpOf } from '../hang-up.ts'
import type { LentJson, Prebuilt, Streamed } from '../operations/operation-types.ts'
import { isLent, ownJson } from '../operations/prebuilt-json.ts'
import { compressed, streamCompressor, type Encoding } from './compress.ts'
import { holdBytes } from './held-bytes.ts'
import { slicesOf } from './shared-bytes.ts'

/**
 * Lent JSON up to this size is copied, so that its memory can be released at once. Copying more would delay other
 * requests.
 */
const OWN_BYTES_MAX = 256 * 1024

export const JSON_TYPE = 'application/json; charset=utf-8'

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
  if (route.answer instanceof z.ZodArray && Array.isArray(value) && value.length > 1)
    return answerList(reply, route.status ?? 200, route.answer, value, encoding)
  const sent: unknown = route.answer.parse(value)
  const status = route.startsJob === true && hasJob(sent) ? 202 : (route.status ?? 200)
  return sendCompressed(reply, status, JSON.stringify(sent), {}, encoding)
}

/**
 * Parses and writes one element after the other, and lets other requests run in between, because a list may have
 * megabytes. Throws HungUp if the caller hangs up meanwhile.
 */
async function answerList(
  reply: FastifyReply,
  status: number,
  schema: z.ZodArray,
  values: readonly unknown[],
  encoding: Encoding | null,
): Promise<FastifyReply> {
  const textOf = (value: unknown, n: number): Buffer => {
    const [sent] = schema.parse([value])
    return Buffer.from(`${n === 0 ? '[' : ','}${JSON.stringify(sent)}`)
  }
  const texts = await mapInSlices(values, textOf, hangUpOf(reply.raw))
  const parts = [...texts, Buffer.from(']')]
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  if (length <= COPIED_BYTES_MAX) return await sendCompressed(reply, status, Buffer.concat(parts), {}, encoding)
  holdBytes(reply, length)
  return reply.code(status).headers(headersOf()).header('content-length', length).send(slicesOf(parts))
}

/** A longer list is sent without a copy, so it is not compressed. */
const COPIED_BYTES_MAX = 4 * 1024 * 1024

/** Answers 304 if the caller already has the JSON. */
export function answerPrebuilt(
  reply: FastifyReply,
  status: number,
  value: Prebuilt,
  ifNoneMatch: string | undefined,
  encoding: Encoding | null = null,
): FastifyReply | Promise<FastifyReply> {
  const headers: Record<string, string> = { ...value.headers }
  if (isLent(value.json) && value.json.byteLength > OWN_BYTES_MAX) return sendLent(reply, status, value.json, headers)
  const json = ownJson(value.json)
  if (value.etag === undefined) return sendCompressed(reply, status, json, headers, encoding)
  headers['etag'] = value.etag
  if (!matches(value.etag, ifNoneMatch)) return sendCompressed(reply, status, json, headers, encoding)
  return reply.code(304).headers(headers).send()
}

/** Throws the error if reading fails before the first part. */
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
      // If the stream fails, pipeline() ends the compressor with the same error, which ends the response.
      .send(isGzipped ? pipeline(stream, streamCompressor(), () => undefined) : stream)
  )
}

/** Headers in `own` replace the usual ones. */
export function headersOf(own: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { 'content-type': JSON_TYPE }
  if (own['cache-control'] === undefined) headers['cache-control'] = 'no-store'
  return Object.assign(headers, own)
}

export function isPrebuilt(value: unknown): value is Prebuilt {
  return typeof value === 'object' && value !== null && 'json' in value
}

/** If `encoding` is null, sends the JSON immediately and returns no promise. */
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
    // The compressed answer has other bytes, so it needs another ETag or a weak one (RFC 9110 §8.8.1).
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

function sendLent(
  reply: FastifyReply,
  status: number,
  json: LentJson,
  headers: Readonly<Record<string, string>>,
): FastifyReply {
  holdBytes(reply, json.byteLength, () => json.release())
  return reply
    .code(status)
    .headers(headersOf(headers))
    .header('content-length', json.byteLength)
    .send(slicesOf(json.parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))))
}

function hasJob(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'jobId' in value
}

/** Compares weakly (RFC 9110 §13.1.2). */
function matches(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) return false
  const bare = (tag: string) => tag.trim().replace(/^W\//, '')
  return ifNoneMatch.trim() === '*' || ifNoneMatch.split(',').some((tag) => bare(tag) === bare(etag))
}
