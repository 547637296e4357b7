// Which connections have a request that arrived whole. When the service ends, the others are not waited for: anybody can open
// one and send nothing, and a server that is closing no longer looks for requests that are late.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface Arrivals {
  /** Destroys the connections whose request has not arrived whole, or that have none under way. */
  cutOthers(): void
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export function arrivalsOf(server: Server): Arrivals {
  /** By connection the request that came last; null before the first. */
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
