// Sends bytes that are the same for every client, such as the files of the pages. All answers share one buffer, and a
// client gets the next slice when it has read most of the slice before. So an answer that nobody reads takes no memory.
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'

const SLICE_BYTES = 32_768

/** Sends the bytes. Nobody may change them afterwards. */
export function sendShared(reply: FastifyReply, bytes: Buffer): FastifyReply {
  reply.header('content-length', bytes.length)
  return reply.send(bytes.length <= SLICE_BYTES ? bytes : slicesOf(bytes))
}

function slicesOf(bytes: Buffer): Readable {
  let at = 0
  return new Readable({
    highWaterMark: SLICE_BYTES,
    read() {
      this.push(at < bytes.length ? bytes.subarray(at, (at += SLICE_BYTES)) : null)
    },
  })
}

/** Loads on the first call, and returns the same to every later call. A failed load is not cached. */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined
  return () =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined
      throw error
    }))
}
