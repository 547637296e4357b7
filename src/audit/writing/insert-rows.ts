// Compiling an insert statement for audit rows costs more than running it, so these statements are compiled once.
import { CompiledQuery, type Transaction } from 'kysely'
import type { DialectName } from '../../store/migration.ts'
import type { AuditTable, Tables } from '../../store/tables.ts'
import type { Placed } from '../chain/append-rows.ts'
import { CONTENT, contentOf } from '../chain/seal.ts'
import type { Pack } from '../packs.ts'

const COLUMNS = [...CONTENT, 'chain', 'seq', 'link'] as const satisfies readonly (keyof AuditTable)[]
const ROWS_PER_INSERT = 32

export async function insertRows(
  tx: Transaction<Tables>,
  dialect: DialectName,
  rows: readonly Placed[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    const part = rows.slice(from, from + ROWS_PER_INSERT)
    const parameters: unknown[] = []
    for (const { row, chain, seq, link } of part) parameters.push(...contentOf(row), chain, seq, link)
    await tx.executeQuery({ ...insertOf(dialect, part.length), parameters })
  }
}

/** A batch has only a few packs, so each pack has its own statement. */
export async function insertPacks(tx: Transaction<Tables>, packs: readonly Pack[]): Promise<void> {
  for (const pack of packs) await tx.insertInto('audit_packs').values(pack).execute()
}

function insertOf(dialect: DialectName, count: number): CompiledQuery {
  const key = `${dialect} ${count}`
  let insert = inserts.get(key)
  if (insert === undefined) {
    let n = 0
    const mark = dialect === 'sqlite' ? () => '?' : () => `$${++n}`
    const rows = Array.from({ length: count }, () => `(${COLUMNS.map(mark).join(',')})`)
    // If an insert fails, the whole batch is discarded. Without OR ROLLBACK, SQLite would copy every page to be able to
    // undo only this statement.
    const verb = dialect === 'sqlite' ? 'INSERT OR ROLLBACK' : 'INSERT'
    insert = CompiledQuery.raw(`${verb} INTO audit (${COLUMNS.join(',')}) VALUES ${rows.join(',')}`)
    inserts.set(key, insert)
  }
  return insert
}

const inserts = new Map<string, CompiledQuery>()
