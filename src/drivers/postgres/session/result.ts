// Receives the rows of a query. For a caller, writes them as JSON while they arrive, and cuts the answer at the caps.
// For catalog queries, collects them as strings.
import { setImmediate as turn } from 'node:timers/promises'
import type { ResultColumn, Rows } from '../../driver.ts'
import { AT_ONCE, type JsonBytes, type WriteValue } from '../../json-bytes.ts'
import type { Field } from './protocol-messages.ts'
import type { RecordShape } from '../confined-query.ts'
import type { ColumnType, TypeBook } from './result-types.ts'
import { arrayWriter, compositeWriter } from './write-nested-value.ts'
import { rowColumn, writeLongRow, writeRow, type RowColumn } from './write-row.ts'
import type { Sink } from './wire.ts'

/** The oids of the types record and record[]. */
const [RECORD, RECORDS] = [2249, 2287]
const COMMA = 0x2c
const OPEN = 0x5b
const CLOSE = 0x5d

export interface Caps {
  readonly rowCap: number
  /** The maximum number of bytes of all rows as JSON. */
  readonly bytesMax: number
}

interface Layout {
  readonly types: TypeBook
  readonly columns: readonly ResultColumn[]
  readonly writers: readonly RowColumn[]
}

/** The layout of an answer by its description. A prepared statement has the same description object each time. */
const layouts = new WeakMap<readonly Field[], Layout>()

/** Writes the rows of one query as JSON. If the type of a column must be looked up, the rows wait for writeHeld(). */
export class Result implements Sink {
  readonly #caps: Caps
  readonly #types: TypeBook
  readonly #out: JsonBytes
  readonly #records: ReadonlyMap<number, RecordShape>
  #fields: readonly Field[] = []
  #columns: readonly ResultColumn[] = []
  #writers: readonly RowColumn[] = []
  #unknown: readonly number[] = []
  #held: Buffer[] | null = null
  #heldBytes = 0
  #seen = 0
  #rowCount = 0
  #truncated = false

  /** Writes from the beginning of `out`. `records` has the shapes of columns of type record. */
  constructor(caps: Caps, types: TypeBook, out: JsonBytes, records: ReadonlyMap<number, RecordShape> = new Map()) {
    this.#caps = caps
    this.#types = types
    this.#out = out
    this.#records = records
    out.length = 0
    out.byte(OPEN)
  }

  /** The types that must be looked up before writeHeld(). */
  get unknown(): readonly number[] {
    return this.#unknown
  }

  /** Returns the greatest length of a row that may still fit. The JSON of a bytea is two thirds as long as its text. */
  rowBytesMax(): number {
    const left = this.#caps.bytesMax - (this.#held === null ? this.#out.length : this.#heldBytes)
    return left * 1.5 + 4 * this.#fields.length + 64
  }

  describe(fields: readonly Field[]): void {
    this.#fields = fields
    const known = layouts.get(fields)
    if (known?.types === this.#types) {
      this.#columns = known.columns
      this.#writers = known.writers
      return
    }
    const oids = [
      ...fields.map((field) => field.typeOid),
      ...[...this.#records.values()].flatMap(({ columns }) => columns.map((column) => column.typeOid)),
    ]
    const unknown = oids.filter((oid) => this.#types.find(oid) === undefined)
    if (unknown.length === 0) return this.#resolve()
    this.#unknown = [...new Set(unknown)]
    this.#held = []
  }

  row(from: Buffer, start: number, end: number): boolean {
    const skipped = this.#skipped()
    if (skipped !== null) return skipped
    if (this.#held !== null) return this.#hold(Buffer.from(from.subarray(start, end)))
    const before = this.#begin()
    writeRow(from, start, end, this.#writers, this.#caps.bytesMax, this.#out)
    return this.#end(before)
  }

  *longRow(body: Buffer): Generator<undefined, boolean> {
    const skipped = this.#skipped()
    if (skipped !== null) return skipped
    return this.#held === null ? yield* this.#writeLong(body) : this.#hold(body)
  }

  beforeNext(): Generator<undefined, true> | null {
    return this.#out.needsRoom ? this.#makeRoom() : null
  }

  *#makeRoom(): Generator<undefined, true> {
    yield* this.#out.nextSlice()
    return true
  }

  /** Counts a row. Returns null if it must be written. Otherwise returns the result for row(). */
  #skipped(): boolean | null {
    this.#seen++
    if (this.#truncated) return this.#held !== null
    if (this.#seen <= this.#caps.rowCap) return null
    // The query returns one row more than the cap, to show that there are more.
    this.#truncated = true
    return true
  }

  #hold(body: Buffer): true {
    this.#heldBytes += body.length
    if (this.#heldBytes <= this.#caps.bytesMax * 1.5) this.#held?.push(body)
    else this.#truncated = true
    return true
  }

  /**
   * Returns whether to read on. Rows that wait for their types need the session again, so the rest is read and dropped.
   */
  tooLong(): boolean {
    this.#truncated = true
    return this.#held !== null || this.#seen >= this.#caps.rowCap
  }

  /** Writes the rows that waited for their types. Yields to the event loop after each slice. */
  async writeHeld(): Promise<void> {
    const held = this.#held ?? []
    this.#held = null
    this.#resolve()
    for (const slice of this.#writeEach(held)) await turn(slice)
  }

  *#writeEach(rows: readonly Buffer[]): Generator<undefined, void> {
    let bytes = 0
    for (const row of rows) {
      if (!(yield* this.#writeLong(row))) return
      bytes += row.length
      if (bytes < AT_ONCE) continue
      yield* this.#out.nextSlice()
      bytes = 0
    }
  }

  /** Returns the answer. If rows wait for their types, call writeHeld() first. */
  finish(): Rows {
    this.#out.byte(CLOSE)
    const { json, release } = this.#out.lend()
    const rows = { columns: this.#columns, rows: json, rowCount: this.#rowCount, truncated: this.#truncated }
    return release === undefined ? rows : { ...rows, release }
  }

  #resolve(): void {
    this.#columns = this.#fields.map(({ name, typeOid }) => ({ name, dataType: this.#type(typeOid).name }))
    this.#writers = this.#fields.map(({ typeOid }, index) =>
      rowColumn(this.#recordWriter(index, typeOid) ?? this.#type(typeOid).write),
    )
    layouts.set(this.#fields, { types: this.#types, columns: this.#columns, writers: this.#writers })
  }

  #type(oid: number): ColumnType {
    const type = this.#types.find(oid)
    if (type === undefined) throw new Error(`type ${oid} was not looked up`)
    return type
  }

  /** Returns the writer for a column of type record whose shape is known. */
  #recordWriter(index: number, typeOid: number): WriteValue | undefined {
    const shape = this.#records.get(index)
    if (shape === undefined || typeOid !== (shape.isList ? RECORDS : RECORD)) return undefined
    const row = compositeWriter(
      shape.columns.map((column) => ({ name: column.name, write: this.#type(column.typeOid).write })),
    )
    return shape.isList ? arrayWriter(row, COMMA) : row
  }

  *#writeLong(body: Buffer): Generator<undefined, boolean> {
    const before = this.#begin()
    yield* writeLongRow(body, 0, body.length, this.#writers, this.#caps.bytesMax, this.#out)
    return this.#end(before)
  }

  /** Starts a row and returns its offset. */
  #begin(): number {
    const before = this.#out.length
    if (this.#rowCount > 0) this.#out.byte(COMMA)
    return before
  }

  /** Ends a row. If the answer exceeds the byte cap, removes the row and returns false. */
  #end(before: number): boolean {
    const out = this.#out
    // One byte is for the closing bracket.
    if (out.length + 1 > this.#caps.bytesMax) {
      out.length = before
      this.#truncated = true
      return false
    }
    this.#rowCount++
    return true
  }
}

/** Collects the rows of each statement as strings. */
export class Texts implements Sink {
  readonly answers: (string | null)[][][] = []
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  rowBytesMax(): number {
    return this.#bytesMax - this.#bytes
  }

  describe(): void {
    this.answers.push([])
  }

  row(from: Buffer, start: number, end: number): boolean {
    this.#bytes += end - start
    const cells: (string | null)[] = []
    let at = start + 2
    for (let left = from.readUInt16BE(start); left > 0; left--) {
      const length = from.readInt32BE(at)
      at += 4
      if (at + length > end) throw new RangeError('a value that ends behind its row')
      cells.push(length < 0 ? null : from.toString('utf8', at, at + length))
      at += Math.max(length, 0)
    }
    this.answers.at(-1)?.push(cells)
    return this.#bytes <= this.#bytesMax
  }

  tooLong(): boolean {
    return false
  }
}
