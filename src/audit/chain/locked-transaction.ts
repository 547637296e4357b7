// The transaction in which audit rows are written. On PostgreSQL, several processes may write at the same time, so it
// locks rows with FOR UPDATE. SQLite has only one writer.
import type { Transaction } from 'kysely'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'

export interface Writing {
  readonly tx: Transaction<Tables>
  /** Returns the query. On PostgreSQL, the query locks the rows that it reads until the transaction ends. */
  locked<Q extends { forUpdate(): Q }>(query: Q): Q
}

/** The writes are on disk after store.settled() has resolved. */
export function writing<T>(
  store: Pick<Store, 'commit' | 'dialect'>,
  work: (writing: Writing) => Promise<T>,
): Promise<T> {
  const locked = <Q extends { forUpdate(): Q }>(query: Q): Q =>
    store.dialect === 'postgres' ? query.forUpdate() : query
  return store.commit((tx) => work({ tx, locked }), 'read committed')
}
