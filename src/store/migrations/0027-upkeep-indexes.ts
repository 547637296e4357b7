// Adds indexes for the deletion of old rows. Without them, each deletion reads whole tables, which blocks the event
// loop on SQLite.
import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

export const upkeepIndexes: Migration = {
  name: '0027-upkeep-indexes',
  async up(tx, dialect) {
    await tx.schema.createIndex('usage_days_by_date').on('usage_days').column('date').execute()
    await tx.schema.createIndex('deliveries_by_age').on('webhook_deliveries').column('created_at').execute()
    await tx.schema.createIndex('verifications_by_end').on('verifications').column('expiresAt').execute()
    await tx.schema.createIndex('oauth_refresh_tokens_by_end').on('oauth_refresh_tokens').column('expiresAt').execute()
    await tx.schema.createIndex('oauth_refresh_tokens_by_use').on('oauth_refresh_tokens').column('revoked').execute()
    // Not on PostgreSQL, because an indexed column cannot be updated in place, so each count would be slower.
    if (dialect === 'postgres') return
    // The expression is the kind of an attempt, as in auth/attempt-counter.ts.
    await sql`create index counters_of_kind on counters (substr(key, 1, length(key) - 64), points, expire)`.execute(tx)
  },
}
