// Composes the requests of a session in one reused buffer. A session has one request at a time, so after the server's
// answer, all bytes of the request are sent.
import { DESCRIBE, EXECUTE } from './protocol-messages.ts'

const BYTES = 2_048
/** A buffer with more bytes is not kept for the next request. */
const KEPT_BYTES_MAX = 65_536
const NULL = -1
const NONE: readonly string[] = []

export class Request {
  #bytes = Buffer.allocUnsafeSlow(BYTES)
  #length = 0

  /** Starts a new request. Call this only after the server has answered the previous one. */
  begin(): this {
    if (this.#bytes.length > KEPT_BYTES_MAX) this.#bytes = Buffer.allocUnsafeSlow(BYTES)
    this.#length = 0
    return this
  }

  add(frames: Buffer): this {
    this.#room(frames.length)
    this.#length += frames.copy(this.#bytes, this.#length)
    return this
  }

  /** Adds Parse, Bind, Describe and Execute of one unnamed statement. */
  question(text: string, parameters: readonly (string | null)[]): this {
    const start = this.#length
    this.#room(1 + 4 + 1 + text.length * 3 + 1 + 2)
    const bytes = this.#bytes
    bytes[start] = 0x50
    let at = start + 5
    bytes[at++] = 0
    at += bytes.write(text, at, 'utf8')
    bytes[at++] = 0
    at = bytes.writeInt16BE(0, at)
    bytes.writeInt32BE(at - start - 1, start + 1)
    this.#length = at
    return this.bind('', parameters, NONE).add(DESCRIBE).add(EXECUTE)
  }

  /** Adds the Bind of a statement. Its parameters are `texts`, then `more`, all in text format. */
  bind(name: string, texts: readonly (string | null)[], more: readonly string[]): this {
    const start = this.#length
    let size = 1 + 4 + 1 + Buffer.byteLength(name) + 1 + 2 + 2 + 2 + 4 * (texts.length + more.length)
    // A UTF-16 unit takes at most three bytes in UTF-8.
    for (const text of texts) size += (text?.length ?? 0) * 3
    for (const text of more) size += text.length * 3
    this.#room(size)
    const bytes = this.#bytes
    bytes[start] = 0x42
    let at = start + 5
    bytes[at++] = 0
    at += bytes.write(name, at, 'latin1')
    bytes[at++] = 0
    at = bytes.writeInt16BE(0, at)
    at = bytes.writeInt16BE(texts.length + more.length, at)
    for (const text of texts) at = text === null ? bytes.writeInt32BE(NULL, at) : value(bytes, at, text)
    for (const text of more) at = value(bytes, at, text)
    at = bytes.writeInt16BE(0, at)
    bytes.writeInt32BE(at - start - 1, start + 1)
    this.#length = at
    return this
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #room(more: number): void {
    const need = this.#length + more
    if (need <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(need, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}

function value(bytes: Buffer, at: number, text: string): number {
  const size = bytes.write(text, at + 4, 'utf8')
  bytes.writeInt32BE(size, at)
  return at + 4 + size
}
