// Writes the documents of an answer as a table (docs/drivers/mongodb.md#values). Columns are the top-level fields. Rows
// are written while documents arrive, up to the limits on rows and bytes.
import { AppError } from '../../../errors.ts'
import type { ResultColumn, Rows } from '../../driver.ts'
import { AT_ONCE, JsonBytes } from '../../json-bytes.ts'
import { writeLarge } from './write-large-value.ts'
import { ALIASES, endOfName, lengthAt, sizeOf, writeAscii, writeValue } from './write-value.ts'

const COLUMNS_MAX = 1_000
/** In bytes. A name is written without yielding, so its length is limited. */
const NAME_BYTES_MAX = 4_096
/**
 * Limits the bytes of all column names together, as JSON. Names of the exposure and of the query are shorter. Computed
 * names, such as those of $arrayToObject, may be longer.
 */
const NAMES_BYTES_MAX = 512 * 1024
/** Escapes are not counted in names of at most this many bytes: 1,000 such names are shorter than NAMES_BYTES_MAX. */
const SHORT_NAME_BYTES = 64
/** Limits the fields of one document, which are found without yielding. Names may repeat in a document. */
const FIELDS_MAX = 10_000
/** Writing pauses after this many bytes of rows. A short document may become a long row of nulls. */
const WRITTEN_AT_ONCE = 4 * AT_ONCE
const ROWS_ROOM = 16 * 1024
const COMMA = 0x2c
const OPEN = 0x5b
const CLOSE = 0x5d
/** The bytes of `,null`. A row gets this text for each column that first appears in a later row. */
const NULL_BYTES = 5

export interface Caps {
  readonly rowCap: number
  /** The limit on the JSON of all rows. */
  readonly bytesMax: number
}

interface Column {
  readonly name: string
  /** The name in UTF-8. */
  readonly bytes: Buffer
  readonly place: number
  /** Null as long as all values of the column are null. */
  type: string | null
}

interface Range {
  readonly start: number
  readonly end: number
}

export class Result {
  readonly #caps: Caps
  readonly #out: JsonBytes
  readonly #columns = new Map<string, Column>()
  /** The columns in the order of the table. */
  readonly #placed: Column[] = []
  /** For each row, where it ends, and the number of columns when it was written. */
  readonly #ends: number[] = []
  readonly #widths: number[] = []
  /** For each column, the type, start and size of its value in the current document. */
  #types = new Int32Array(64)
  #starts = new Int32Array(64)
  #sizes = new Int32Array(64)
  /**
   * The column `_id`, if another column comes first. #ids then has the place of the `_id` of each row in the output.
   */
  #id: Column | null = null
  readonly #ids: (Range | undefined)[] = []
  #idAt: Range = { start: 0, end: 0 }
  #missing = 0
  #nameBytes = 0
  #truncated = false

  /** `fixed` has the names of columns that the query decides, in order. The result overwrites `out`. */
  constructor(caps: Caps, fixed: readonly string[], out: JsonBytes = new JsonBytes(ROWS_ROOM)) {
    this.#caps = caps
    this.#out = out
    out.length = 0
    out.byte(OPEN)
    if (fixed.includes('_id')) this.#columnOf('_id')
    for (const name of fixed) this.#columnOf(name)
  }

  /**
   * `batch` is a BSON array of documents. Yields after about every AT_ONCE bytes read, or WRITTEN_AT_ONCE bytes
   * written. Returns false if a limit is reached. Throws QUERY_FAILED for invalid BSON.
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
        // The query requests one row beyond the limit, so this row shows that there are more rows.
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

  #begin(): number {
    const out = this.#out
    const start = out.length
    if (start > 1) out.byte(COMMA)
    out.byte(OPEN)
    return start
  }

  /** Removes the row again if it does not fit. */
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

  /** Yields like addAll(). */
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

  /** Writes the rows again, with nulls for columns that appeared later, and with `_id` first. */
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

  #rowAgain(n: number, start: number, end: number, out: JsonBytes): void {
    const { bytes } = this.#out
    let width = this.#widths[n] ?? 0
    if (this.#id === null) copy(bytes, start, end, out)
    else {
      const id = this.#ids[n]
      // This row was written before the column `_id` existed.
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

  /** If a field occurs twice in a document, the last one counts. */
  #locate(from: Buffer, begin: number): void {
    this.#types.fill(0, 0, this.#columns.size)
    const end = begin + lengthAt(from, begin) - 1
    let next = 0
    for (let at = begin + 4, n = 0; at < end; n++) {
      if (n >= FIELDS_MAX) throw tooManyFields()
      const type = from[at] ?? 0
      const nameEnd = endOfName(from, at + 1)
      // Most documents of an answer have the same fields in the same order, so guess the next column.
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

  /** Writes each column in slices. Stops if the row exceeds the limit. */
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

  /** Writes the comma, updates the column's type, and returns the type of the current value. */
  #typeIn(column: Column): number {
    if (column.place > 0) this.#out.byte(COMMA)
    const type = this.#types[column.place] ?? 0
    const alias = type === 0 ? 'null' : (ALIASES[type] ?? 'null')
    if (alias !== 'null') column.type = column.type === null || column.type === alias ? alias : 'mixed'
    return type
  }

  /** One value with invalid BSON must not fail the query, so it becomes null. */
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

  /** Removes columns that only the removed row had. */
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
