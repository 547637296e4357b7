// Makes a store as it was before a migration, to test this migration.
import { Kysely } from 'kysely'
import { migrate, MIGRATIONS } from '../../src/store/migrate.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import type { Tables } from '../../src/store/tables.ts'
import type { StoreConfig } from './stores.ts'

/** Runs the migrations before `number` on an empty store. The caller must call destroy(). */
export async function olderStore({ dataDir, databaseUrl }: StoreConfig, number: string): Promise<Kysely<Tables>> {
  const opened = databaseUrl === null ? openSqlite(dataDir) : await openPostgres(databaseUrl)
  const db = new Kysely<Tables>({ dialect: opened.dialect })
  const before = MIGRATIONS.filter(({ name }) => name < number)
  await migrate(db, databaseUrl === null ? 'sqlite' : 'postgres', before)
  return db
}
