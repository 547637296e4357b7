// Answers requests that cannot be parsed, on both listeners of the service.
import type { Socket } from 'node:net'
import { REQUEST_ID } from './request-id.ts'
import type { Turns } from './one-at-a-time.ts'
import { TooManyChunks } from './request-bodies.ts'
import { JSON_TYPE } from './send-answer.ts'

const LINGER_MS = 1_000

/**
 * Returns a listener for the event `clientError`. It answers after all complete requests were answered, and closes the
 * connection. Node's own answer would be written into the middle of another answer. `requestMs` is the time limit of a
 * request.
 */
export function unreadableRequests(
  turns: Turns,
  nextId: () => string,
  requestMs: number,
): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable) return void socket.destroy()
    turns.endAfterAnswers(socket, () => {
      socket.end(lastAnswer(sentenceOf(error, requestMs / 1_000), nextId()))
      // If the client never closes its side, end() alone would keep the socket open.
      setTimeout(() => socket.destroy(), LINGER_MS).unref()
    })
  }
}

export function malformedBody(error: string): string {
  return JSON.stringify({ error, code: 'INVALID_REQUEST', details: [error] })
}

function lastAnswer(error: string, requestId: string): string {
  const body = malformedBody(error)
  const type = `content-type: ${JSON_TYPE}`
  const head = `${type}\r\n${REQUEST_ID}: ${requestId}\r\ncontent-length: ${body.length}\r\nconnection: close`
  return `HTTP/1.1 400 Bad Request\r\n${head}\r\n\r\n${body}`
}

function sentenceOf(error: Error, seconds: number): string {
  if ('code' in error && error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return `The request did not arrive in time. Send the complete request within ${seconds} seconds.`
  if (error instanceof TooManyChunks) return 'The body has too many chunks. Send it in larger chunks.'
  return 'This is not a valid HTTP request.'
}
