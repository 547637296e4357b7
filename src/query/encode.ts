// Pure: an answer as one JSON text. The rows are JSON already, written by the driver from the database's own bytes,
// and are put in as they are: never parsed, never written again.
import type { Rows } from '../drivers/driver.ts'

export function encode(rows: Rows, durationMs: number): string {
  const about = `"rowCount":${rows.rowCount},"truncated":${rows.truncated},"durationMs":${rounded(durationMs)}`
  return `{"columns":${JSON.stringify(rows.columns)},"rows":${rows.rows},${about}}`
}

/** To the microsecond. */
export function rounded(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000
}
