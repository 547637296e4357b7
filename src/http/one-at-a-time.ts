// Answers the requests of a connection one after the other. node:http delivers all requests that a client has sent, and
// keeps the answers that are ready before their turn. Such answers would hold their memory until the client has read
// the answers before.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** Returns a listener that calls `answer` for a request when the answers before it were sent. */
export function oneAtATime(answer: Listener): Listener {
  /** The requests that wait, for each connection with an answer under way. */
  const waiting = new WeakMap<Socket, [IncomingMessage, ServerResponse][]>()
  const begin = (socket: Socket, request: IncomingMessage, response: ServerResponse): void => {
    response.once('close', () => {
      // If the connection was closed, or will be after this answer, further answers would reach nobody.
      const next = socket.writable ? waiting.get(socket)?.shift() : undefined
      if (next === undefined) waiting.delete(socket)
      else begin(socket, ...next)
    })
    answer(request, response)
  }
  return (request, response) => {
    const { socket } = request
    // connections.ts has already refused this request, or closed its connection, because too many requests wait.
    if (response.writableEnded || socket.destroyed) return
    const queue = waiting.get(socket)
    if (queue !== undefined) return void queue.push([request, response])
    waiting.set(socket, [])
    begin(socket, request, response)
  }
}
