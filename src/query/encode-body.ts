// Pure: writes an answer as one JSON text. The driver already wrote the rows as JSON from the database's bytes. They
// are embedded unchanged, never parsed or serialized again.
import type { Rows } from '../drivers/driver.ts'

/** By the columns of an answer, which answers of one prepared statement share. */
const heads = new WeakMap<Rows['columns'], string>()

export function encode(rows: Rows, durationMs: number): string | Buffer {
  const head = headOf(rows.columns)
  const about = `"rowCount":${rows.rowCount},"truncated":${rows.truncated},"durationMs":${rounded(durationMs)}`
  if (typeof rows.rows === 'string') return `${head}${rows.rows},${about}}`
  return Buffer.concat([Buffer.from(head), rows.rows, Buffer.from(`,${about}}`)])
}

function headOf(columns: Rows['columns']): string {
  const known = heads.get(columns)
  if (known !== undefined) return known
  const head = `{"columns":${JSON.stringify(columns)},"rows":`
  heads.set(columns, head)
  return head
}

/** Rounds to microseconds. */
export function rounded(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000
}
