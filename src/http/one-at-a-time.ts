// node:http reads all requests that a client sends at once. If they were all answered at once, the later answers would
// need memory until the client has read the earlier ones. So the next request is answered only when the answer before
// it was sent.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Listener = (request: IncomingMessage, response: ServerResponse) => void

export function oneAtATime(answer: Listener): Listener {
  /** The requests that wait, for each connection that has a request in progress. */
  const waiting = new WeakMap<Socket, [IncomingMessage, ServerResponse][]>()
  const begin = (socket: Socket, request: IncomingMessage, response: ServerResponse): void => {
    response.once('close', () => {
      // If the connection was closed, or will be after this answer, nobody would get further answers.
      const next = socket.writable ? waiting.get(socket)?.shift() : undefined
      if (next === undefined) waiting.delete(socket)
      else begin(socket, ...next)
    })
    answer(request, response)
  }
  return (request, response) => {
    const { socket } = request
    // Too many requests wait. connections.ts has already refused this one, or closed the connection.
    if (response.writableEnded || socket.destroyed) return
    const queue = waiting.get(socket)
    if (queue !== undefined) return void queue.push([request, response])
    waiting.set(socket, [])
    begin(socket, request, response)
  }
}
