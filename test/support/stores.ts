// Stores for tests. Each call of config() returns a store without rows: embedded in a new folder, or in a new database
// on one PostgreSQL server.
import { constants } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import type { DialectName } from '../../src/store/migration.ts'
import { openStore } from '../../src/store/open.ts'
import { startPostgres, type TestPostgres } from './postgres.ts'

const BOTH_DIALECTS: readonly DialectName[] = ['sqlite', 'postgres']

/** Both stores or, if scripts/test.ts has set TEST_STORES, only that one. */
export const DIALECTS = BOTH_DIALECTS.filter((dialect) => (process.env['TEST_STORES'] ?? dialect) === dialect)

export interface StoreConfig {
  readonly dataDir: string
  readonly databaseUrl: string | null
}

export interface StoreSource extends AsyncDisposable {
  /** Returns a store without rows. It may already have its tables. */
  config(): Promise<StoreConfig>
  /** Returns the configuration of a store that does not exist yet. */
  nothing(): Promise<StoreConfig>
}

/**
 * Returns the variables for a service on this store. An embedded store is in the service's folder, so it needs none.
 */
export function storeEnv({ databaseUrl }: StoreConfig): Readonly<Record<string, string>> {
  if (databaseUrl === null) return {}
  return { DATABASE_URL: databaseUrl, VITRINE_SECRET_KEY: randomBytes(32).toString('base64') }
}

/**
 * Copies a store without rows into the folder, if scripts/test.ts has made one for this run. Migrating takes ten times
 * as long as copying.
 */
export async function placeStore(dataDir: string): Promise<void> {
  const template = process.env['TEST_STORE_TEMPLATE']
  if (template === undefined) return
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await copyFile(template, join(dataDir, 'vitrine.db'), constants.COPYFILE_EXCL)
}

export async function storeSource(dialect: DialectName): Promise<StoreSource> {
  const root = await mkdtemp(join(tmpdir(), 'vitrine-test-store-'))
  const server: TestPostgres | null = dialect === 'postgres' ? await startPostgres() : null
  const place = async (template?: Promise<string>): Promise<StoreConfig> => {
    const name = `store_${randomBytes(6).toString('hex')}`
    const dataDir = join(root, name)
    if (server === null) return { dataDir, databaseUrl: null }
    return { dataDir, databaseUrl: server.url(await server.createDatabase(name, undefined, await template)) }
  }
  let template: Promise<string> | undefined
  return {
    async config() {
      if (server !== null) return await place((template ??= migratedDatabase(server, root)))
      const config = await place()
      await placeStore(config.dataDir)
      return config
    },
    nothing: () => place(),
    async [Symbol.asyncDispose]() {
      await server?.[Symbol.asyncDispose]()
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function migratedDatabase(server: TestPostgres, dataDir: string): Promise<string> {
  const name = await server.createDatabase('migrated')
  await using _store = await openStore({ dataDir, databaseUrl: server.url(name) })
  return name
}
