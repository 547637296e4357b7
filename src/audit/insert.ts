// The statements of the audit's hot path, written once: building them anew for each batch costs more than the insert.
import { CompiledQuery, type Transaction } from 'kysely'
import type { DialectName } from '../store/migrate.ts'
import type { AuditTable, Tables } from '../store/tables.ts'
import { CONTENT, type Content } from './seal.ts'

/** A row at its place; `seq` is null while it has none. */
export type Placed = Content & { readonly chain: string; readonly seq: number | null; readonly link: string }

const COLUMNS = [...CONTENT, 'chain', 'seq', 'link'] as const satisfies readonly (keyof AuditTable)[]
const ROWS_PER_INSERT = 32

export async function insertRows(
  tx: Transaction<Tables>,
  dialect: DialectName,
  rows: readonly Placed[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    const part = rows.slice(from, from + ROWS_PER_INSERT)
    const values = part.flatMap((row) => COLUMNS.map((column) => row[column]))
    await tx.executeQuery(CompiledQuery.raw(insertText(dialect, part.length), values))
  }
}

function insertText(dialect: DialectName, count: number): string {
  const key = `${dialect} ${count}`
  let text = inserts.get(key)
  if (text === undefined) {
    let n = 0
    const mark = dialect === 'sqlite' ? () => '?' : () => `$${++n}`
    const rows = Array.from({ length: count }, () => `(${COLUMNS.map(mark).join(',')})`)
    text = `INSERT INTO audit (${COLUMNS.join(',')}) VALUES ${rows.join(',')}`
    inserts.set(key, text)
  }
  return text
}

const inserts = new Map<string, string>()
