// Rows that wait to be written, as text and outside of the heap: kept as objects, the thousands of a second keep the
// collector busier than all else that the audit does.
import type { TeamId } from '../../ids.ts'
import { rowOf, textOf, type Content } from '../chain/seal.ts'
import { Counts } from '../counters.ts'
import { PACK_BYTES_MAX } from '../packs.ts'

/** Written at a time: some milliseconds of a transaction, and of deflating. */
const ROWS_MAX = 1_000
const BYTES_FULL = PACK_BYTES_MAX / 4
/** Of a line that is packed. */
const BYTES_MAX = PACK_BYTES_MAX / 2
const BYTES_FIRST = 1 << 14
/** A large buffer made anew for each batch sets off the collector. */
const BYTES_KEPT = BYTES_MAX * 2
const LINE_END = 10

/** Where a line stands. */
export interface Line {
  readonly from: number
  /** Of its end, which is not part of it. */
  readonly to: number
  readonly at: string
}

/** Rows in the order they came, each a line of UTF-8. */
export class Lines {
  readonly counts = new Counts()
  /** By team the answered ones; the others, those of no team and very long ones under null. */
  readonly #of = new Map<TeamId | null, Line[]>()
  #bytes: Buffer
  #used = 0
  #rows = 0

  /** `over`: one that nobody needs any more, whose room is used again. */
  constructor(over: Lines | null) {
    const isOver = over !== null && over.#bytes.length <= BYTES_KEPT
    this.#bytes = isOver ? over.#bytes : Buffer.alloc(0)
  }

  get rows(): number {
    return this.#rows
  }

  get bytes(): number {
    return this.#used
  }

  /** The next row belongs to the next batch. */
  get isFull(): boolean {
    return this.#rows >= ROWS_MAX || this.#used >= BYTES_FULL
  }

  add(row: Content): void {
    const text = textOf(row)
    // No character takes more than three bytes.
    const needed = this.#used + text.length * 3 + 1
    if (needed > this.#bytes.length) this.#grow(needed)
    const from = this.#used
    const to = from + this.#bytes.write(text, from)
    this.#bytes[to] = LINE_END
    this.#used = to + 1
    this.#rows++
    // A refusal is looked for by its id, and stays a row.
    const team = row.outcome === 'ANSWERED' && to - from <= BYTES_MAX ? row.team_id : null
    const theirs = this.#of.get(team)
    if (theirs === undefined) this.#of.set(team, [{ from, to, at: row.at }])
    else theirs.push({ from, to, at: row.at })
    this.counts.add(row)
  }

  get teams(): ReadonlyMap<TeamId | null, readonly Line[]> {
    return this.#of
  }

  text({ from, to }: Line): Uint8Array {
    return this.#bytes.subarray(from, to)
  }

  /** These lines, each with its end. */
  textOf(lines: readonly Line[]): Uint8Array {
    if (lines.length === this.#rows) return this.#bytes.subarray(0, this.#used)
    return Buffer.concat(lines.map(({ from, to }) => this.#bytes.subarray(from, to + 1)))
  }

  /** Made to rows again. */
  rowOf({ from, to }: Line): Content {
    return rowOf(this.#bytes.toString('utf8', from, to))
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, BYTES_FIRST, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#used)
    this.#bytes = larger
  }
}
