// The embedded store: one SQLite file in the data folder, through node:sqlite. The file is locked for as long as the
// process lives, and a commit is on the disk before it is answered.
import { chmodSync, closeSync, existsSync, fdatasync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { SqliteDialect, type Dialect, type SqliteDatabase } from 'kysely'

/** How long an ending process may keep the lock before its successor gives up, ms. */
const LOCK_WAIT_MS = 1_000
const STATEMENTS_KEPT = 300

/** The file, and a way to commit that holds up nobody else. */
export interface Sqlite {
  readonly dialect: Dialect
  /**
   * Whether commits from now on wait for the disk, and everybody else in the process with them. One that did not is safe
   * from the end of the process, but from a power cut only once synced() is answered. Only outside of a transaction.
   */
  waits(yes: boolean): void
  /** What was committed before is on the disk. */
  synced(): Promise<void>
}

/** Takes the folder's lock; `asIs`: makes no store. Throws an Error that names the folder where another process holds it. */
export function openSqlite(dataDir: string, options: { readonly asIs?: boolean } = {}): Sqlite {
  const path = join(dataDir, 'vitrine.db')
  if (options.asIs === true && !existsSync(path)) throw new Error(`There is no store in the data folder ${dataDir}.`)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  // SQLite would make the file by the umask; its journal takes over the rights of the file. One that is there is not
  // opened here: closing it again would drop the locks that this process may hold on it (POSIX).
  if (existsSync(path)) chmodSync(path, 0o600)
  else closeSync(openSync(path, 'wx', 0o600))
  const db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS, enableForeignKeyConstraints: true })
  try {
    // Of a new store only: of rows of a kilobyte four pages in a row cost more to write than two.
    db.exec('PRAGMA page_size = 16384')
    // EXCLUSIVE before the first access: in WAL mode the lock is then kept, without shared memory beside the file.
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    // 16 MB: the audit writes the same few pages again and again, and each is copied once.
    db.exec('PRAGMA wal_autocheckpoint = 1000')
    db.exec('BEGIN IMMEDIATE; COMMIT')
    return opened(db, openSync(`${path}-wal`, 'r+'))
  } catch (error) {
    db.close()
    if (isBusy(error)) {
      throw new Error(
        `The data folder ${dataDir} is in use by another Vitrine process: end that one first, or give this one a folder of its own by VITRINE_DATA_DIR.`,
        { cause: error },
      )
    }
    throw new Error(`The store in the data folder ${dataDir} cannot be opened.`, { cause: error })
  }
}

const datasync = promisify(fdatasync)

/** `log`: the file that every commit is appended to; it stays the same until the store is closed. */
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
    // Never as a kept statement: this one does its work while it is compiled.
    waits: (yes) => db.exec(`PRAGMA synchronous = ${yes ? 'FULL' : 'NORMAL'}`),
    synced: () => datasync(log),
  }
}

/** node:sqlite as Kysely's SqliteDialect wants it; statements are kept, since compiling costs more than most of them. */
function adapt(db: DatabaseSync): Pick<SqliteDatabase, 'prepare'> {
  const kept = new Map<string, StatementSync>()
  const prepare = (sql: string): StatementSync => {
    const statement = kept.get(sql) ?? db.prepare(sql)
    kept.delete(sql)
    kept.set(sql, statement)
    const oldest = kept.keys().next()
    if (kept.size > STATEMENTS_KEPT && !oldest.done) kept.delete(oldest.value)
    return statement
  }
  return {
    prepare: (sql) => {
      const statement = prepare(sql)
      return {
        // By its columns and not by its verb, or an INSERT … RETURNING would answer nothing.
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...bindable(parameters)),
        run: (parameters) => {
          // On a full disk SQLite has rolled back by itself; to be told so would hide why.
          if (isRollback(sql) && !db.isTransaction) return NOTHING_DONE
          return statement.run(...bindable(parameters))
        },
        iterate: (parameters) => statement.iterate(...bindable(parameters)),
      }
    },
  }
}

const isRollback = (sql: string) => /^rollback$/i.test(sql)
const NOTHING_DONE = { changes: 0, lastInsertRowid: 0 } as const

/** The same list where nothing is to be changed: the audit's has hundreds. */
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
