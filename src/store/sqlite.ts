// The embedded store: one SQLite file in the data folder, through node:sqlite. The file stays locked while the process
// lives. A change is on disk before the caller gets the answer.
import { chmodSync, closeSync, existsSync, fdatasync, openSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { SqliteDialect, type Dialect, type SqliteDatabase } from 'kysely'
import { folderFailure, makeDataFolder, requireNotEmptied, storeFileFailure } from './data-folder.ts'

/** The time that a new process waits for a stopping process to release the lock. */
const LOCK_WAIT_MS = 1_000
const STATEMENTS_CACHED = 300
/** The number of 16 KiB pages that a copy reads before it yields to other work. */
const COPIED_PAGES = 64

/** The database, and commits that do not block the event loop on the disk. */
export interface Sqlite {
  readonly dialect: Dialect
  /**
   * Sets whether later commits wait for the disk. Waiting blocks the whole process. A commit that did not wait survives
   * the end of the process, but survives a power failure only after synced(). Must be called outside a transaction.
   */
  waits(yes: boolean): void
  /** Resolves when all earlier commits are on disk. */
  synced(): Promise<void>
  /** Writes a consistent copy to a new file, while other work continues. */
  copyTo(path: string): Promise<void>
}

/**
 * Opens the store and locks the data folder. With `asIs`, throws if there is no store, instead of creating one. Throws
 * an Error that names the folder if another process holds the lock.
 */
export function openSqlite(dataDir: string, options: { readonly asIs?: boolean } = {}): Sqlite {
  const path = join(dataDir, 'vitrine.db')
  if (options.asIs === true && !existsSync(path)) throw new Error(`There is no store in the data folder ${dataDir}.`)
  makeDataFolder(dataDir)
  // SQLite creates the file by the umask, and the journal copies the file's mode. An existing file must not be opened
  // here: closing it would drop this process's POSIX locks on it.
  try {
    requireNotEmptied(dataDir)
    if (existsSync(path)) chmodSync(path, 0o600)
    else closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    throw folderFailure(dataDir, error)
  }
  const db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS, enableForeignKeyConstraints: true })
  try {
    // With large pages, rows of a kilobyte cost less to write. The setting has an effect only on a new store.
    db.exec('PRAGMA page_size = 16384')
    // EXCLUSIVE must precede the first access. WAL mode then keeps the lock and needs no shared-memory file.
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    // Checkpoints are rare, at 16 MB: the audit rewrites the same few pages, and a checkpoint copies each page only
    // once.
    db.exec('PRAGMA wal_autocheckpoint = 1000')
    db.exec('BEGIN IMMEDIATE; COMMIT')
    return opened(db, openSync(`${path}-wal`, 'r+'))
  } catch (error) {
    db.close()
    if (isBusy(error)) {
      throw new Error(
        `The data folder ${dataDir} is in use by another Vitrine process. Stop that process first, or set VITRINE_DATA_DIR to another folder.`,
        { cause: error },
      )
    }
    const failure = storeFileFailure(dataDir, error)
    throw failure ?? new Error(`The store in the data folder ${dataDir} cannot be opened.`, { cause: error })
  }
}

const datasync = promisify(fdatasync)

/** Returns the opened store. `log` is the write-ahead log. It stays the same file until the store is closed. */
function opened(db: DatabaseSync, log: number): Sqlite {
  const database: SqliteDatabase = {
    ...adapt(db),
    close() {
      db.close()
      closeSync(log)
    },
  }
  return {
    dialect: new SqliteDialect({ database }),
    // This PRAGMA takes effect when it is compiled, so it must not be a cached statement.
    waits: (yes) => db.exec(`PRAGMA synchronous = ${yes ? 'FULL' : 'NORMAL'}`),
    synced: () => datasync(log),
    copyTo: async (to) => void (await backup(db, to, { rate: COPIED_PAGES })),
  }
}

/**
 * Adapts node:sqlite to Kysely's SqliteDialect. Statements are cached, because compiling most of them costs more than
 * running them.
 */
function adapt(db: DatabaseSync): Pick<SqliteDatabase, 'prepare'> {
  const cache = new Map<string, StatementSync>()
  const prepare = (sql: string): StatementSync => {
    const statement = cache.get(sql) ?? db.prepare(sql)
    cache.delete(sql)
    cache.set(sql, statement)
    const oldest = cache.keys().next()
    if (cache.size > STATEMENTS_CACHED && !oldest.done) cache.delete(oldest.value)
    return statement
  }
  return {
    prepare: (sql) => {
      const statement = prepare(sql)
      return {
        // Check the columns instead of the verb: INSERT … RETURNING returns rows.
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...bindable(parameters)),
        run: (parameters) => {
          // On a full disk SQLite has already rolled back. The error of a second rollback would hide the cause.
          if (isRollback(sql) && !db.isTransaction) return NO_CHANGE
          return statement.run(...bindable(parameters))
        },
        iterate: (parameters) => statement.iterate(...bindable(parameters)),
      }
    },
  }
}

const isRollback = (sql: string) => /^rollback$/i.test(sql)
const NO_CHANGE = { changes: 0, lastInsertRowid: 0 } as const

/** Converts values. Returns the same list if no value needs it, because audit inserts have hundreds of values. */
function bindable(values: readonly unknown[]): readonly SQLInputValue[] {
  return values.every(isBindable) ? values : values.map(bindableOf)
}

function isBindable(value: unknown): value is SQLInputValue {
  return value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
}

function bindableOf(value: unknown): SQLInputValue {
  if (isBindable(value)) return value
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return value
  throw new TypeError(`a ${typeof value} cannot be stored`)
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (error.errcode === 5 || error.errcode === 6)
}
