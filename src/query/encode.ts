// Pure: an answer as one JSON text. The rows are JSON already, written by the driver from the database's own bytes,
// and are put in as they are: never parsed, never written again.
import type { Rows } from '../drivers/driver.ts'

export function encode(rows: Rows, durationMs: number): string | Buffer {
  const head = `{"columns":${JSON.stringify(rows.columns)},"rows":`
  const about = `"rowCount":${rows.rowCount},"truncated":${rows.truncated},"durationMs":${rounded(durationMs)}`
  if (typeof rows.rows === 'string') return `${head}${rows.rows},${about}}`
  return Buffer.concat([Buffer.from(head), rows.rows, Buffer.from(`,${about}}`)])
}

/** To the microsecond. */
export function rounded(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000
}
