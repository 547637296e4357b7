// Writes JSON as bytes into a growing buffer, so that no value becomes a JavaScript string on its way out. It escapes
// strings and does not check values; the values.ts files of the drivers decide how a value looks.

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SLICE = 4096
/** A short string is sent in one write with its headers; bytes are cheaper for a longer result. */
const STRING_MAX = 32_768
const BUFFER_BYTES = 16 * 1024
/** A larger buffer is not reused for another result. */
const REUSED_BYTES_MAX = 4 * 1024 * 1024

// 0: not escaped; 'u': \u00XX; otherwise the letter after the backslash.
const ESCAPES = new Uint8Array(256).fill(0x75, 0, 0x20)
for (const [byte, letter] of [
  [QUOTE, '"'],
  [BACKSLASH, '\\'],
  [8, 'b'],
  [9, 't'],
  [10, 'n'],
  [12, 'f'],
  [13, 'r'],
] as const)
  ESCAPES[byte] = letter.charCodeAt(0)

const HEX = Buffer.from('0123456789abcdef', 'latin1')

/** A buffer for JSON. `bytes` may be a different buffer after each call of room(). */
export class JsonBytes {
  bytes: Buffer
  length = 0

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafeSlow(size)
  }

  /** Makes room for `more` bytes after `length`. */
  room(more: number): Buffer {
    const need = this.length + more
    if (need > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(need, this.bytes.length * 2))
      this.bytes.copy(grown, 0, 0, this.length)
      this.bytes = grown
    }
    return this.bytes
  }

  byte(value: number): void {
    this.room(1)[this.length++] = value
  }

  /**
   * The JSON written so far: a short text as a string, a longer one as a copy of its bytes. A text too large to reuse
   * its buffer is returned without a copy, and this object is then empty.
   */
  json(): string | Buffer {
    const { bytes, length } = this
    if (length <= STRING_MAX) return bytes.toString('utf8', 0, length)
    if (length <= REUSED_BYTES_MAX) return Buffer.copyBytesFrom(bytes, 0, length)
    this.bytes = Buffer.allocUnsafeSlow(BUFFER_BYTES)
    this.length = 0
    return bytes.subarray(0, length)
  }
}

const POOL_BYTES_MAX = 16 * 1024 * 1024

/**
 * Buffers reused from result to result: growing a new buffer for each large result costs more than writing the result.
 */
export class BufferPool {
  readonly #free: JsonBytes[] = []
  #bytes = 0

  take(): JsonBytes {
    const buffer = this.#free.pop()
    if (buffer === undefined) return new JsonBytes(BUFFER_BYTES)
    this.#bytes -= buffer.bytes.length
    return buffer
  }

  /** The caller must not write into the buffer afterwards. */
  release(buffer: JsonBytes): void {
    const size = buffer.bytes.length
    if (size > REUSED_BYTES_MAX || this.#bytes + size > POOL_BYTES_MAX) return
    this.#bytes += size
    this.#free.push(buffer)
  }
}

/** Writes the bytes unchanged: digits, or bytes that are JSON already. */
export function writeRaw(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const into = out.room(end - start)
  let at = out.length
  if (end - start > 64) at += from.copy(into, at, start, end)
  else for (let i = start; i < end; i++) into[at++] = from[i] ?? 0
  out.length = at
}

/**
 * Writes UTF-8 text as a JSON string. Invalid UTF-8 (from a SQL_ASCII database) becomes U+FFFD when a client decodes
 * it.
 */
export function writeText(from: Buffer, start: number, end: number, out: JsonBytes): void {
  out.byte(QUOTE)
  writeBody(from, start, end, out)
  out.byte(QUOTE)
}

/** Writes the content of a JSON string, without its quotes. */
export function writeBody(from: Buffer, start: number, end: number, out: JsonBytes): void {
  for (let slice = start; slice < end; slice += SLICE) escaped(from, slice, Math.min(end, slice + SLICE), out)
}

function escaped(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const into = out.room((end - start) * 6 + 1)
  let at = out.length
  for (let i = start; i < end; i++) {
    const byte = from[i] ?? 0
    const escape = ESCAPES[byte] ?? 0
    if (escape === 0) {
      into[at++] = byte
      continue
    }
    into[at++] = BACKSLASH
    into[at++] = escape
    if (escape !== 0x75) continue
    into[at++] = 0x30
    into[at++] = 0x30
    into[at++] = HEX[byte >> 4] ?? 0
    into[at++] = HEX[byte & 15] ?? 0
  }
  out.length = at
}

/** Writes a text without characters to escape as a JSON string. */
export function writePlain(from: Buffer, start: number, end: number, out: JsonBytes): void {
  out.byte(QUOTE)
  writeRaw(from, start, end, out)
  out.byte(QUOTE)
}
