// The audit's write transaction. On PostgreSQL, several processes may write at the same time, so rows are locked with
// FOR UPDATE, at isolation level read committed. The embedded store has only one writer.
import type { Transaction } from 'kysely'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'

/** A write transaction of the audit. */
export interface Writing {
  readonly tx: Transaction<Tables>
  /** Returns the query. On PostgreSQL, the query then locks the rows that it reads until the transaction ends. */
  locked<Q extends { forUpdate(): Q }>(query: Q): Q
}

/** Runs `work` in a write transaction. The writes are durable once store.settled() resolves. */
export function writing<T>(
  store: Pick<Store, 'commit' | 'dialect'>,
  work: (writing: Writing) => Promise<T>,
): Promise<T> {
  const locked = <Q extends { forUpdate(): Q }>(query: Q): Q =>
    store.dialect === 'postgres' ? query.forUpdate() : query
  return store.commit((tx) => work({ tx, locked }), 'read committed')
}
