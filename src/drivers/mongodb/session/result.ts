// Documents as they come from the database, and the table that is made of them: columns are their top-level fields, in an
// order that does not depend on which document came first (guard/mongodb.md §6). Written while they arrive, cut at the caps.
import { AppError } from '../../../errors.ts'
import type { ResultColumn, Rows } from '../../driver.ts'
import { JsonBytes } from '../../json-bytes.ts'
import { cellsOf } from './cells.ts'
import { ALIASES, endOfName, lengthAt, sizeOf, writeAscii, writeValue } from './values.ts'

const COLUMNS_MAX = 1_000
const ROWS_ROOM = 16 * 1024
const COMMA = 0x2c
const OPEN = 0x5b
const CLOSE = 0x5d
/** `,null`: what a row grows by for a column that came after it. */
const NULL_BYTES = 5

export interface Caps {
  readonly rowCap: number
  /** Bytes of JSON of all rows. */
  readonly bytesMax: number
}

interface Column {
  readonly name: string
  /** The name as BSON holds it. */
  readonly bytes: Buffer
  readonly place: number
  /** Null while no value but null was seen. */
  type: string | null
}

/** The rows of one query. */
export class Result {
  readonly #caps: Caps
  readonly #out: JsonBytes
  readonly #columns = new Map<string, Column>()
  /** The same, by place. */
  readonly #placed: Column[] = []
  /** Of each row: where it ends, and how many columns there were when it was written. */
  readonly #ends: number[] = []
  readonly #widths: number[] = []
  /** Of the document at hand, by the place of the column: type, where its value begins, its size. */
  #types = new Int32Array(64)
  #starts = new Int32Array(64)
  #sizes = new Int32Array(64)
  #missing = 0
  #truncated = false

  /** `fixed`: names that the query itself gives, in their order. Writes into `out`, from its beginning. */
  constructor(caps: Caps, fixed: readonly string[], out: JsonBytes = new JsonBytes(ROWS_ROOM)) {
    this.#caps = caps
    this.#out = out
    out.length = 0
    out.byte(OPEN)
    if (fixed.includes('_id')) this.#columnOf('_id')
    for (const name of fixed) this.#columnOf(name)
  }

  /** Takes the documents of a BSON array. False: nothing more is wanted. Throws QUERY_FAILED for what is none. */
  addAll(batch: Uint8Array): boolean {
    try {
      return this.#addEach(Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength))
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      throw new AppError('QUERY_FAILED', 'The database sent a document that is no BSON.', { cause: error })
    }
  }

  #addEach(from: Buffer): boolean {
    const end = lengthAt(from, 0) - 1
    for (let at = 4; at < end;) {
      const start = endOfName(from, at + 1) + 1
      if (!this.#add(from, start)) return false
      at = start + lengthAt(from, start)
    }
    return true
  }

  /** Takes the document that begins there. */
  #add(from: Buffer, begin: number): boolean {
    if (this.#ends.length >= this.#caps.rowCap) {
      // One more than the cap is asked for, to know that there is more.
      this.#truncated = true
      return false
    }
    const before = this.#columns.size
    this.#locate(from, begin)
    const out = this.#out
    const start = out.length
    if (start > 1) out.byte(COMMA)
    out.byte(OPEN)
    for (const column of this.#placed) this.#write(column, from)
    out.byte(CLOSE)
    const padding = this.#missing + (this.#columns.size - before) * this.#ends.length
    if (out.length + padding * NULL_BYTES + 1 > this.#caps.bytesMax) {
      out.length = start
      this.#truncated = true
      this.#forget(before)
      return false
    }
    this.#missing = padding
    this.#ends.push(out.length)
    this.#widths.push(this.#columns.size)
    return true
  }

  finish(): Rows {
    const columns = [...this.#placed]
    const id = this.#columns.get('_id')
    const isInOrder = id === undefined || id.place === 0
    const rows = this.#missing === 0 && isInOrder ? this.#whole() : this.#again(isInOrder ? 0 : id.place)
    if (!isInOrder) columns.unshift(...columns.splice(id.place, 1))
    const named = columns.map(({ name, type }): ResultColumn => ({ name, dataType: type ?? 'null' }))
    return { columns: named, rows, rowCount: this.#ends.length, truncated: this.#truncated }
  }

  #whole(): string | Buffer {
    this.#out.byte(CLOSE)
    return this.#out.json()
  }

  /** The rows with nulls for the columns that came after them, and the column of this place in front. */
  #again(first: number): string | Buffer {
    const { bytes } = this.#out
    const out = new JsonBytes(this.#out.length + this.#missing * NULL_BYTES + 16)
    let start = 1
    this.#ends.forEach((end, n) => {
      const cells = first === 0 ? null : cellsOf(bytes, start + (n === 0 ? 1 : 2), end - 1)
      out.byte(n === 0 ? OPEN : COMMA)
      out.byte(OPEN)
      if (cells === null) copy(bytes, start + (n === 0 ? 1 : 2), end - 1, out)
      else {
        const [cell] = cells.splice(first, 1)
        const inFront = cell ?? { start: 0, end: 0 }
        if (cell === undefined) writeAscii('null', out)
        else copy(bytes, inFront.start, inFront.end, out)
        for (const other of cells) {
          out.byte(COMMA)
          copy(bytes, other.start, other.end, out)
        }
      }
      const there = Math.max(this.#widths[n] ?? 0, cells === null ? 0 : cells.length + 1)
      for (let column = there; column < this.#columns.size; column++) writeAscii(column === 0 ? 'null' : ',null', out)
      out.byte(CLOSE)
      start = end
    })
    if (this.#ends.length === 0) out.byte(OPEN)
    out.byte(CLOSE)
    return out.json()
  }

  /** Finds the values of a document by their columns; of a field that it holds twice the last counts. */
  #locate(from: Buffer, begin: number): void {
    this.#types.fill(0, 0, this.#columns.size)
    const end = begin + lengthAt(from, begin) - 1
    let next = 0
    for (let at = begin + 4; at < end;) {
      const type = from[at] ?? 0
      const nameEnd = endOfName(from, at + 1)
      // Most documents of one answer have the same fields in the same order.
      const guess = this.#placed[next]
      const isGuess = guess !== undefined && isAt(from, at + 1, nameEnd, guess.bytes)
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
    const { place } = column
    const out = this.#out
    if (place > 0) out.byte(COMMA)
    const type = this.#types[place] ?? 0
    const alias = type === 0 ? 'null' : (ALIASES[type] ?? 'null')
    if (alias === 'null') return writeAscii('null', out)
    column.type = column.type === null || column.type === alias ? alias : 'mixed'
    const before = out.length
    try {
      writeValue(type, from, this.#starts[place] ?? 0, this.#sizes[place] ?? 0, out)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      // What is no BSON within a value stands as null; one bad stored value fails no query.
      out.length = before
      writeAscii('null', out)
    }
  }

  #columnOf(name: string): Column {
    const known = this.#columns.get(name)
    if (known !== undefined) return known
    if (this.#columns.size >= COLUMNS_MAX) {
      throw new AppError(
        'QUERY_FAILED',
        `The documents of the answer have more than ${COLUMNS_MAX} different fields; choose those you need by $project.`,
      )
    }
    const column: Column = { name, bytes: Buffer.from(name), place: this.#columns.size, type: null }
    this.#columns.set(name, column)
    this.#placed.push(column)
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

  /** Columns that only the row had that did not fit. */
  #forget(size: number): void {
    for (const { name } of this.#placed.splice(size)) this.#columns.delete(name)
  }
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
