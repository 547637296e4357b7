// Limits the bodies of requests, whether they are read or not. Node takes about a microsecond for each chunk of a body,
// also after the answer. So a packet of 10,000 chunks of one byte would delay other requests by 10 ms, and a client could
// send such packets without end.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { bodyChunksOf, endHttpParsing, type BodyChunks } from '../end-http-parsing.ts'

/** A body may have this many chunks, and one more for each BYTES_PER_CHUNK bytes. Clients send a few kB in a chunk. */
const CHUNKS_MAX = 1_000
const BYTES_PER_CHUNK = 64
/**
 * What a client may send, and for how long, after a request was answered before its body was complete. Many clients send
 * the whole body before they read the answer, so the connection must stay open until then.
 */
const LATE = { bytes: 16 << 20, ms: 10_000 }
const CHECK_MS = 100

/** The error of the event `clientError` for a body with too many chunks. */
export class TooManyChunks extends Error {
  override readonly name = 'TooManyChunks'
}

export function limitBodies(server: Server, late = LATE): void {
  const changed = new WeakMap<Socket, BodyChunks>()
  const chunksOf = (socket: Socket): BodyChunks | null => {
    const known = changed.get(socket) ?? bodyChunksOf(socket)
    if (known === null || changed.has(socket)) return known
    changed.set(socket, known)
    // Node's own listener has returned the parser already, and has not used it again.
    socket.once('close', () => known.reset())
    return known
  }
  const limitChunks = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    const chunks = chunksOf(socket)
    let [count, bytes] = [0, 0]
    chunks?.watch((length) => {
      count++
      bytes += length
      if (count <= CHUNKS_MAX + bytes / BYTES_PER_CHUNK) return
      chunks.skip()
      if (response.headersSent) return
      chunks.cut()
      endHttpParsing(socket)
      server.emit('clientError', new TooManyChunks('the body has too many chunks'), socket)
    })
  }
  server.prependListener('request', (request, response) => {
    const { socket, headers } = request
    changed.get(socket)?.reset()
    if (headers['transfer-encoding'] !== undefined) limitChunks(request, response)
    else if (headers['content-length'] === undefined) return
    response.once('close', () => {
      if (request.complete || socket.destroyed) return
      chunksOf(socket)?.skip()
      closeLater(request, late)
    })
  })
}

/** Closes the connection if the rest of the body does not come in time or is too long. */
function closeLater(request: IncomingMessage, { bytes, ms }: typeof LATE): void {
  const { socket } = request
  const [bytesMax, until] = [socket.bytesRead + bytes, performance.now() + ms]
  const check = (): void => {
    if (request.complete || socket.destroyed) return
    if (socket.bytesRead > bytesMax || performance.now() > until) socket.destroy()
    else setTimeout(check, CHECK_MS).unref()
  }
  setTimeout(check, CHECK_MS).unref()
}
