// Opens Vitrine's own database, which is SQLite or PostgreSQL. Other files read through `db`, and write only with
// write(), append(), commit() or later().
import { setTimeout } from 'node:timers/promises'
import { Kysely, type Transaction } from 'kysely'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import { Durations } from '../metric-types.ts'
import { migrate, requireMigrated } from './migrate.ts'
import type { DialectName } from './migration.ts'
import { contended, isContended, openPostgres, postgresFailure, attemptsFor } from './postgres.ts'
import type { ServerLog } from './postgres-server.ts'
import { openAnnouncements } from './announce-changes.ts'
import { storeFileFailure } from './data-folder.ts'
import { CACHE_MAX_AGE_MS, recallFor } from './read-cache.ts'
import { openSqlite, type Sqlite } from './sqlite.ts'
import type { Tables } from './tables.ts'

type Isolation = 'serializable' | 'read committed'

export interface Store extends AsyncDisposable {
  /** Only for reads. Within write(), use only `tx`: SQLite has one connection, so `db` would wait for ever. */
  readonly db: Kysely<Tables>
  readonly dialect: DialectName
  /**
   * Runs a serializable transaction, and then clears the cache of all processes. On PostgreSQL, `work` may run again
   * after a serialization failure, so it must have no other side effects. Throws OVERLOADED if the disk is full or all
   * retries fail. Then nothing is stored.
   */
  write<T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T>
  /**
   * Runs a transaction without clearing the cache, for rows that are never cached, such as audit rows. On SQLite, other
   * work continues while the disk syncs. If the sync fails, the rows may still be stored. Use `read committed` if the
   * transaction locks the rows that it reads. SQLite is always serializable.
   */
  append<T>(work: (tx: Transaction<Tables>) => Promise<T>, isolation?: Isolation): Promise<T>
  /**
   * Like append(), but the rows survive a power failure only after a later settled(). One settled() is enough for many
   * commits.
   */
  commit<T>(work: (tx: Transaction<Tables>) => Promise<T>, isolation?: Isolation): Promise<T>
  settled(): Promise<void>
  /** Runs a small write in the background. Closing the store waits for it. Errors go to `lost` of openStore(). */
  later(work: (db: Kysely<Tables>) => Promise<unknown>): void
  /**
   * Returns a cached value, or loads it. Concurrent loads of a key share one load. write() and forget() clear the
   * cache. On PostgreSQL, entries also expire within 1 s. All values of a key must have the same type.
   */
  recall<T>(key: string, load: () => Promise<T>): Promise<T>
  /** Loads nothing. */
  known<T>(key: string): T | undefined
  forget(): void
  /** Runs a statement on counters. Counts may be lost if the database crashes. Null on SQLite. */
  readonly count: ((text: string, values: readonly unknown[]) => Promise<readonly unknown[]>) | null
  /** Null on PostgreSQL. */
  readonly copyTo: ((path: string) => Promise<void>) | null
  readonly meter: StoreMeter
}

interface StoreMeter {
  readonly statements: Durations
  readonly transactions: Durations
  failures: number
  /** False while the database server does not answer. */
  readonly isUp: boolean
}

/** The random delay before a retry grows by up to this per attempt, so that transactions do not collide again. */
const PAUSE_MS = 5

/**
 * On SQLite, also locks the data folder. With `asIs`, the store is not changed, and must have the schema of this
 * version. `admit` may reject the store before anything is written. Errors are for the operator.
 */
export async function openStore(
  config: Pick<Config, 'dataDir' | 'databaseUrl'>,
  options: {
    readonly lost?: (error: unknown) => void
    readonly log?: ServerLog
    readonly asIs?: boolean
    readonly admit?: (db: Kysely<Tables>) => Promise<void>
    /** The maximum age of cached values, in case the announcement of a change is lost. */
    readonly maxAgeMs?: number
  } = {},
): Promise<Store> {
  const { dataDir, databaseUrl } = config
  const opened = databaseUrl === null ? openSqlite(dataDir, options) : await openPostgres(databaseUrl, options.log)
  const sqlite = 'synced' in opened ? opened : null
  const shared = 'server' in opened ? opened : null
  const dialect = sqlite === null ? 'postgres' : 'sqlite'
  const [statements, transactions] = [new Durations(), new Durations()]
  const meter = {
    statements,
    transactions,
    failures: 0,
    get isUp() {
      return shared?.server.isAvailable ?? true
    },
  }
  const db = new Kysely<Tables>({
    dialect: opened.dialect,
    log: ({ level, queryDurationMillis }) => {
      statements.add(queryDurationMillis)
      if (level === 'error') meter.failures++
    },
  })
  try {
    await options.admit?.(db)
    if (options.asIs === true) await requireMigrated(db)
    else await migrate(db, dialect)
  } catch (error) {
    await db.destroy()
    const failure = databaseUrl === null ? storeFileFailure(dataDir, error) : await postgresFailure(databaseUrl, error)
    throw failure ?? error
  }
  const { recall, known, forget } = recallFor(dialect === 'sqlite' ? Infinity : (options.maxAgeMs ?? CACHE_MAX_AGE_MS))
  shared?.server.bound()
  shared?.counters.bound()
  const announcements = shared === null ? null : openAnnouncements(shared.makeClient, forget)
  // Nothing is cached yet. From now on, announcements of other processes clear the cache.
  await announcements?.ready
  const transact = <T>(work: (tx: Transaction<Tables>) => Promise<T>, isolation: Isolation = 'serializable') =>
    sqlite === null ? retried(db, work, isolation) : db.transaction().execute(work)
  const timed = async <T>(work: () => Promise<T>): Promise<T> => {
    const began = performance.now()
    try {
      return await withPublicErrors(work)
    } finally {
      transactions.add(performance.now() - began)
    }
  }
  const pending = new Set<Promise<unknown>>()
  const commit: Store['commit'] = (work, isolation) =>
    timed(() => (sqlite === null ? transact(work, isolation) : commitWithoutSync(sqlite, db, work)))
  const later: Store['later'] = (work) => {
    const task: Promise<unknown> = work(db)
      .catch((error: unknown) => options.lost?.(error))
      .finally(() => pending.delete(task))
    pending.add(task)
  }
  const settled = async () => {
    await sqlite?.synced()
  }

  return {
    db,
    dialect,
    async append(work, isolation) {
      const done = await commit(work, isolation)
      await settled()
      return done
    },
    commit,
    settled,
    count: shared === null ? null : (text, values) => shared.counters.query(text, values),
    copyTo: sqlite === null ? null : (path) => sqlite.copyTo(path),
    recall,
    known,
    forget() {
      forget()
      if (announcements !== null) later((tx) => announcements.announce(tx))
    },
    async write(work) {
      const announced = async (tx: Transaction<Tables>) => {
        const result = await work(tx)
        await announcements?.announce(tx)
        return result
      }
      try {
        return await timed(() => transact(announced))
      } finally {
        // Clear the cache even after an error, because the commit may have succeeded and only its answer was lost.
        forget()
      }
    },
    later,
    meter,
    async [Symbol.asyncDispose]() {
      await Promise.all(pending)
      await announcements?.[Symbol.asyncDispose]()
      await shared?.counters.end()
      await db.destroy()
    },
  }
}

async function withPublicErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isDiskFull(error)) throw diskFull(error)
    throw isContended(error) ? contended(error) : error
  }
}

function commitWithoutSync<T>(
  sqlite: Sqlite,
  db: Kysely<Tables>,
  work: (tx: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  // SQLite has only one connection. While this transaction uses it, no other transaction can commit without waiting for
  // the disk.
  return db.connection().execute(async (connection) => {
    sqlite.waits(false)
    try {
      return await connection.transaction().execute(work)
    } finally {
      sqlite.waits(true)
    }
  })
}

/** SQLITE_FULL and SQLITE_IOERR_WRITE of SQLite, and disk_full of PostgreSQL. */
function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('errcode' in error) return error.errcode === 13 || error.errcode === 778
  return 'code' in error && error.code === '53100'
}

function diskFull(cause: unknown): AppError {
  return new AppError(
    'OVERLOADED',
    'The disk of the service is full. Nothing was changed. An operator must free disk space.',
    {
      extra: { retryAfter: DISK_FULL_RETRY_SECONDS },
      cause,
    },
  )
}

const DISK_FULL_RETRY_SECONDS = 10

async function retried<T>(
  db: Kysely<Tables>,
  work: (tx: Transaction<Tables>) => Promise<T>,
  isolation: Isolation,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await db.transaction().setIsolationLevel(isolation).execute(work)
    } catch (error) {
      if (tried >= attemptsFor(error)) throw error
      await setTimeout(Math.random() * PAUSE_MS * tried)
    }
  }
}
