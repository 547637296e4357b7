// The embedded store: one SQLite file in the data folder, through node:sqlite. The file is locked for as long as the
// process lives, and a commit is on the disk before it is answered.
import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { SqliteDialect, type Dialect, type SqliteDatabase } from 'kysely'

/** How long an ending process may keep the lock before its successor gives up, ms. */
const LOCK_WAIT_MS = 1_000
const STATEMENTS_KEPT = 300

/** Takes the folder's lock; `asIs`: makes no store. Throws an Error that names the folder where another process holds it. */
export function openSqlite(dataDir: string, options: { readonly asIs?: boolean } = {}): Dialect {
  const path = join(dataDir, 'vitrine.db')
  if (options.asIs === true && !existsSync(path)) throw new Error(`There is no store in the data folder ${dataDir}.`)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  // SQLite would make the file by the umask; its journal takes over the rights of the file. One that is there is not
  // opened here: closing it again would drop the locks that this process may hold on it (POSIX).
  if (existsSync(path)) chmodSync(path, 0o600)
  else closeSync(openSync(path, 'wx', 0o600))
  const db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS, enableForeignKeyConstraints: true })
  try {
    // EXCLUSIVE before the first access: in WAL mode the lock is then kept, without shared memory beside the file.
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    db.exec('BEGIN IMMEDIATE; COMMIT')
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
  return new SqliteDialect({ database: adapt(db) })
}

/** node:sqlite as Kysely's SqliteDialect wants it; statements are kept, since compiling costs more than most of them. */
function adapt(db: DatabaseSync): SqliteDatabase {
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
    close: () => db.close(),
    prepare: (sql) => {
      const statement = prepare(sql)
      return {
        // By its columns and not by its verb, or an INSERT … RETURNING would answer nothing.
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...parameters.map(bindable)),
        run: (parameters) => statement.run(...parameters.map(bindable)),
        iterate: (parameters) => statement.iterate(...parameters.map(bindable)),
      }
    },
  }
}

function bindable(value: unknown): SQLInputValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
    return value
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return value
  throw new TypeError(`a ${typeof value} cannot be stored`)
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (error.errcode === 5 || error.errcode === 6)
}
