// Opens Vitrine's own database: the embedded file, or PostgreSQL. The one place that knows which; rooms run their own
// SQL on `db`, and change things only within write() or append().
import { setTimeout } from 'node:timers/promises'
import { Kysely, type Transaction } from 'kysely'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import { migrate, requireMigrated, type DialectName } from './migrate.ts'
import { contended, isContended, openPostgres, postgresFailure, triesWorth } from './postgres.ts'
import { recallFor } from './recall.ts'
import { openSqlite, type Sqlite } from './sqlite.ts'
import type { Tables } from './tables.ts'

type Isolation = 'serializable' | 'read committed'

export interface Store extends AsyncDisposable {
  /** For reading. Within write() use its `tx` alone: the embedded store has one connection, and would wait for itself. */
  readonly db: Kysely<Tables>
  readonly dialect: DialectName
  /**
   * One durable, serializable transaction; when it is answered, everything recalled before is forgotten. On PostgreSQL
   * `work` may be run again after a lost race, so it must change nothing but the store. Throws OVERLOADED where there is
   * no room to write, and where the race was lost too often; nothing of it is then kept.
   */
  write<T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T>
  /**
   * A durable transaction for rows that nobody recalls (audit, progress): forgets nothing. On the embedded store nobody
   * else waits for the disk meanwhile; where that fails the transaction may hold all the same. `read committed` is for
   * those that lock what they read before they change it; the embedded store knows no isolation but serializable.
   */
  append<T>(work: (tx: Transaction<Tables>) => Promise<T>, isolation?: Isolation): Promise<T>
  /** As append(), but what it wrote is safe from a power cut only once settled() is answered, for many of them at once. */
  commit<T>(work: (tx: Transaction<Tables>) => Promise<T>, isolation?: Isolation): Promise<T>
  settled(): Promise<void>
  /** A small write that nobody waits for (last use); done before the store is closed, an error goes to `lost`. */
  later(work: (db: Kysely<Tables>) => Promise<unknown>): void
  /**
   * What was read lately: concurrent loads are shared; forgotten by write() and forget(); on PostgreSQL nothing older
   * than 1 s is used, as another process may have written. Bounded. A key stands for one kind of value.
   */
  recall<T>(key: string, load: () => Promise<T>): Promise<T>
  forget(): void
}

/** A change is seen by other replicas within one second (session-interface.md §6, end), the time to read it included. */
const OTHERS_UNSEEN_MS = 750
/** Between two tries, times their number: those that lost together do not meet again. */
const PAUSE_MS = 5

/**
 * Takes the lock of the data folder, migrates. `asIs`: the store must be there and of this version, nothing is made or
 * changed. `admit` may refuse the store before anything is written to it. Throws an Error of one clear sentence where it
 * cannot.
 */
export async function openStore(
  config: Pick<Config, 'dataDir' | 'databaseUrl'>,
  options: {
    readonly lost?: (error: unknown) => void
    readonly asIs?: boolean
    readonly admit?: (db: Kysely<Tables>) => Promise<void>
  } = {},
): Promise<Store> {
  const { dataDir, databaseUrl } = config
  const opened = databaseUrl === null ? openSqlite(dataDir, options) : { dialect: await openPostgres(databaseUrl) }
  const sqlite = 'synced' in opened ? opened : null
  const dialect = sqlite === null ? 'postgres' : 'sqlite'
  const db = new Kysely<Tables>({ dialect: opened.dialect })
  try {
    await options.admit?.(db)
    if (options.asIs === true) await requireMigrated(db)
    else await migrate(db, dialect)
  } catch (error) {
    await db.destroy()
    throw databaseUrl === null ? error : ((await postgresFailure(databaseUrl, error)) ?? error)
  }
  const { recall, forget } = recallFor(dialect === 'sqlite' ? Infinity : OTHERS_UNSEEN_MS)
  const transact = <T>(work: (tx: Transaction<Tables>) => Promise<T>, isolation: Isolation = 'serializable') =>
    sqlite === null ? retried(db, work, isolation) : db.transaction().execute(work)
  const pending = new Set<Promise<unknown>>()
  const commit: Store['commit'] = (work, isolation) =>
    told(() => (sqlite === null ? transact(work, isolation) : beside(sqlite, db, work)))
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
    recall,
    forget,
    async write(work) {
      try {
        return await told(() => transact(work))
      } finally {
        // Also after an error: a commit whose answer was lost may hold.
        forget()
      }
    },
    later(work) {
      const task: Promise<unknown> = work(db)
        .catch((error: unknown) => options.lost?.(error))
        .finally(() => pending.delete(task))
      pending.add(task)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(pending)
      await db.destroy()
    },
  }
}

/** A full disk, or too many others, as what callers can be told. */
async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (hasNoRoom(error)) throw noRoom(error)
    throw isContended(error) ? contended(error) : error
  }
}

/** Commits without waiting for the disk. */
function beside<T>(sqlite: Sqlite, db: Kysely<Tables>, work: (tx: Transaction<Tables>) => Promise<T>): Promise<T> {
  // The one connection is ours meanwhile: nobody else commits without waiting.
  return db.connection().execute(async (connection) => {
    sqlite.waits(false)
    try {
      return await connection.transaction().execute(work)
    } finally {
      sqlite.waits(true)
    }
  })
}

/** SQLite's FULL and IOERR_WRITE, PostgreSQL's disk_full. */
function hasNoRoom(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('errcode' in error) return error.errcode === 13 || error.errcode === 778
  return 'code' in error && error.code === '53100'
}

function noRoom(cause: unknown): AppError {
  return new AppError(
    'OVERLOADED',
    'The service has no room to write anything down. Nothing was changed. An operator must free disk space.',
    {
      extra: { retryAfter: NO_ROOM_RETRY_SECONDS },
      cause,
    },
  )
}

const NO_ROOM_RETRY_SECONDS = 10

async function retried<T>(
  db: Kysely<Tables>,
  work: (tx: Transaction<Tables>) => Promise<T>,
  isolation: Isolation,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await db.transaction().setIsolationLevel(isolation).execute(work)
    } catch (error) {
      if (tried >= triesWorth(error)) throw error
      await setTimeout(Math.random() * PAUSE_MS * tried)
    }
  }
}
