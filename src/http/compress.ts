// Compresses answers in the thread pool, if the client accepts this. Query answers are not compressed, because this
// would delay them. Answers of /auth are not compressed: they may contain both a secret and a caller's text, and then
// the compressed length could reveal the secret (CRIME, BREACH).
import { promisify } from 'node:util'
import { brotliCompress, constants, createGzip, gzip } from 'node:zlib'
import type { Transform } from 'node:stream'

export type Encoding = 'br' | 'gzip'

/** A shorter answer fits into two packets anyway. */
const BYTES_MIN = 2_048
/** This quality takes about as long as gzip. The best quality takes fifty times as long. */
const BROTLI_QUALITY = 4

const [brotli, gzipped] = [promisify(brotliCompress), promisify(gzip)]

/** Returns the encoding that the header Accept-Encoding prefers (RFC 9110 §12.5.3). Null for none. */
export function encodingOf(
  accepted: string | undefined,
  offered: readonly Encoding[] = ['br', 'gzip'],
): Encoding | null {
  if (accepted === undefined) return null
  const weights = new Map(accepted.toLowerCase().split(',').map(weightOf))
  const weight = (name: string) => weights.get(name) ?? weights.get('*') ?? 0
  const [best] = offered.filter((each) => weight(each) > 0).sort((a, b) => weight(b) - weight(a))
  return best ?? null
}

function weightOf(part: string): [string, number] {
  const [name = '', ...parameters] = part.split(';').map((each) => each.trim())
  const q = parameters.find((each) => each.startsWith('q='))?.slice(2)
  return [name, q === undefined ? 1 : Number(q) || 0]
}

/** Returns null if the body is too short. */
export async function compressed(body: string | Buffer, encoding: Encoding): Promise<Buffer | null> {
  if (body.length < BYTES_MIN) return null
  if (encoding === 'gzip') return await gzipped(body)
  return await brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } })
}

/** Each part of the stream is sent immediately. */
export function streamCompressor(): Transform {
  return createGzip({ flush: constants.Z_SYNC_FLUSH })
}
