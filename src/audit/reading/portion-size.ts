// Decides how many rows to read at a time. Most rows are short. But some have hundreds of thousands of characters, and
// a thousand of those would need too much memory.
import type { Content } from '../chain/seal.ts'
import { charsOf } from '../make-rows.ts'

const ROWS_MAX = 1_000
/** Reading and writing this many characters takes a few milliseconds. */
export const CHARS_AIM = 1 << 20

/** The size of the first batch. The length of the rows is still unknown. */
export const FIRST_PORTION = 64

/** Returns the size of the next batch, so that it has about a million characters. `rows` is the last batch. */
export function nextPortion(rows: readonly Content[]): number {
  if (rows.length === 0) return FIRST_PORTION
  const average = rows.reduce((sum, row) => sum + charsOf(row), 0) / rows.length
  // The next rows may be longer, so a batch has at most twice as many rows as the last one.
  return Math.max(1, Math.min(ROWS_MAX, rows.length * 2, Math.floor(CHARS_AIM / average)))
}

/** Returns how many of the next rows have about a million characters together: at least one. `sizes` has their sizes. */
export function rowsWithin(sizes: readonly number[]): number {
  let sum = 0
  const over = sizes.findIndex((size) => (sum += size) > CHARS_AIM)
  return over === -1 ? sizes.length : Math.max(1, over)
}
