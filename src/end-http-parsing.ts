// Node reads up to 64 kB from a socket at once, and parses all messages in these bytes, even after the socket was
// destroyed. This stops it, so that thousands of tiny messages do not delay other work.
import type { Socket } from 'node:net'

/** Call this in the event of a message. Node parses no further message, and treats the bytes after it as an error. */
export function endHttpParsing(socket: Socket): void {
  // Node has no public method for this. Its parser calls this function for each message, and stops at a negative number.
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser === 'object' && parser !== null) Reflect.set(parser, 'onIncoming', () => -1)
}
