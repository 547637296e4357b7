// Decides how many rows to read at a time, because a thousand of the longest rows would need too much memory.
import { sql } from 'kysely'
import type { Content } from '../chain/seal.ts'
import { charsOf } from '../make-rows.ts'

const ROWS_MAX = 1_000
export const CHARS_AIM = 1 << 20

/** The size of the first batch, when the length of the rows is unknown. */
export const FIRST_PORTION = 64

/** Returns the size of the next batch, which should have about a million characters. `rows` is the last batch. */
export function nextPortion(rows: readonly Content[]): number {
  if (rows.length === 0) return FIRST_PORTION
  const average = rows.reduce((sum, row) => sum + charsOf(row), 0) / rows.length
  // The next rows may be longer, so a batch has at most twice as many rows as the last one.
  return Math.max(1, Math.min(ROWS_MAX, rows.length * 2, Math.floor(CHARS_AIM / average)))
}

/** Selects the size of a row without reading long texts. */
export const sizeOfRow =
  sql<number>`coalesce(octet_length(query), 0) + coalesce(octet_length(printed), 0) + coalesce(octet_length(detail), 0)`.as(
    'size',
  )

/** Returns how many of the next rows have at most `most` bytes together, but at least 1. */
export function rowsWithin(sizes: readonly number[], most = CHARS_AIM): number {
  let sum = 0
  const over = sizes.findIndex((size) => (sum += size) > most)
  return over === -1 ? sizes.length : Math.max(1, over)
}
