// Sends bytes that are the same for every client, such as the files of the console. All answers share one buffer. A
// client gets the next slice when it has read most of the last one, so an unread answer needs no memory.
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'

const SLICE_BYTES = 32_768

/** The bytes must not be changed afterwards. */
export function sendShared(reply: FastifyReply, bytes: Buffer): FastifyReply {
  reply.header('content-length', bytes.length)
  return reply.send(bytes.length <= SLICE_BYTES ? bytes : slicesOf([bytes]))
}

/** Returns a stream of slices, without copying. */
export function slicesOf(parts: readonly Buffer[]): Readable {
  const slices = sliced(parts)
  return new Readable({
    highWaterMark: SLICE_BYTES,
    read() {
      this.push(slices.next().value ?? null)
    },
  })
}

function* sliced(parts: readonly Buffer[]): Generator<Buffer, undefined> {
  for (const part of parts)
    for (let at = 0; at < part.length; at += SLICE_BYTES) yield part.subarray(at, at + SLICE_BYTES)
}

/** Returns a function that loads the value at its first call. A failed load is not cached. */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined
  return () =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined
      throw error
    }))
}
