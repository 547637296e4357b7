// Pure: decides how many rows to read at a time. Most rows are short, but a row with long texts may have hundreds of
// thousands of characters, and a thousand such rows would exhaust memory.
import type { Content } from '../chain/seal.ts'
import { charsOf } from '../make-rows.ts'

const ROWS_MAX = 1_000
const CHARS_AIM = 1 << 20

/** The size of the first batch, when the length of rows is unknown. */
export const FIRST_PORTION = 64

/**
 * Returns the size of the next batch, computed from the average row length in `rows`, the last batch. Aims at a million
 * characters.
 */
export function nextPortion(rows: readonly Content[]): number {
  if (rows.length === 0) return FIRST_PORTION
  const average = rows.reduce((sum, row) => sum + charsOf(row), 0) / rows.length
  // Each batch at most doubles, because the next rows may be longer.
  return Math.max(1, Math.min(ROWS_MAX, rows.length * 2, Math.floor(CHARS_AIM / average)))
}
