// Stores for tests: each call of config() makes an empty store, embedded in its own folder, or a database of its own on
// one PostgreSQL server.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import type { DialectName } from '../../src/store/migrate.ts'
import { startPostgres, type TestPostgres } from './postgres.ts'

const BOTH_DIALECTS: readonly DialectName[] = ['sqlite', 'postgres']

/** The stores that this run tests: both, or the one of TEST_STORES (scripts/test.ts sets it). */
export const DIALECTS = BOTH_DIALECTS.filter((dialect) => (process.env['TEST_STORES'] ?? dialect) === dialect)

export interface StoreConfig {
  readonly dataDir: string
  readonly databaseUrl: string | null
}

export interface StoreSource extends AsyncDisposable {
  config(): Promise<StoreConfig>
}

export async function storeSource(dialect: DialectName): Promise<StoreSource> {
  const root = await mkdtemp(join(tmpdir(), 'vitrine-test-store-'))
  const server: TestPostgres | null = dialect === 'postgres' ? await startPostgres() : null
  return {
    async config() {
      const name = `store_${randomBytes(6).toString('hex')}`
      const databaseUrl = server === null ? null : server.url(await server.createDatabase(name))
      return { dataDir: join(root, name), databaseUrl }
    },
    async [Symbol.asyncDispose]() {
      await server?.[Symbol.asyncDispose]()
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
