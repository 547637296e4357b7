// Writes JSON as bytes into a growing buffer, so that no value of a result becomes a JavaScript string. Strings are
// escaped, but values are not checked.

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** For longer values, in bytes, Buffer.copy() is faster than the loop in copyBytes(). */
const NATIVE_BYTES = 256
const SLICE = 4096
/** The bytes of a long value that are read in one slice. After each slice, other requests get a turn. */
export const AT_ONCE = 64 * 1024
/** The bytes that one slice may write. An escaped byte takes up to six bytes. */
const WRITTEN_AT_ONCE = 6 * AT_ONCE
/** The bytes of a long result that are copied in one slice. */
const COPIED_AT_ONCE = 1024 * 1024
const NOTHING: DataView = new DataView(new ArrayBuffer(0))
/**
 * json() returns a result up to this length, in bytes, as a string. Such a string costs less, because it is sent in one
 * write with the HTTP headers.
 */
const STRING_MAX = 32_768
/**
 * lend() does not lend results up to this length, in bytes. For these, a string costs less than bytes without a copy.
 */
const LENT_MIN = 8_192
const BUFFER_BYTES = 32 * 1024
/** json() copies results up to this length, in bytes, and reuses the buffer. A longer result keeps the buffer. */
const KEPT_BYTES_MAX = 4 * 1024 * 1024
/** A pool keeps no larger buffer, in bytes. */
const LARGE_BYTES_MAX = 4 * 1024 * 1024
const POOL_BYTES_MAX = 16 * 1024 * 1024
const SMALL_MAX = 64

// For each byte: 0 if it is not escaped, 'u' if it becomes \u00XX, and otherwise the letter after the backslash.
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

/** room() may replace `bytes` and `view`. */
export class JsonBytes {
  bytes: Buffer
  /** A view of `bytes` that reads and writes several bytes at a time. */
  view: DataView
  length = 0
  readonly #pool: BufferPool | null
  #source: Buffer | null = null
  #sourceView = NOTHING

  constructor(room: number | Buffer, pool: BufferPool | null = null) {
    this.bytes = typeof room === 'number' ? Buffer.allocUnsafeSlow(room) : room
    this.view = viewOf(this.bytes)
    this.#pool = pool
  }

  room(more: number): Buffer {
    const need = this.length + more
    if (need > this.bytes.length) this.#grow(need)
    return this.bytes
  }

  byte(value: number): void {
    this.room(1)[this.length++] = value
  }

  /** Returns a view of the buffer `from`, for reading values. The view of the last buffer is kept until forget(). */
  source(from: Buffer): DataView {
    if (from !== this.#source) {
      this.#source = from
      this.#sourceView = viewOf(from)
    }
    return this.#sourceView
  }

  /** Lets go of the last buffer that source() has seen. */
  forget(): void {
    this.#source = null
    this.#sourceView = NOTHING
  }

  /**
   * Does the same as room(). If a long result must be copied into a larger buffer, yields between the slices of the
   * copy. Nothing may be written meanwhile.
   */
  *makeRoom(more: number): Generator<undefined, void> {
    const { bytes, length } = this
    const need = length + more
    if (need <= bytes.length) return
    const grown = this.#larger(need)
    for (let at = 0; at < length; at += COPIED_AT_ONCE) {
      if (at > 0) yield
      bytes.copy(grown, at, at, Math.min(length, at + COPIED_AT_ONCE))
    }
    this.#replace(grown)
  }

  /** True if the next AT_ONCE bytes may not fit. room() would then copy a long result without a pause. */
  get needsRoom(): boolean {
    return this.length > COPIED_AT_ONCE && this.bytes.length - this.length < WRITTEN_AT_ONCE
  }

  /** Makes room for the next slice, so that the slice itself need not copy a long result. Then yields. */
  *nextSlice(): Generator<undefined, void> {
    yield* this.makeRoom(WRITTEN_AT_ONCE)
    yield
  }

  #grow(need: number): void {
    const grown = this.#larger(need)
    this.bytes.copy(grown, 0, 0, this.length)
    this.#replace(grown)
  }

  #larger(need: number): Buffer {
    return this.#pool?.large(need) ?? Buffer.allocUnsafeSlow(Math.max(need, this.bytes.length * 2))
  }

  #replace(grown: Buffer): void {
    const { bytes } = this
    this.#use(grown)
    this.#pool?.give(bytes)
  }

  #use(bytes: Buffer): void {
    this.bytes = bytes
    this.view = viewOf(bytes)
  }

  /**
   * Returns the JSON: a short text as a string, a longer text as a copy of its bytes. If it is longer than
   * KEPT_BYTES_MAX, returns the buffer itself, and this object becomes empty.
   */
  json(): string | Buffer {
    this.forget()
    const { bytes, length } = this
    if (length <= STRING_MAX) return bytes.toString('utf8', 0, length)
    if (length <= KEPT_BYTES_MAX) return Buffer.copyBytesFrom(bytes, 0, length)
    this.#use(Buffer.allocUnsafeSlow(BUFFER_BYTES))
    this.length = 0
    return bytes.subarray(0, length)
  }

  /**
   * Returns the JSON without a copy, by lending its buffer. This object becomes empty. Call `release` when the JSON was
   * sent: the buffer goes back to the pool, and nobody may read it afterwards. Returns the same as json() if there is
   * no pool, or if the text is short or fills less than half of a large buffer.
   */
  lend(): { readonly json: string | Buffer; readonly release?: () => void } {
    const { bytes, length } = this
    const pool = this.#pool
    const isWaste = length <= LENT_MIN || (length < bytes.length / 2 && bytes.length > BUFFER_BYTES)
    if (pool === null || isWaste) return { json: this.json() }
    this.#use(Buffer.alloc(0))
    this.length = 0
    let isLent = true
    const release = (): void => {
      // If a buffer were given back twice, two results could share it, and one caller would see the rows of the other.
      if (isLent) pool.give(bytes)
      isLent = false
    }
    return { json: bytes.subarray(0, length), release }
  }
}

/**
 * Buffers that are reused for later results. A new buffer for each large result would cost more than writing the
 * result: fresh memory is slow, and causes garbage collections of the whole heap.
 */
export class BufferPool {
  readonly #small: JsonBytes[] = []
  readonly #large: Buffer[] = []
  #bytes = 0

  take(): JsonBytes {
    return this.#small.pop() ?? new JsonBytes(BUFFER_BYTES, this)
  }

  large(bytes: number): Buffer | undefined {
    const at = this.#large.findLastIndex(({ length }) => length >= bytes)
    const [found] = at < 0 ? [] : this.#large.splice(at, 1)
    this.#bytes -= found?.length ?? 0
    return found
  }

  /** Takes a buffer back. The caller must not write into it any more. */
  release(buffer: JsonBytes): void {
    buffer.forget()
    if (buffer.bytes.length === BUFFER_BYTES) this.#keep(buffer)
    else this.give(buffer.bytes)
  }

  /** Keeps a buffer for a later result. The caller must not use it any more. */
  give(bytes: Buffer): void {
    const { length } = bytes
    if (length === BUFFER_BYTES) return this.#keep(new JsonBytes(bytes, this))
    if (length < BUFFER_BYTES || length > LARGE_BYTES_MAX || this.#bytes + length > POOL_BYTES_MAX) return
    this.#bytes += length
    this.#large.push(bytes)
  }

  #keep(buffer: JsonBytes): void {
    if (this.#small.length < SMALL_MAX) this.#small.push(buffer)
  }
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** Writes bytes that need no escaping: digits, or bytes that are already JSON. */
export function writeRaw(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const into = out.room(end - start)
  if (end - start > NATIVE_BYTES) from.copy(into, out.length, start, end)
  else copyBytes(out.source(from), start, end, out.view, out.length)
  out.length += end - start
}

/** Writes the value in from[start…end) as JSON. */
export interface WriteValue {
  (from: Buffer, start: number, end: number, out: JsonBytes): void
  /** Does the same, but yields between two slices. Absent if all values are short. */
  readonly inSlices?: (from: Buffer, start: number, end: number, out: JsonBytes) => Generator<undefined, void>
}

/** If the value is long, yields between two slices. */
export function* writeInSlices(
  write: WriteValue,
  from: Buffer,
  start: number,
  end: number,
  out: JsonBytes,
): Generator<undefined, void> {
  if (end - start <= AT_ONCE || write.inSlices === undefined) write(from, start, end, out)
  else yield* write.inSlices(from, start, end, out)
}

writeRaw.inSlices = function* (from: Buffer, start: number, end: number, out: JsonBytes): Generator<undefined, void> {
  yield* out.makeRoom(end - start + WRITTEN_AT_ONCE)
  for (let at = start; at < end; at += AT_ONCE) {
    if (at > start) yield* out.nextSlice()
    writeRaw(from, at, Math.min(end, at + AT_ONCE), out)
  }
}

/** Writes a JSON string from a text in which JSON escapes nothing. */
export function writePlain(from: Buffer, start: number, end: number, out: JsonBytes): void {
  out.room(end - start + 2)[out.length++] = QUOTE
  writeRaw(from, start, end, out)
  out.bytes[out.length++] = QUOTE
}

/**
 * Writes a text in UTF-8 as a JSON string. If the UTF-8 is invalid, as it may be in a database with SQL_ASCII, the
 * client decodes U+FFFD.
 */
export function writeText(from: Buffer, start: number, end: number, out: JsonBytes): void {
  out.byte(QUOTE)
  writeBody(from, start, end, out)
  out.byte(QUOTE)
}

writeText.inSlices = function* (from: Buffer, start: number, end: number, out: JsonBytes): Generator<undefined, void> {
  out.byte(QUOTE)
  yield* writeBodyInSlices(from, start, end, out)
  out.byte(QUOTE)
}

/** Does the same as writeBody(), but yields between two slices. */
export function* writeBodyInSlices(
  from: Buffer,
  start: number,
  end: number,
  out: JsonBytes,
): Generator<undefined, void> {
  yield* out.makeRoom(end - start + WRITTEN_AT_ONCE)
  for (let at = start; at < end; at += AT_ONCE) {
    if (at > start) yield* out.nextSlice()
    writeBody(from, at, Math.min(end, at + AT_ONCE), out)
  }
}

/** Writes a JSON string without its quotes. */
function writeBody(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const stop = plainUntil(out.source(from), start, end)
  writeRaw(from, start, stop, out)
  for (let slice = stop; slice < end; slice += SLICE) escaped(from, slice, Math.min(end, slice + SLICE), out)
}

function escaped(from: Buffer, start: number, end: number, out: JsonBytes): void {
  const into = out.room((end - start) * 6)
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

/** Copies the bytes, mostly eight at a time. Returns the offset after the copy. */
export function copyBytes(from: DataView, start: number, end: number, into: DataView, at: number): number {
  let i = start
  let to = at
  for (; i + 8 <= end; i += 8, to += 8) into.setBigUint64(to, from.getBigUint64(i))
  if (i + 4 <= end) {
    into.setInt32(to, from.getInt32(i))
    i += 4
    to += 4
  }
  for (; i < end; i++, to++) into.setUint8(to, from.getUint8(i))
  return to
}

/** Returns the offset of the first byte that JSON escapes, or `end`. Reads four bytes at a time. */
export function plainUntil(from: DataView, start: number, end: number): number {
  let at = start
  while (at + 4 <= end && !hasEscape(from.getInt32(at))) at += 4
  while (at < end && ESCAPES[from.getUint8(at)] === 0) at++
  return at
}

/**
 * Returns whether one of the four bytes is a control character, a quote or a backslash. For each byte, `x - n` borrows
 * into the highest bit if x < n, and `& ~x` excludes bytes that had this bit before.
 */
function hasEscape(word: number): boolean {
  const quote = word ^ 0x22222222
  const backslash = word ^ 0x5c5c5c5c
  const found =
    ((word - 0x20202020) & ~word) | ((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash)
  return (found & 0x80808080) !== 0
}
