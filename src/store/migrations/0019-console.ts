// Adds what the console shows about a datasource: the last test report, the notes of exposures, the history of
// publications, who started a job, and which item a job is processing.
import type { ColumnDefinitionBuilder } from 'kysely'
import type { Migration } from '../migration.ts'

export const console: Migration = {
  name: '0019-console',
  async up(tx) {
    const required = (column: ColumnDefinitionBuilder) => column.notNull()
    const ofDatasource = (column: ColumnDefinitionBuilder) =>
      column.notNull().references('datasources.id').onDelete('cascade')
    await tx.schema.alterTable('datasources').addColumn('last_grade', 'text').execute()
    await tx.schema
      .createTable('test_reports')
      .addColumn('datasource_id', 'text', (column) => ofDatasource(column).primaryKey())
      .addColumn('tested_at', 'text', required)
      .addColumn('report', 'text', required)
      .execute()
    // No foreign key, because the job stays when this account is deleted.
    await tx.schema.alterTable('jobs').addColumn('started_by', 'text').execute()
    await tx.schema.alterTable('jobs').addColumn('step', 'text').execute()
    await tx.schema.alterTable('exposures').addColumn('note', 'text').execute()
    // Null for existing versions, whose counts are computed when they are read.
    for (const count of ['table_count', 'column_count', 'added', 'removed'] as const) {
      await tx.schema.alterTable('exposures').addColumn(count, 'integer').execute()
    }
    await tx.schema
      .createTable('publication_history')
      .addColumn('datasource_id', 'text', ofDatasource)
      .addColumn('version', 'integer', required)
      .addColumn('author_id', 'text', required)
      .addColumn('published_at', 'text', required)
      .addColumn('tables', 'integer', required)
      .addColumn('texts', 'integer', required)
      .addColumn('added', 'integer', required)
      .addColumn('changed', 'integer', required)
      .addColumn('removed', 'integer', required)
      .addPrimaryKeyConstraint('one_history_a_version', ['datasource_id', 'version'])
      .execute()
  },
}
