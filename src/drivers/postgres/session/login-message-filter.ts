// Filters the server's messages to `pg` during login. pg trusts its input. A message that is too short makes pg throw
// in a socket event or loop past the end. pg also buffers a message of any length. So pg receives only complete,
// well-formed login messages.
import type { Duplex } from 'node:stream'

/** The maximum length of one login message. Servers and poolers send much shorter messages. */
const MESSAGE_BYTES_MAX = 16 << 10
const LOGIN_BYTES_MAX = 256 << 10
const HEAD = 5
const READY = 'Z'

/**
 * Starts to filter what pg reads from `stream`. Call it when pg has started to read. If a message cannot belong to a
 * login, the stream is destroyed with the reason. The returned function ends the filter, detaches pg, and returns the
 * bytes that arrived after the login.
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

/**
 * Returns whether a body has every field that pg reads from this kind of message. Returns false for kinds that belong
 * to no login.
 */
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

/** Returns whether the fields, each a letter and a string, end with a zero byte. */
function hasEndedFields(body: Buffer): boolean {
  for (let at = 0; at < body.length;) {
    if (body[at] === 0) return true
    const end = body.indexOf(0, at + 1)
    if (end === -1) return false
    at = end + 1
  }
  return false
}
