// Drops the stored descriptions of 0007, which slowed each change by up to half a second. Also deletes old
// publications, which no code read.
import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

export const descriptionsInMemory: Migration = {
  name: '0014-descriptions-in-memory',
  async up(tx, dialect) {
    await sql`drop trigger description_outdated ${dialect === 'postgres' ? sql`on datasources` : sql``}`.execute(tx)
    if (dialect === 'postgres') await sql`drop function forget_descriptions()`.execute(tx)
    await tx.schema.dropTable('descriptions').execute()
    await sql`
      delete from publications where version < (
        select published_version from datasources where datasources.id = publications.datasource_id)`.execute(tx)
  },
}
