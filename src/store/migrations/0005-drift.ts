// Adds drift: the changes in a database since its exposure was saved. This needs the catalog for which an exposure was
// saved, the connection over which a catalog was read, and the schedule of introspections. Also stores the input of
// jobs, so that they can be resumed.
import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

export const drift: Migration = {
  name: '0005-drift',
  async up(tx) {
    await tx.schema
      .alterTable('datasources')
      .addColumn('reintrospect_hours', 'integer', (column) => column.notNull().defaultTo(24))
      .execute()
    await tx.schema.alterTable('catalogs').addColumn('connection_version', 'integer').execute()
    await tx.schema.alterTable('exposures').addColumn('catalog_version', 'integer').execute()
    await tx.schema.alterTable('jobs').addColumn('input', 'text').execute()
    // The catalogs of existing exposures are unknown, so drift is reported only from this upgrade on.
    await sql`
      update exposures set catalog_version = (
        select d.catalog_version from datasources d
        where d.id = exposures.datasource_id and d.exposure_version = exposures.version and d.catalog_version > 0)
    `.execute(tx)
    await tx.schema
      .createTable('reintrospections')
      .addColumn('datasource_id', 'text', (column) =>
        column.primaryKey().notNull().references('datasources.id').onDelete('cascade'),
      )
      .addColumn('claimed_until', 'text')
      .addColumn('failures', 'integer', (column) => column.notNull())
      .addColumn('retry_at', 'text')
      .addColumn('error', 'text')
      .execute()
  },
}
