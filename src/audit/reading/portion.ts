// Pure: how many rows to read at a time. Most are short, but a query's text may have a quarter of a million characters,
// and a thousand of those would fill the memory.
import type { Content } from '../chain/seal.ts'
import { charsOf } from '../rows.ts'

const ROWS_MAX = 1_000
const CHARS_AIM = 1 << 20

/** Before anything is known of the rows. */
export const FIRST_PORTION = 64

/** After a portion of these rows, the next: about a million characters. */
export function nextPortion(rows: readonly Content[]): number {
  if (rows.length === 0) return FIRST_PORTION
  const average = rows.reduce((sum, row) => sum + charsOf(row), 0) / rows.length
  // At most the double: what comes next may be longer than what came.
  return Math.max(1, Math.min(ROWS_MAX, rows.length * 2, Math.floor(CHARS_AIM / average)))
}
