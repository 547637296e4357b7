// The audit writes all the time, from several processes: on PostgreSQL it locks the rows that it reads to change them, and
// is not serializable beside that. The embedded store has one writer.
import type { Transaction } from 'kysely'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'

/** A transaction of the audit's. */
export interface Writing {
  readonly tx: Transaction<Tables>
  /** Makes a query lock what it finds until the transaction ends. */
  locked<Q extends { forUpdate(): Q }>(query: Q): Q
}

/** What it wrote is durable when store.settled() is answered. */
export function writing<T>(
  store: Pick<Store, 'commit' | 'dialect'>,
  work: (writing: Writing) => Promise<T>,
): Promise<T> {
  const locked = <Q extends { forUpdate(): Q }>(query: Q): Q =>
    store.dialect === 'postgres' ? query.forUpdate() : query
  return store.commit((tx) => work({ tx, locked }), 'read committed')
}
