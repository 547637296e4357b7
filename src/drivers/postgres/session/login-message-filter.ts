// Checks the server's messages during the login before `pg` reads them. For a message that is too short, pg throws in a
// socket event or loops beyond the end. It also buffers a message of any length. So it gets only complete and
// well-formed login messages.
import type { Duplex } from 'node:stream'

/** Messages of a login are usually much shorter. */
const MESSAGE_BYTES_MAX = 16 << 10
const LOGIN_BYTES_MAX = 256 << 10
const HEAD = 5
const READY = 'Z'

/**
 * Starts the filter on `stream`, after pg has started to read from it. A message that belongs to no login destroys the
 * stream, with the reason as its error. The returned function ends the filter, detaches pg, and returns the bytes that
 * arrived after the login.
 */
export function shieldLogin(stream: Duplex): () => Buffer {
  const listeners = stream.listeners('data')
  let held: Buffer = Buffer.alloc(0)
  let taken = 0
  let ready = false
  const hear = (bytes: Buffer): void => {
    taken += bytes.length
    if (taken > LOGIN_BYTES_MAX) throw new Error('the server sends more than a login takes')
    held = Buffer.concat([held, bytes])
    while (!ready && !stream.destroyed && held.length >= HEAD) {
      const length = held.readUInt32BE(1) + 1
      if (length < HEAD || length > MESSAGE_BYTES_MAX) throw new Error('a message of no login')
      if (length > held.length) return
      const message = held.subarray(0, length)
      held = held.subarray(length)
      const code = String.fromCharCode(message[0] ?? 0)
      if (!isWhole(code, message.subarray(HEAD))) throw new Error('a message of no login')
      ready = code === READY
      for (const listener of listeners) Reflect.apply(listener, stream, [message])
    }
  }
  stream.removeAllListeners('data')
  stream.on('data', (bytes: Buffer) => {
    // A destroyed stream may still deliver data.
    if (stream.destroyed) return
    try {
      hear(bytes)
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error('an answer that is not PostgreSQL'))
    }
  })
  return () => {
    stream.removeAllListeners('data')
    return held
  }
}

/** Returns whether the body has every field that pg reads, and whether messages of this kind belong to a login. */
function isWhole(code: string, body: Buffer): boolean {
  switch (code) {
    case 'R':
      return isAuthentication(body)
    case 'S': // two strings
      return body.at(-1) === 0 && body.indexOf(0) < body.length - 1
    case 'K':
      return body.length >= 8
    case READY:
      return body.length === 1
    case 'E':
    case 'N':
      return hasEndedFields(body)
    default:
      return false
  }
}

function isAuthentication(body: Buffer): boolean {
  if (body.length < 4) return false
  switch (body.readInt32BE(0)) {
    case 5: // with a salt
      return body.length >= 8
    case 10: // a list of strings, ended by an empty string
      return body.length >= 6 && body.at(-1) === 0 && body.at(-2) === 0
    default:
      return true
  }
}

/** Returns whether the body is a list of fields (a letter and a string each) that ends in a zero byte. */
function hasEndedFields(body: Buffer): boolean {
  for (let at = 0; at < body.length;) {
    if (body[at] === 0) return true
    const end = body.indexOf(0, at + 1)
    if (end === -1) return false
    at = end + 1
  }
  return false
}
