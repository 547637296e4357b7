// JSON written as bytes into a buffer that grows: no value ever becomes a JavaScript string on its way out.
// It escapes, it never judges: what a value must look like is said in values.ts.

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SLICE = 4096
/** A string goes out in one write with its headers; beyond this bytes are cheaper. */
const STRING_MAX = 32_768
const SHEET_BYTES = 16 * 1024
/** A larger buffer is not kept for another answer. */
const SHEET_KEPT_BYTES = 4 * 1024 * 1024

// 0: as it is; 'u': \u00XX; otherwise the letter behind the backslash.
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

/** Where JSON is written. `bytes` may be another buffer after each room(). */
export class JsonBytes {
  bytes: Buffer
  length = 0

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafeSlow(size)
  }

  /** Makes room for so many bytes behind `length`. */
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
   * What was written: a small text as a string, a large one as a copy of its bytes. Of one too large for its buffer to be
   * kept the bytes themselves; then nothing is left here.
   */
  json(): string | Buffer {
    const { bytes, length } = this
    if (length <= STRING_MAX) return bytes.toString('utf8', 0, length)
    if (length <= SHEET_KEPT_BYTES) return Buffer.copyBytesFrom(bytes, 0, length)
    this.bytes = Buffer.allocUnsafeSlow(SHEET_BYTES)
    this.length = 0
    return bytes.subarray(0, length)
  }
}

const KEPT_BYTES = 16 * 1024 * 1024

/** Buffers kept from answer to answer: growing one anew for each large answer costs more than writing it. */
export class Sheets {
  readonly #kept: JsonBytes[] = []
  #bytes = 0

  take(): JsonBytes {
    const sheet = this.#kept.pop()
    if (sheet === undefined) return new JsonBytes(SHEET_BYTES)
    this.#bytes -= sheet.bytes.length
    return sheet
  }

  /** Whoever gives one back must not write into it again. */
  giveBack(sheet: JsonBytes): void {
    const size = sheet.bytes.length
    if (size > SHEET_KEPT_BYTES || this.#bytes + size > KEPT_BYTES) return
    this.#bytes += size
    this.#kept.push(sheet)
  }
}

/** The bytes as they are: digits, or JSON already. */
export function writeRaw(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const into = out.room(end - start)
  let at = out.length
  if (end - start > 64) at += from.copy(into, at, start, end)
  else for (let i = start; i < end; i++) into[at++] = from[i] ?? 0
  out.length = at
}

/** UTF-8 text as a JSON string. Bytes that are no UTF-8 (a SQL_ASCII database) become U+FFFD when the answer is read. */
export function writeText(from: Buffer, start: number, end: number, out: JsonBytes): void {
  out.byte(QUOTE)
  writeBody(from, start, end, out)
  out.byte(QUOTE)
}

/** A part of such a string: what stands between its quotes. */
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

/** A text without anything to escape, as a JSON string. */
export function writePlain(from: Buffer, start: number, end: number, out: JsonBytes): void {
  out.byte(QUOTE)
  writeRaw(from, start, end, out)
  out.byte(QUOTE)
}
