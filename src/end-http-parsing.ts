// Node reads up to 64 kB from a socket at once, and parses all HTTP messages in it, even if the first message destroyed
// the socket. Thousands of tiny messages, or of tiny chunks of a body, would delay other work. So this file ends the
// parsing.
import type { Socket } from 'node:net'

/** Call this in the event of a message. Node parses no more messages, and treats the next bytes as an error. */
export function endHttpParsing(socket: Socket): void {
  // Node has no public method for this. Its parser calls this function for each message. A negative number stops the
  // parser.
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser === 'object' && parser !== null) Reflect.set(parser, 'onIncoming', () => -1)
}

type OnBody = (this: unknown, chunk: unknown) => unknown

/** How Node's parser handles the chunks of the bodies of one connection. */
export interface BodyChunks {
  /** Calls `note` for each chunk, before Node handles it. */
  watch(note: (bytes: number) => void): void
  /** Node ignores the chunks that come, and calls no JavaScript for them. It still notices the end of the body. */
  skip(): void
  /** Node handles the next chunks as usual. */
  reset(): void
  /** The reader of the body gets no more chunks and no end. */
  cut(): void
}

/** All parsers have this function. Its key is a number, which has no public name. */
let usual: { readonly key: string; readonly onBody: OnBody } | undefined

/**
 * Node calls JavaScript for each chunk of a body, even if nobody reads the body. Node uses the same parser for another
 * connection later, so call reset() when the connection is closed. Returns null if the connection has no parser.
 */
export function bodyChunksOf(socket: Socket): BodyChunks | null {
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser !== 'object' || parser === null) return null
  usual ??= onBodyOf(parser)
  if (usual === undefined) return null
  const { key, onBody } = usual
  const set = (call: OnBody | null) => void Reflect.set(parser, key, call)
  return {
    watch: (note) =>
      set(function (this: unknown, chunk) {
        if (chunk instanceof Uint8Array) note(chunk.length)
        return Reflect.get(parser, key) === null ? undefined : onBody.call(this, chunk)
      }),
    skip: () => set(null),
    reset: () => set(onBody),
    cut() {
      set(null)
      Reflect.set(parser, 'incoming', null)
    },
  }
}

function onBodyOf(parser: object): typeof usual {
  for (const [key, value] of Object.entries(parser)) {
    if (typeof value === 'function' && value.name === 'parserOnBody') return { key, onBody: value }
  }
  return undefined
}
