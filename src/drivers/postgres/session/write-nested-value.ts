// Writes arrays and composites, which PostgreSQL sends as text, as JSON lists and objects. A composite that does not
// fit its type is written as a string.
import { AT_ONCE, writeInSlices, writeText, type JsonBytes, type WriteValue } from '../../json-bytes.ts'
import { writeNull } from './write-scalar-value.ts'

const [OPEN, CLOSE, QUOTE, BACKSLASH, BRACKET, EQUALS] = [0x7b, 0x7d, 0x22, 0x5c, 0x5b, 0x3d]
const [ROW_OPEN, ROW_CLOSE, COMMA] = [0x28, 0x29, 0x2c]
const NULL = Buffer.from('NULL')

/** Returns the writer of arrays such as `{1,"a b",NULL,{…}}`. Bounds (`[2:3]={…}`) are left out. */
export function arrayWriter(element: WriteValue, delimiter: number): WriteValue {
  const write: WriteValue = (from, start, end, out) => {
    for (let at = afterBounds(from, start, end); at < end;) {
      if (writesMark(from[at], delimiter, out)) at++
      else at = writeElement(from, at, end, element, delimiter, out)
    }
  }
  return Object.assign(write, {
    *inSlices(from: Buffer, start: number, end: number, out: JsonBytes): Generator<undefined, void> {
      let pause = start + AT_ONCE
      for (let at = afterBounds(from, start, end); at < end;) {
        if (writesMark(from[at], delimiter, out)) at++
        else {
          const limit = Math.min(end, at + AT_ONCE)
          const isShort = limit === end || elementEnd(from, at, limit, delimiter) < limit
          at = isShort
            ? writeElement(from, at, end, element, delimiter, out)
            : yield* writeLongElement(from, at, end, element, delimiter, out)
        }
        if (at < pause) continue
        yield* out.nextSlice()
        pause = at + AT_ONCE
      }
    },
  })
}

function afterBounds(from: Buffer, start: number, end: number): number {
  let at = start
  if (from[at] === BRACKET)
    do at++
    while (at < end && from[at - 1] !== EQUALS)
  return at
}

/** Writes a bracket or comma. Returns false for any other byte. */
function writesMark(byte: number | undefined, delimiter: number, out: JsonBytes): boolean {
  if (byte === OPEN) out.byte(0x5b)
  else if (byte === CLOSE) out.byte(0x5d)
  else if (byte === delimiter) out.byte(COMMA)
  else return false
  return true
}

/** Writes the element that begins at `start`. Returns the position after it. */
function writeElement(
  from: Buffer,
  start: number,
  end: number,
  element: WriteValue,
  delimiter: number,
  out: JsonBytes,
): number {
  return from[start] === QUOTE
    ? quotedElement(from, start, end, element, out)
    : bareElement(from, start, end, element, delimiter, out)
}

function bareElement(
  from: Buffer,
  start: number,
  end: number,
  element: WriteValue,
  delimiter: number,
  out: JsonBytes,
): number {
  let at = start
  while (at < end && from[at] !== delimiter && from[at] !== CLOSE) at++
  if (at - start === 4 && from.compare(NULL, 0, 4, start, at) === 0) writeNull(out)
  else element(from, start, at, out)
  return at
}

function quotedElement(from: Buffer, start: number, end: number, element: WriteValue, out: JsonBytes): number {
  let at = start + 1
  let escapes = 0
  while (at < end && from[at] !== QUOTE) {
    if (from[at] === BACKSLASH) {
      escapes++
      at++
    }
    at++
  }
  if (escapes === 0) element(from, start + 1, at, out)
  else {
    const plain = Buffer.allocUnsafe(at - start - 1)
    let length = 0
    for (let i = start + 1; i < at; i++) {
      if (from[i] === BACKSLASH) i++
      plain[length++] = from[i] ?? 0
    }
    element(plain, 0, length, out)
  }
  return at + 1
}

/** Returns the end of the element that begins at `start`, or a position of at least `limit` if it ends later. */
function elementEnd(from: Buffer, start: number, limit: number, delimiter: number): number {
  return from[start] === QUOTE ? quotedEnd(from, start + 1, limit) : bareEnd(from, start, limit, delimiter)
}

function bareEnd(from: Buffer, start: number, limit: number, delimiter: number): number {
  let at = start
  while (at < limit && from[at] !== delimiter && from[at] !== CLOSE) at++
  return at
}

function quotedEnd(from: Buffer, start: number, limit: number): number {
  let at = start
  while (at < limit && from[at] !== QUOTE) at += from[at] === BACKSLASH ? 2 : 1
  return at
}

/** Writes a long element like writeElement(), and yields after each slice. */
function* writeLongElement(
  from: Buffer,
  start: number,
  end: number,
  element: WriteValue,
  delimiter: number,
  out: JsonBytes,
): Generator<undefined, number> {
  if (from[start] !== QUOTE) {
    const stop = yield* readInSlices((at, limit) => bareEnd(from, at, limit, delimiter), start, end)
    yield* writeInSlices(element, from, start, stop, out)
    return stop
  }
  const stop = yield* readInSlices((at, limit) => quotedEnd(from, at, limit), start + 1, end)
  const plain = Buffer.allocUnsafeSlow(stop - start - 1)
  let length = 0
  const unescape = (begin: number, limit: number): number => {
    let at = begin
    for (; at < limit; at++) {
      if (from[at] === BACKSLASH) at++
      plain[length++] = from[at] ?? 0
    }
    return at
  }
  yield* readInSlices(unescape, start + 1, stop)
  yield* writeInSlices(element, plain, 0, length, out)
  return stop + 1
}

/**
 * Calls `read` for one slice after another, and yields in between. `read` returns how far it has read: a position
 * before the end of its slice means that it is finished. Returns the last position.
 */
function* readInSlices(
  read: (at: number, limit: number) => number,
  start: number,
  end: number,
): Generator<undefined, number> {
  for (let at = start; ;) {
    const limit = Math.min(end, at + AT_ONCE)
    at = read(at, limit)
    if (at < limit || limit === end) return at
    yield
  }
}

export interface AttributeWriter {
  readonly name: string
  readonly write: WriteValue
}

/**
 * Returns the writer of rows such as `(1,"a b",)` as {name: value}. An empty field is NULL. In quotes, `""` is one
 * quote, and `\\` one backslash.
 */
export function compositeWriter(attributes: readonly AttributeWriter[]): WriteValue {
  const keys = attributes.map(({ name }, i) => Buffer.from(`${i === 0 ? '' : ','}${JSON.stringify(name)}:`))
  const writeKey = (n: number, out: JsonBytes): void => {
    const key = keys[n] ?? NULL
    out.room(key.length)
    out.length += key.copy(out.bytes, out.length)
  }
  const write: WriteValue = (from, start, end, out) => {
    const row = RowFields.of(from, start, end)
    row?.read(start + 1, end)
    const fields = row?.finish()
    if (fields?.length !== attributes.length) return writeText(from, start, end, out)
    out.byte(OPEN)
    attributes.forEach(({ write: writeField }, n) => {
      writeKey(n, out)
      const field = fields[n] ?? null
      if (field === null) writeNull(out)
      else writeField(field, 0, field.length, out)
    })
    out.byte(CLOSE)
  }
  return Object.assign(write, {
    *inSlices(from: Buffer, start: number, end: number, out: JsonBytes): Generator<undefined, void> {
      const row = RowFields.of(from, start, end)
      if (row !== null) yield* readInSlices((at, limit) => row.read(at, limit), start + 1, end)
      const fields = row?.finish()
      if (fields?.length !== attributes.length) return yield* writeText.inSlices(from, start, end, out)
      out.byte(OPEN)
      let bytes = 0
      for (const [n, { write: writeField }] of attributes.entries()) {
        writeKey(n, out)
        const field = fields[n] ?? null
        if (field === null) writeNull(out)
        else yield* writeInSlices(writeField, field, 0, field.length, out)
        bytes += field?.length ?? 0
        if (bytes < AT_ONCE) continue
        yield* out.nextSlice()
        bytes = 0
      }
      out.byte(CLOSE)
    },
  })
}

/** Splits the text of a row into fields. `()` counts as a row with one NULL, although it may also have no fields. */
class RowFields {
  readonly #from: Buffer
  readonly #last: number
  readonly #fields: (Buffer | null)[] = []
  readonly #plain: Buffer
  #length = 0
  /** Where the current field begins in #plain. */
  #first = 0
  #isQuoted = false
  #isSeen = false
  #isClosed = false

  /** Returns null if the text is not a row. */
  static of(from: Buffer, start: number, end: number): RowFields | null {
    return from[start] === ROW_OPEN && from[end - 1] === ROW_CLOSE ? new RowFields(from, start, end) : null
  }

  private constructor(from: Buffer, start: number, end: number) {
    this.#from = from
    this.#last = end - 1
    this.#plain = Buffer.allocUnsafe(end - start)
  }

  /** Reads up to `limit`, or a little further. Returns how far it has read. */
  read(start: number, limit: number): number {
    const from = this.#from
    const plain = this.#plain
    let length = this.#length
    let isQuoted = this.#isQuoted
    let isSeen = this.#isSeen
    let at = start
    for (; at < limit; at++) {
      const byte = from[at] ?? 0
      if (!isQuoted && (byte === COMMA || at === this.#last)) {
        this.#fields.push(isSeen ? plain.subarray(this.#first, length) : null)
        this.#first = length
        this.#isClosed = at === this.#last
        isSeen = false
      } else if (byte === QUOTE) {
        // Inside quotes, two quotes stand for one. Any other quote begins or ends a quoted part.
        if (isQuoted && from[at + 1] === QUOTE) plain[length++] = from[++at] ?? 0
        else isQuoted = !isQuoted
        isSeen = true
      } else {
        plain[length++] = byte === BACKSLASH ? (from[++at] ?? 0) : byte
        isSeen = true
      }
    }
    this.#length = length
    this.#isQuoted = isQuoted
    this.#isSeen = isSeen
    return at
  }

  /** Returns the fields. Call this after the whole text was read. */
  finish(): readonly (Buffer | null)[] {
    if (!this.#isClosed) this.#fields.push(this.#isSeen ? this.#plain.subarray(this.#first, this.#length) : null)
    return this.#fields
  }
}
