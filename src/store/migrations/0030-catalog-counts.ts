// Adds counts of catalogs, so that a list of datasources reads no catalog. The start counts existing
// catalogs after the migration (exposure/catalog-cache.ts).
import type { Migration } from '../migration.ts'

export const catalogCounts: Migration = {
  name: '0030-catalog-counts',
  async up(tx) {
    await tx.schema
      .createTable('catalog_counts')
      .addColumn('datasource_id', 'text', (column) =>
        column.primaryKey().notNull().references('datasources.id').onDelete('cascade'),
      )
      .addColumn('catalog_version', 'integer', (column) => column.notNull())
      .addColumn('exposure_version', 'integer', (column) => column.notNull())
      .addColumn('captured_at', 'text', (column) => column.notNull())
      .addColumn('tables', 'integer', (column) => column.notNull())
      .addColumn('exposed_tables', 'integer', (column) => column.notNull())
      .addColumn('drift', 'integer')
      .execute()
  },
}
