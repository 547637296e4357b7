// Deletes many rows without blocking the event loop. SQLite runs a statement synchronously, so a statement that deletes
// all rows at once would keep every request waiting for seconds.
import { setImmediate } from 'node:timers/promises'
import { expressionBuilder, sql, type Expression, type ExpressionBuilder, type SqlBool } from 'kysely'
import type { Store } from './open.ts'
import type { Tables } from './tables.ts'

/** Deleting this many rows takes a few milliseconds. */
export const ROWS_A_PORTION = 500

/**
 * Each portion is a transaction of its own, and other requests run between two portions. If the process stops, the
 * caller must delete the remaining rows later. An index must find the rows, because each portion searches again.
 */
export async function deleteInPortions<T extends keyof Tables & string>(
  store: Pick<Store, 'commit' | 'dialect'>,
  table: T,
  matching: (eb: ExpressionBuilder<Tables, T>) => Expression<SqlBool>,
  portionRows: number = ROWS_A_PORTION,
): Promise<void> {
  const [from, where, rows] = [sql.table(table), matching(expressionBuilder<Tables, T>()), sql.lit(portionRows)]
  // Both stores find a row by its place without an index. In PostgreSQL, a row that was changed in the meantime has
  // another place, so it stays.
  const portion =
    store.dialect === 'sqlite'
      ? sql`delete from ${from} where rowid in (select rowid from ${from} where ${where} limit ${rows})`
      : sql`delete from ${from} where ctid = any(array(select ctid from ${from} where ${where} limit ${rows}))`
  for (;;) {
    const { numAffectedRows = 0n } = await store.commit((tx) => portion.execute(tx), 'read committed')
    if (numAffectedRows < portionRows) return
    await setImmediate()
  }
}
