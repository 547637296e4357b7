// The store on SQLite: one file in the data folder, through node:sqlite. The file is locked while the process runs.
import { chmodSync, closeSync, existsSync, fdatasync, openSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { SqliteDialect, type Dialect, type SqliteDatabase } from 'kysely'
import { folderFailure, makeDataFolder, requireNotEmptied, storeFileFailure } from './data-folder.ts'

/** How long a new process waits for the lock, which a stopping process may still hold. */
const LOCK_WAIT_MS = 1_000
const STATEMENTS_CACHED = 300
/** A copy lets other work run after this many pages of 16 KiB. */
const COPIED_PAGES = 64

export interface Sqlite {
  readonly dialect: Dialect
  /**
   * Sets whether the following commits wait for the disk, which blocks the whole process. Without waiting, a commit
   * survives the end of the process, but survives a power failure only after synced(). Must not be called within a
   * transaction.
   */
  waits(yes: boolean): void
  synced(): Promise<void>
  /** Copies the store to a new file, while other work continues. */
  copyTo(path: string): Promise<void>
}

/** Also locks the data folder. With `asIs`, creates no store. Throws an Error if the store is missing or locked. */
export function openSqlite(dataDir: string, options: { readonly asIs?: boolean } = {}): Sqlite {
  const path = join(dataDir, 'vitrine.db')
  if (options.asIs === true && !existsSync(path)) throw new Error(`There is no store in the data folder ${dataDir}.`)
  makeDataFolder(dataDir)
  // Create the file here, because SQLite would create it with a mode from the umask. The journal gets the same mode. Do
  // not open an existing file: closing it would release the POSIX locks of this process.
  try {
    requireNotEmptied(dataDir)
    if (existsSync(path)) chmodSync(path, 0o600)
    else closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    throw folderFailure(dataDir, error)
  }
  const db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS, enableForeignKeyConstraints: true })
  try {
    // Rows of a kilobyte are cheaper to write to large pages. The page size is set only in a new store.
    db.exec('PRAGMA page_size = 16384')
    // EXCLUSIVE must come before the first access, so that WAL mode keeps the lock and needs no shared memory.
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    // The audit changes the same few pages again and again. A checkpoint copies each page once, so make checkpoints
    // rare, at 16 MB.
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

/** `log` is the write-ahead log, which is the same file until the store is closed. */
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

/** Statements are cached, because compiling most of them costs more than running them. */
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
        // INSERT … RETURNING also returns rows, so the verb is not enough.
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...bindable(parameters)),
        run: (parameters) => {
          // If the disk was full, SQLite has already rolled back. The error of a second rollback would hide the cause.
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

/** Audit inserts have hundreds of values. Most of them need no conversion. */
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
