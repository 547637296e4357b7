// Adds drift: the catalog that an exposure was saved with, the connection that a catalog was read from, and scheduled
// reintrospection. The input of jobs is stored so that they can be resumed.
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
    // The catalog of existing exposures is unknown, so drift is reported from this upgrade on.
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
