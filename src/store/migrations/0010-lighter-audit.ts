// An index less for every row of the audit: what is too old is found team by team, by the index that there is. Rows of
// before the chains, of which there are never more, keep one of their own.
import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

export const lighterAudit: Migration = {
  name: '0010-lighter-audit',
  async up(tx) {
    await tx.schema.dropIndex('audit_by_time').execute()
    await sql`create index audit_unchained on audit (at) where chain is null`.execute(tx)
  },
}
