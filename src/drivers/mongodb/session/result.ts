// Writes the documents of an answer as a table (docs/drivers/mongodb.md#values). Columns are the top-level fields. Rows
// are written as documents arrive and truncated at the row limit and the size limit.
import { AppError } from '../../../errors.ts'
import type { ResultColumn, Rows } from '../../driver.ts'
import { AT_ONCE, JsonBytes } from '../../json-bytes.ts'
import { writeLarge } from './write-large-value.ts'
import { ALIASES, endOfName, lengthAt, sizeOf, writeAscii, writeValue } from './write-value.ts'

const COLUMNS_MAX = 1_000
/** The maximum length of a column name in bytes. It is bounded because a name is written without yielding. */
const NAME_BYTES_MAX = 4_096
/**
 * The maximum length of all column names as JSON, in bytes. Names from the exposure and from the query are shorter. The
 * names of computed fields, such as those of $arrayToObject, may be longer.
 */
const NAMES_BYTES_MAX = 512 * 1024
/** The longest name, in bytes, whose escapes are not counted. 1,000 such names are shorter than NAMES_BYTES_MAX. */
const SHORT_NAME_BYTES = 64
/** The maximum number of fields of one document, whose names may repeat. They are found without yielding. */
const FIELDS_MAX = 10_000
/** The number of bytes of rows that are written before the next pause. A short document may become a long row of nulls. */
const WRITTEN_AT_ONCE = 4 * AT_ONCE
const ROWS_ROOM = 16 * 1024
const COMMA = 0x2c
const OPEN = 0x5b
const CLOSE = 0x5d
/** The length of `,null`. A row gets one for each column that first appears in a later row. */
const NULL_BYTES = 5

export interface Caps {
  readonly rowCap: number
  /** The maximum size of all rows as JSON, in bytes. */
  readonly bytesMax: number
}

interface Column {
  readonly name: string
  /** The name in UTF-8. */
  readonly bytes: Buffer
  readonly place: number
  /** The type of the column's values. Null as long as all values are null. */
  type: string | null
}

interface Range {
  readonly start: number
  readonly end: number
}

/** The rows of one query. */
export class Result {
  readonly #caps: Caps
  readonly #out: JsonBytes
  readonly #columns = new Map<string, Column>()
  /** The columns in order. */
  readonly #placed: Column[] = []
  /** For each row, its end offset, and the number of columns when the row was written. */
  readonly #ends: number[] = []
  readonly #widths: number[] = []
  /** For the current document, by column index: type, start and size of the value. */
  #types = new Int32Array(64)
  #starts = new Int32Array(64)
  #sizes = new Int32Array(64)
  /**
   * The column `_id`, if another column comes first. #ids has, for each row, the range of its `_id` in the output.
   */
  #id: Column | null = null
  readonly #ids: (Range | undefined)[] = []
  #idAt: Range = { start: 0, end: 0 }
  #missing = 0
  #nameBytes = 0
  #truncated = false

  /** `fixed` holds the column names that the query determines, in order. The result overwrites `out`. */
  constructor(caps: Caps, fixed: readonly string[], out: JsonBytes = new JsonBytes(ROWS_ROOM)) {
    this.#caps = caps
    this.#out = out
    out.length = 0
    out.byte(OPEN)
    if (fixed.includes('_id')) this.#columnOf('_id')
    for (const name of fixed) this.#columnOf(name)
  }

  /**
   * Adds the documents of a BSON array, and yields after about every AT_ONCE bytes that are read, or WRITTEN_AT_ONCE
   * bytes that are written. Returns false when the caps are reached. Throws QUERY_FAILED for invalid BSON.
   */
  *addAll(batch: Uint8Array): Generator<undefined, boolean> {
    try {
      return yield* this.#addEach(Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength))
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      throw new AppError('QUERY_FAILED', 'The database sent a document that is not valid BSON.', { cause: error })
    }
  }

  *#addEach(from: Buffer): Generator<undefined, boolean> {
    const end = lengthAt(from, 0) - 1
    let pause = AT_ONCE
    let pauseWritten = this.#out.length + WRITTEN_AT_ONCE
    for (let at = 4; at < end;) {
      const begin = endOfName(from, at + 1) + 1
      const size = lengthAt(from, begin)
      if (this.#ends.length >= this.#caps.rowCap) {
        // This is the one row beyond the cap, which the query requests to detect truncation.
        this.#truncated = true
        return false
      }
      const before = this.#columns.size
      this.#locate(from, begin)
      const start = this.#begin()
      if (size <= AT_ONCE) for (const column of this.#placed) this.#write(column, from)
      else yield* this.#writeInTurns(from)
      if (!this.#end(start, before)) return false
      at = begin + size
      if (at < pause && this.#out.length < pauseWritten) continue
      yield* this.#out.nextSlice()
      pause = at + AT_ONCE
      pauseWritten = this.#out.length + WRITTEN_AT_ONCE
    }
    return true
  }

  /** Starts a row and returns its offset. */
  #begin(): number {
    const out = this.#out
    const start = out.length
    if (start > 1) out.byte(COMMA)
    out.byte(OPEN)
    return start
  }

  /** Adds the row, or removes it if it does not fit. */
  #end(start: number, columnsBefore: number): boolean {
    const out = this.#out
    out.byte(CLOSE)
    const padding = this.#missing + (this.#columns.size - columnsBefore) * this.#ends.length
    if (out.length + padding * NULL_BYTES + 1 > this.#caps.bytesMax) {
      out.length = start
      this.#truncated = true
      this.#forget(columnsBefore)
      return false
    }
    this.#missing = padding
    this.#ends.push(out.length)
    this.#widths.push(this.#columns.size)
    if (this.#id !== null) this.#ids[this.#ends.length - 1] = this.#idAt
    return true
  }

  /** Returns the finished result. Yields like addAll(). */
  *finish(): Generator<undefined, Rows> {
    const columns = [...this.#placed]
    const rows = this.#missing === 0 && this.#id === null ? this.#whole() : yield* this.#again()
    if (this.#id !== null) columns.unshift(...columns.splice(this.#id.place, 1))
    const named = columns.map(({ name, type }): ResultColumn => ({ name, dataType: type ?? 'null' }))
    return { columns: named, rows, rowCount: this.#ends.length, truncated: this.#truncated }
  }

  #whole(): string | Buffer {
    this.#out.byte(CLOSE)
    return this.#out.json()
  }

  /** Writes the rows again, with nulls for later columns and with `_id` first. */
  *#again(): Generator<undefined, string | Buffer> {
    const out = new JsonBytes(this.#out.length + this.#missing * NULL_BYTES + 16)
    let start = 1
    let pause = AT_ONCE
    for (const [n, end] of this.#ends.entries()) {
      out.byte(n === 0 ? OPEN : COMMA)
      out.byte(OPEN)
      this.#rowAgain(n, start + (n === 0 ? 1 : 2), end - 1, out)
      out.byte(CLOSE)
      start = end
      if (out.length < pause) continue
      yield
      pause = out.length + AT_ONCE
    }
    if (this.#ends.length === 0) out.byte(OPEN)
    out.byte(CLOSE)
    return out.json()
  }

  /** Writes the content of one row. */
  #rowAgain(n: number, start: number, end: number, out: JsonBytes): void {
    const { bytes } = this.#out
    let width = this.#widths[n] ?? 0
    if (this.#id === null) copy(bytes, start, end, out)
    else {
      const id = this.#ids[n]
      // The row was written before the column `_id` existed.
      if (id === undefined) {
        width++
        writeAscii(end > start ? 'null,' : 'null', out)
        copy(bytes, start, end, out)
      } else {
        copy(bytes, id.start, id.end, out)
        out.byte(COMMA)
        copy(bytes, start, id.start - 1, out)
        copy(bytes, id.end, end, out)
      }
    }
    for (; width < this.#columns.size; width++) writeAscii(width === 0 ? 'null' : ',null', out)
  }

  /** Finds the value of each column in a document. If a field occurs twice, the last one counts. */
  #locate(from: Buffer, begin: number): void {
    this.#types.fill(0, 0, this.#columns.size)
    const end = begin + lengthAt(from, begin) - 1
    let next = 0
    for (let at = begin + 4, n = 0; at < end; n++) {
      if (n >= FIELDS_MAX) throw tooManyFields()
      const type = from[at] ?? 0
      const nameEnd = endOfName(from, at + 1)
      // Guess the next column, because most documents of an answer have the same fields in the same order.
      const guess = this.#placed[next]
      const isGuess = guess !== undefined && isAt(from, at + 1, nameEnd, guess.bytes)
      if (!isGuess && nameEnd - at > NAME_BYTES_MAX) throw nameTooLong()
      const { place } = isGuess ? guess : this.#columnOf(from.toString('utf8', at + 1, nameEnd))
      next = place + 1
      const size = sizeOf(type, from, nameEnd + 1)
      this.#types[place] = type
      this.#starts[place] = nameEnd + 1
      this.#sizes[place] = size
      at = nameEnd + 1 + size
    }
  }

  #write(column: Column, from: Buffer): void {
    const type = this.#typeIn(column)
    const start = this.#out.length
    try {
      writeValue(type, from, this.#starts[column.place] ?? 0, this.#sizes[column.place] ?? 0, this.#out)
    } catch (error) {
      this.#writeNull(start, error)
    }
    if (column === this.#id) this.#idAt = { start, end: this.#out.length }
  }

  /** Writes each column in slices. Stops writing a row that exceeds the cap. */
  *#writeInTurns(from: Buffer): Generator<undefined, void> {
    let written = 0
    for (const column of this.#placed) {
      const isMissing = this.#types[column.place] === 0
      const size = isMissing ? 0 : (this.#sizes[column.place] ?? 0)
      if (size <= AT_ONCE) this.#write(column, from)
      else yield* this.#writeLarge(column, from, size)
      written += size
      if (written < AT_ONCE) continue
      yield* this.#out.nextSlice()
      written = 0
    }
  }

  *#writeLarge(column: Column, from: Buffer, size: number): Generator<undefined, void> {
    const type = this.#typeIn(column)
    const start = this.#out.length
    try {
      for (const pause of writeLarge(type, from, this.#starts[column.place] ?? 0, size, this.#out)) {
        if (this.#out.length > this.#caps.bytesMax) return
        yield pause
      }
    } catch (error) {
      this.#writeNull(start, error)
    }
    if (column === this.#id) this.#idAt = { start, end: this.#out.length }
  }

  /** Writes the comma, updates the column's type, and returns the type of the value in the current document. */
  #typeIn(column: Column): number {
    if (column.place > 0) this.#out.byte(COMMA)
    const type = this.#types[column.place] ?? 0
    const alias = type === 0 ? 'null' : (ALIASES[type] ?? 'null')
    if (alias !== 'null') column.type = column.type === null || column.type === alias ? alias : 'mixed'
    return type
  }

  /** Writes null for a value with invalid BSON, so that one invalid value does not make the query fail. */
  #writeNull(start: number, error: unknown): void {
    if (!(error instanceof RangeError)) throw error
    this.#out.length = start
    writeAscii('null', this.#out)
  }

  #columnOf(name: string): Column {
    const known = this.#columns.get(name)
    if (known !== undefined) return known
    if (this.#columns.size >= COLUMNS_MAX) {
      throw new AppError(
        'QUERY_FAILED',
        `The documents of the answer have more than ${COLUMNS_MAX} different fields; select the fields you need with $project.`,
      )
    }
    const column: Column = { name, bytes: Buffer.from(name), place: this.#columns.size, type: null }
    this.#nameBytes += bytesAsJson(column)
    if (this.#nameBytes > NAMES_BYTES_MAX) throw namesTooLong()
    this.#columns.set(name, column)
    this.#placed.push(column)
    if (name === '_id' && column.place > 0) this.#id = column
    if (column.place >= this.#types.length) this.#grow()
    this.#types[column.place] = 0
    return column
  }

  #grow(): void {
    const wider = (from: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> => {
      const to = new Int32Array(from.length * 2)
      to.set(from)
      return to
    }
    this.#types = wider(this.#types)
    this.#starts = wider(this.#starts)
    this.#sizes = wider(this.#sizes)
  }

  /** Removes columns that only the rejected row had. */
  #forget(size: number): void {
    for (const column of this.#placed.splice(size)) {
      this.#columns.delete(column.name)
      this.#nameBytes -= bytesAsJson(column)
      if (column === this.#id) this.#id = null
    }
  }
}

function nameTooLong(): AppError {
  return new AppError(
    'QUERY_FAILED',
    `A field of the answer has a name of more than ${NAME_BYTES_MAX} bytes; select the fields you need with $project.`,
  )
}

function bytesAsJson({ name, bytes: { length } }: Column): number {
  return length <= SHORT_NAME_BYTES ? length : Buffer.byteLength(JSON.stringify(name))
}

function namesTooLong(): AppError {
  return new AppError(
    'QUERY_FAILED',
    `The fields of the answer have names of more than ${NAMES_BYTES_MAX} bytes as JSON; select the fields you need with $project.`,
  )
}

function tooManyFields(): AppError {
  return new AppError(
    'QUERY_FAILED',
    `A document of the answer has more than ${FIELDS_MAX} fields; select the fields you need with $project.`,
  )
}

function copy(from: Buffer, start: number, end: number, out: JsonBytes): void {
  from.copy(out.room(end - start), out.length, start, end)
  out.length += end - start
}

function isAt(from: Buffer, start: number, end: number, bytes: Buffer): boolean {
  if (end - start !== bytes.length) return false
  for (let i = 0; i < bytes.length; i++) if (from[start + i] !== bytes[i]) return false
  return true
}
