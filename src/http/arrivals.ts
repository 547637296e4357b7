// Tracks which connections have received a complete request. Shutdown waits only for these: a client can open a
// connection and send nothing, and a closing server no longer enforces request timeouts.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface Arrivals {
  /** Destroys connections without a complete request, including idle ones. */
  cutOthers(): void
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export function arrivalsOf(server: Server): Arrivals {
  /** The latest request per connection; null before the first. */
  const last = new Map<Socket, Exchange | null>()
  server.on('connection', (socket) => {
    last.set(socket, null)
    socket.once('close', () => last.delete(socket))
  })
  server.on('request', (request, response) => last.set(request.socket, { request, response }))
  return {
    cutOthers() {
      for (const [socket, exchange] of last) if (!isUnderWay(exchange)) socket.destroy()
    },
  }
}

function isUnderWay(exchange: Exchange | null): boolean {
  return exchange !== null && exchange.request.complete && !exchange.response.writableFinished
}
