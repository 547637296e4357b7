// Documents as they come from the database, and the table that is made of them: columns are their top-level fields, in an
// order that does not depend on which document came first (guard/mongodb.md §6). Cut at the caps.
import { AppError } from '../../errors.ts'
import type { ResultColumn, Rows } from '../driver.ts'
import { JsonBytes } from '../json-bytes.ts'
import { ALIASES, endOfName, sizeOf, writeAscii, writeValue } from './values.ts'

const COLUMNS_MAX = 1_000
const CELLS_BYTES = 16 * 1024
const COMMA = 0x2c

export interface Caps {
  readonly rowCap: number
  /** Bytes of JSON of all rows. */
  readonly bytesMax: number
}

interface Column {
  readonly name: string
  readonly place: number
  /** Null while no value but null was seen. */
  type: string | null
}

/** The rows of one query: values are written as they come, and put into their columns at the end. */
export class Result {
  readonly #caps: Caps
  readonly #columns = new Map<string, Column>()
  readonly #cells = new JsonBytes(CELLS_BYTES)
  /** Of each cell: its column, and where it ends in the cells. A row begins where the last one ended. */
  readonly #places: number[] = []
  readonly #ends: number[] = []
  /** Of each row: how many cells there are with it. */
  readonly #rows: number[] = []
  #truncated = false

  /** `fixed`: names that the query itself gives, in their order. */
  constructor(caps: Caps, fixed: readonly string[]) {
    this.#caps = caps
    for (const name of fixed) this.#columnOf(name)
  }

  /** Takes one document. False: nothing more is wanted. */
  add(document: Uint8Array): boolean {
    if (this.#rows.length >= this.#caps.rowCap) {
      // One more than the cap is asked for, to know that there is more.
      this.#truncated = true
      return false
    }
    const from = Buffer.from(document.buffer, document.byteOffset, document.byteLength)
    const end = from.readInt32LE(0) - 1
    for (let at = 4; at < end;) {
      const type = from[at] ?? 0
      const nameEnd = endOfName(from, at + 1)
      const column = this.#columnOf(from.toString('utf8', at + 1, nameEnd))
      const size = sizeOf(type, from, nameEnd + 1)
      this.#write(column, type, from, nameEnd + 1, size)
      at = nameEnd + 1 + size
    }
    this.#rows.push(this.#ends.length)
    if (this.#cells.length <= this.#caps.bytesMax) return true
    this.#truncated = true
    return false
  }

  finish(): Rows {
    const columns = this.#inOrder()
    const slots = new Int32Array(this.#columns.size)
    columns.forEach((column, slot) => (slots[column.place] = slot))
    const out = new JsonBytes(this.#cells.length + 1024)
    out.byte(0x5b)
    let rowCount = 0
    let cell = 0
    // The cell of each slot of this row; a field that a document holds twice counts as its last.
    const row = new Int32Array(columns.length)
    for (const cellsEnd of this.#rows) {
      row.fill(-1)
      for (; cell < cellsEnd; cell++) row[slots[this.#places[cell] ?? 0] ?? 0] = cell
      const before = out.length
      if (rowCount > 0) out.byte(COMMA)
      this.#writeRow(row, out)
      if (out.length + 1 > this.#caps.bytesMax) {
        out.length = before
        this.#truncated = true
        break
      }
      rowCount++
    }
    out.byte(0x5d)
    const named = columns.map(({ name, type }): ResultColumn => ({ name, dataType: type ?? 'null' }))
    return { columns: named, rows: out.toString(), rowCount, truncated: this.#truncated }
  }

  #writeRow(row: Int32Array, out: JsonBytes): void {
    out.byte(0x5b)
    for (let slot = 0; slot < row.length; slot++) {
      if (slot > 0) out.byte(COMMA)
      const cell = row[slot] ?? -1
      if (cell < 0) {
        writeAscii('null', out)
        continue
      }
      const start = cell === 0 ? 0 : (this.#ends[cell - 1] ?? 0)
      const end = this.#ends[cell] ?? start
      this.#cells.bytes.copy(out.room(end - start), out.length, start, end)
      out.length += end - start
    }
    out.byte(0x5d)
  }

  #write(column: Column, type: number, from: Buffer, at: number, size: number): void {
    const alias = ALIASES[type] ?? 'null'
    if (alias !== 'null') column.type = column.type === null || column.type === alias ? alias : 'mixed'
    const before = this.#cells.length
    try {
      writeValue(type, from, at, size, this.#cells)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      this.#cells.length = before
      writeAscii('null', this.#cells)
    }
    this.#places.push(column.place)
    this.#ends.push(this.#cells.length)
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
    const column: Column = { name, place: this.#columns.size, type: null }
    this.#columns.set(name, column)
    return column
  }

  /** `_id` first, then what the query gives, then first seen first. */
  #inOrder(): readonly Column[] {
    const all = [...this.#columns.values()]
    const id = this.#columns.get('_id')
    return id === undefined ? all : [id, ...all.filter((column) => column !== id)]
  }
}
