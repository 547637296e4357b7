// `vitrine backup` copies the whole store to one SQLite file, and `vitrine restore` reads such a file. `export` and
// `import` are other names for them. The store may be SQLite or PostgreSQL. The file does not contain the root key.
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdtemp, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { readConfig, type Config, type Environment } from '../config.ts'
import { keyPath, requireKeyBefore } from '../secrets.ts'
import { makeDataFolder } from '../store/data-folder.ts'
import { openStore, type Store } from '../store/open.ts'
import { askForCopy } from './control-socket.ts'
import { copyRows } from './copy-rows.ts'

export interface Out {
  line(text: string): void
}

/** Throws an Error for the operator. The service may be running. */
export async function runBackup([file, ...more]: readonly string[], env: Environment, out: Out): Promise<void> {
  const to = resolve(oneFile(file, more, 'backup'))
  const config = readConfig(env)
  if (existsSync(to)) throw new Error(`${to} exists. Name a new file.`)
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(dirname(to), '.vitrine-backup-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  await chmod(folder, 0o700)
  const part = join(folder, 'vitrine.db')
  if (config.databaseUrl === null) await copyEmbedded(config, part)
  else await copyPostgres(config, folder)
  await finish(part, to)
  const { size } = await stat(to)
  out.line(
    `${to} (${size} bytes) contains the store. Keep the root key separately: without it the secrets cannot be read.`,
  )
}

async function copyEmbedded(config: Config, path: string): Promise<void> {
  if (await askForCopy(config.dataDir, path)) return
  await using store = await openStore(config, { asIs: true })
  await store.copyTo?.(path)
}

async function copyPostgres(config: Config, folder: string): Promise<void> {
  await using from = await openStore(config, { asIs: true })
  await using to = await openStore({ dataDir: folder, databaseUrl: null })
  await copyRows(from, to)
}

/** Checks the copy, makes it a single file without a journal, and renames it when it is on disk. */
async function finish(part: string, to: string): Promise<void> {
  {
    using db = new DatabaseSync(part)
    requireSound(db, part)
    db.exec('PRAGMA journal_mode = DELETE')
  }
  await chmod(part, 0o600)
  await synced(part)
  await rename(part, to)
  await synced(dirname(to))
}

/** An embedded store must not exist yet. A PostgreSQL store must have no accounts. */
export async function runRestore([file, ...more]: readonly string[], env: Environment, out: Out): Promise<void> {
  const from = resolve(oneFile(file, more, 'restore'))
  const config = readConfig(env)
  if (!existsSync(from)) throw new Error(`There is no file ${from}.`)
  if (config.databaseUrl === null) await restoreEmbedded(config, from, out)
  else await restorePostgres(config, from, out)
}

async function restoreEmbedded(config: Config, from: string, out: Out): Promise<void> {
  makeDataFolder(config.dataDir)
  const to = join(config.dataDir, 'vitrine.db')
  if (existsSync(to)) {
    throw new Error(
      `There is a store in ${config.dataDir}. Set VITRINE_DATA_DIR to another folder, or move vitrine.db away.`,
    )
  }
  await using folder = await copyOf(from, config.dataDir)
  const hasKey =
    config.secretKey !== null || (config.secretKeyCommand ?? null) !== null || existsSync(keyPath(config.dataDir))
  {
    // Opening migrates an older copy. It refuses a copy of a newer version, and a copy that needs another root key.
    await using _checked = await openStore(
      { dataDir: folder.path, databaseUrl: null },
      hasKey ? { admit: (db) => requireKeyBefore(db, config) } : {},
    )
  }
  await synced(join(folder.path, 'vitrine.db'))
  await rename(join(folder.path, 'vitrine.db'), to)
  await synced(config.dataDir)
  out.line(`${config.dataDir} now contains the store of ${from}.`)
  if (!hasKey)
    out.line(`Put its root key at ${keyPath(config.dataDir)}, or set VITRINE_SECRET_KEY, before you start the service.`)
}

async function restorePostgres(config: Config, path: string, out: Out): Promise<void> {
  await using folder = await copyOf(path, dirname(path))
  await using from = await openStore(
    { dataDir: folder.path, databaseUrl: null },
    { admit: (db) => requireKeyBefore(db, config) },
  )
  await using to = await openStore(config)
  await requireEmpty(to)
  const rows = await copyRows(from, to)
  out.line(`The database of DATABASE_URL now contains the store of ${path} (${rows} rows).`)
}

async function requireEmpty(store: Store): Promise<void> {
  const account = await store.db.selectFrom('accounts').select('id').limit(1).executeTakeFirst()
  if (account === undefined) return
  throw new Error('The database of DATABASE_URL contains a store with accounts. Name an empty database.')
}

/** Copies the file to a separate folder, so that the file itself is never changed. */
async function copyOf(from: string, beside: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(beside, '.vitrine-restore-'))
  await chmod(path, 0o700)
  const file = join(path, 'vitrine.db')
  const dispose = () => rm(path, { recursive: true, force: true })
  try {
    await copyFile(from, file)
    using db = new DatabaseSync(file)
    requireSound(db, from)
  } catch (error) {
    await dispose()
    throw error
  }
  return { path, [Symbol.asyncDispose]: dispose }
}

/** Throws an Error for the operator if the file is damaged or not a store. */
function requireSound(db: DatabaseSync, path: string): void {
  let found: unknown
  try {
    found = db.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
    db.prepare('SELECT name FROM migrations LIMIT 1').get()
  } catch (cause) {
    throw new Error(`${path} is damaged, or is not a file of vitrine backup.`, { cause })
  }
  if (found !== 'ok') throw new Error(`${path} is damaged.`)
}

async function synced(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.sync()
}

function oneFile(file: string | undefined, more: readonly string[], verb: string): string {
  if (file === undefined || file.startsWith('-') || more.length > 0) throw new Error(`Usage: vitrine ${verb} FILE`)
  return file
}
