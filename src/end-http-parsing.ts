// Node reads up to 64 kB from a socket at once, and parses all HTTP messages in it, even if the socket was destroyed by
// the first. Thousands of tiny messages would delay other work. This file ends the parsing.
import type { Socket } from 'node:net'

/** Call it in the event of a message. Node parses no further message, and treats the bytes after it as an error. */
export function endHttpParsing(socket: Socket): void {
  // Node has no public method for this. Its parser calls this function for each message. A negative number stops it.
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser === 'object' && parser !== null) Reflect.set(parser, 'onIncoming', () => -1)
}
