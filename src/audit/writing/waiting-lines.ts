// A batch of rows that wait to be written. Each row is a line of text in a buffer outside the JavaScript heap, because
// thousands of row objects per second would keep the garbage collector busy.
import type { TeamId } from '../../ids.ts'
import { rowOf, textOf, type Content } from '../chain/seal.ts'
import { Counts } from '../usage-by-day.ts'
import { PACK_BYTES_MAX } from '../packs.ts'

/** Compressing and writing more rows at once would block the event loop for too long. */
const ROWS_MAX = 1_000
const BYTES_FULL = PACK_BYTES_MAX / 4
const BYTES_MAX = PACK_BYTES_MAX / 2
const BYTES_FIRST = 1 << 14
/** A buffer up to this size is reused for another batch. */
const BYTES_KEPT = BYTES_MAX * 2
const LINE_END = 10

export interface Line {
  readonly from: number
  readonly to: number
  readonly at: string
}

export class Lines {
  readonly counts = new Counts()
  /** By performance.now(). */
  readonly since = performance.now()
  /** The key null has lines that cannot be packed: refused and failed rows, rows without a team, and very long rows. */
  readonly #of = new Map<TeamId | null, Line[]>()
  #bytes: Buffer
  #used = 0
  #rows = 0

  /** Reuses the buffer of the batch `over`, which must be written already. */
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

  get isFull(): boolean {
    return this.#rows >= ROWS_MAX || this.#used >= BYTES_FULL
  }

  add(row: Content): void {
    const text = textOf(row)
    // A UTF-16 code unit takes at most three bytes in UTF-8.
    const needed = this.#used + text.length * 3 + 1
    if (needed > this.#bytes.length) this.#grow(needed)
    const from = this.#used
    const to = from + this.#bytes.write(text, from)
    this.#bytes[to] = LINE_END
    this.#used = to + 1
    this.#rows++
    // Refused and failed rows are often looked up by id, so they are not packed.
    const team = row.outcome === 'ANSWERED' && to - from <= BYTES_MAX ? row.team_id : null
    const teamLines = this.#of.get(team)
    if (teamLines === undefined) this.#of.set(team, [{ from, to, at: row.at }])
    else teamLines.push({ from, to, at: row.at })
    this.counts.add(row)
  }

  get teams(): ReadonlyMap<TeamId | null, readonly Line[]> {
    return this.#of
  }

  text({ from, to }: Line): Uint8Array {
    return this.#bytes.subarray(from, to)
  }

  /** The text includes the line breaks. */
  textOf(lines: readonly Line[]): Uint8Array {
    if (lines.length === this.#rows) return this.#bytes.subarray(0, this.#used)
    return Buffer.concat(lines.map(({ from, to }) => this.#bytes.subarray(from, to + 1)))
  }

  rowOf({ from, to }: Line): Content {
    return rowOf(this.#bytes.toString('utf8', from, to))
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, BYTES_FIRST, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#used)
    this.#bytes = larger
  }
}
