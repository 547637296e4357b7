// Creates one table for all counters: sign-in attempts and query budgets. The rate limiter library requires these
// column names.
import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

export const counters: Migration = {
  name: '0015-counters',
  async up(tx) {
    await tx.schema
      .createTable('counters')
      .addColumn('key', 'text', (column) => column.primaryKey().notNull())
      .addColumn('points', 'integer', (column) => column.notNull())
      .addColumn('expire', 'bigint', (column) => column.notNull())
      .execute()
    await tx.schema.createIndex('counters_by_end').on('counters').column('expire').execute()
    await sql`insert into counters (key, points, expire) select 'attempt:' || key_hash, count, ends_at from attempts`.execute(
      tx,
    )
    await tx.schema.dropTable('attempts').execute()
    await tx.schema.dropTable('query_budgets').ifExists().execute()
  },
}
