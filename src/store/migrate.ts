// Migrates the store to this version of Vitrine, in one transaction. A store of a newer version is refused.
import type { DialectName, Migration } from './migration.ts'
import { sql, type Kysely } from 'kysely'
import type { Tables } from './tables.ts'
import { first } from './migrations/0001-first.ts'
import { marks } from './migrations/0002-marks.ts'
import { people } from './migrations/0003-people.ts'
import { auditChain } from './migrations/0004-audit-chain.ts'
import { drift } from './migrations/0005-drift.ts'
import { knowledge } from './migrations/0006-knowledge.ts'
import { descriptions } from './migrations/0007-descriptions.ts'
import { attempts } from './migrations/0009-attempts.ts'
import { auditById } from './migrations/0010-audit-by-id.ts'
import { auditPacks } from './migrations/0011-audit-packs.ts'
import { auditDetail } from './migrations/0013-audit-detail.ts'
import { descriptionsInMemory } from './migrations/0014-descriptions-in-memory.ts'
import { counters } from './migrations/0015-counters.ts'
import { inviter } from './migrations/0016-inviter.ts'
import { connectorGrants } from './migrations/0017-connector-grants.ts'
import { oauth } from './migrations/0018-oauth.ts'
import { console } from './migrations/0019-console.ts'
import { keyLinks } from './migrations/0020-key-links.ts'
import { exposureRequests } from './migrations/0021-exposure-requests.ts'
import { usageSlots } from './migrations/0022-usage-slots.ts'
import { waysToSignIn } from './migrations/0023-ways-to-sign-in.ts'
import { webhooks } from './migrations/0024-webhooks.ts'
import { webhookTurns } from './migrations/0025-webhook-turns.ts'
import { accountDeletion } from './migrations/0026-account-deletion.ts'
import { upkeepIndexes } from './migrations/0027-upkeep-indexes.ts'
import { sessionEnds } from './migrations/0028-session-ends.ts'
import { runningJobs } from './migrations/0029-running-jobs.ts'
import { catalogCounts } from './migrations/0030-catalog-counts.ts'
import { boundedRows } from './migrations/0031-bounded-rows.ts'

// A type and not an interface, because withTables() requires an index signature.
type Recorded = { migrations: { name: string; at: string } }

/** Never change a released migration. Append new migrations at the end. */
export const MIGRATIONS: readonly Migration[] = [
  first,
  marks,
  people,
  auditChain,
  drift,
  knowledge,
  descriptions,
  attempts,
  auditById,
  auditPacks,
  auditDetail,
  descriptionsInMemory,
  counters,
  inviter,
  connectorGrants,
  oauth,
  console,
  keyLinks,
  exposureRequests,
  usageSlots,
  waysToSignIn,
  webhooks,
  webhookTurns,
  accountDeletion,
  upkeepIndexes,
  sessionEnds,
  runningJobs,
  catalogCounts,
  boundedRows,
]

/** A random number for an advisory lock, so that processes that start together migrate one after the other. */
const POSTGRES_LOCK = 8_417_303_211

/** Returns the migrations that ran. Throws if the store is newer than this version. */
export async function migrate(
  db: Kysely<Tables>,
  dialect: DialectName,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<readonly string[]> {
  return await db.transaction().execute(async (tx) => {
    if (dialect === 'postgres') await sql`select pg_advisory_xact_lock(${sql.lit(POSTGRES_LOCK)})`.execute(tx)
    const records = tx.withTables<Recorded>()
    await tx.schema
      .createTable('migrations')
      .ifNotExists()
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('at', 'text', (column) => column.notNull())
      .execute()
    const missing = await missingOf(records, migrations)
    for (const migration of missing) {
      await migration.up(tx, dialect)
      await records.insertInto('migrations').values({ name: migration.name, at: new Date().toISOString() }).execute()
    }
    return missing.map((migration) => migration.name)
  })
}

/** Throws an Error for the operator if the database is not a store of this version of Vitrine. */
export async function requireMigrated(db: Kysely<Tables>): Promise<void> {
  const tables = await db.introspection.getTables()
  if (!tables.some((table) => table.name === 'migrations')) throw new Error('This database is not a Vitrine store.')
  const missing = await missingOf(db.withTables<Recorded>(), MIGRATIONS)
  if (missing.length === 0) return
  throw new Error(
    'The store is of an older version of Vitrine. Start this version once or run vitrine migrate, then try again.',
  )
}

async function missingOf(
  records: Kysely<Tables & Recorded>,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  const done = new Set((await records.selectFrom('migrations').select('name').execute()).map((row) => row.name))
  const unknown = [...done].filter((name) => !migrations.some((migration) => migration.name === name))
  if (unknown.length > 0) {
    throw new Error(
      `The store was written by a newer version of Vitrine (it has ${unknown.join(', ')}). Run that version.`,
    )
  }
  return migrations.filter((migration) => !done.has(migration.name))
}
