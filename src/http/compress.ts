// Compresses answers in the thread pool, if the client asks for compression. Query answers are not compressed, because
// compression would delay them. Answers of /auth are not compressed either: they may mix secrets with a caller's text,
// and their compressed length would reveal the secrets.
import { promisify } from 'node:util'
import { brotliCompress, constants, createGzip, gzip } from 'node:zlib'
import type { Transform } from 'node:stream'

export type Encoding = 'br' | 'gzip'

/** Shorter answers fit into two packets anyway. */
const BYTES_MIN = 2_048
/** This quality takes about as long as gzip. The highest quality takes fifty times as long. */
const BROTLI_QUALITY = 4

const [brotli, gzipped] = [promisify(brotliCompress), promisify(gzip)]

/** Returns the encoding that an Accept-Encoding header prefers (RFC 9110 §12.5.3), or null for none. */
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

/** Returns null for a body that is too short to compress. */
export async function compressed(body: string | Buffer, encoding: Encoding): Promise<Buffer | null> {
  if (body.length < BYTES_MIN) return null
  if (encoding === 'gzip') return await gzipped(body)
  return await brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } })
}

/** Compresses a stream with gzip, and sends the compressed data after each part. */
export function streamCompressor(): Transform {
  return createGzip({ flush: constants.Z_SYNC_FLUSH })
}
