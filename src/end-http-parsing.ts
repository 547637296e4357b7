// Node reads up to 64 kB from a socket at once, and parses all HTTP messages in it, even if the first message destroyed
// the socket. Thousands of tiny messages would delay other work, so this file ends the parsing.
import type { Socket } from 'node:net'

/** Call this in the event of a message. Node parses no more messages, and treats the next bytes as an error. */
export function endHttpParsing(socket: Socket): void {
  // Node has no public method for this. Its parser calls this function for each message. A negative number stops the
  // parser.
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser === 'object' && parser !== null) Reflect.set(parser, 'onIncoming', () => -1)
}
