// node:http reads all requests that a client sends at once. If all were answered at once, the later answers would need
// memory until the client has read the earlier answers. So each request is answered only after the previous answer was
// sent. The refusal of an unreadable request also waits for its turn.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Exchange = readonly [IncomingMessage, ServerResponse]
type Listener = (...exchange: Exchange) => void

export interface Turns {
  /** Returns a listener that calls `answer` for a request after all earlier answers were sent. */
  listener(answer: Listener): Listener
  /**
   * Calls `end` after all complete requests were answered. If the unreadable bytes belong to a request whose answer has
   * begun, destroys the connection.
   */
  endAfterAnswers(socket: Socket, end: () => void): void
}

interface Turn {
  readonly current: Exchange
  readonly waiting: Exchange[]
  readonly end: (() => void) | null
}

export function openTurns(): Turns {
  const turns = new WeakMap<Socket, Turn>()
  const begin = (answer: Listener, socket: Socket, turn: Turn): void => {
    turns.set(socket, turn)
    const [, response] = turn.current
    response.once('close', () => {
      const { waiting, end } = turns.get(socket) ?? turn
      // If the connection is closed, or will be closed after this answer, nobody would get further answers.
      const next = socket.writable ? waiting.shift() : undefined
      if (next !== undefined) return begin(answer, socket, { current: next, waiting, end })
      turns.delete(socket)
      if (socket.writable) end?.()
    })
    answer(...turn.current)
  }
  return {
    listener: (answer) => (request, response) => {
      const { socket } = request
      // connections.ts has already refused this request, or closed its connection.
      if (response.writableEnded || socket.destroyed) return
      const turn = turns.get(socket)
      if (turn !== undefined) turn.waiting.push([request, response])
      else begin(answer, socket, { current: [request, response], waiting: [], end: null })
    },
    endAfterAnswers(socket, end) {
      const turn = turns.get(socket)
      if (turn === undefined) return end()
      const [request, response] = turn.current
      if (request.complete) {
        const waiting = turn.waiting.filter(([each]) => each.complete)
        turns.set(socket, { current: turn.current, waiting, end })
      } else if (response.headersSent) socket.destroy()
      else end()
    },
  }
}
