// Adds profiles and documentation.
import type { ColumnDefinitionBuilder, Transaction } from 'kysely'
import type { Migration } from '../migration.ts'
import type { Tables } from '../tables.ts'

export const knowledge: Migration = {
  name: '0006-knowledge',
  async up(tx) {
    await versions(tx)
    await profiles(tx)
    await documentation(tx)
  },
}

const required = (column: ColumnDefinitionBuilder) => column.notNull()
const ofDatasource = (column: ColumnDefinitionBuilder) =>
  column.notNull().references('datasources.id').onDelete('cascade')

async function versions(tx: Transaction<Tables>): Promise<void> {
  // SQLite adds one column per statement.
  for (const column of ['profile_version', 'documentation_version', 'published_version'] as const) {
    await tx.schema
      .alterTable('datasources')
      .addColumn(column, 'integer', (it) => it.notNull().defaultTo(0))
      .execute()
  }
  await tx.schema.alterTable('datasources').addColumn('profiled_at', 'text').execute()
  await tx.schema.alterTable('datasources').addColumn('published_at', 'text').execute()
}

async function profiles(tx: Transaction<Tables>): Promise<void> {
  await tx.schema
    .createTable('profiles')
    .addColumn('datasource_id', 'text', ofDatasource)
    .addColumn('schema', 'text', required)
    .addColumn('table', 'text', required)
    .addColumn('run', 'text', required)
    .addColumn('captured_at', 'text', required)
    .addColumn('profile', 'text', required)
    .addPrimaryKeyConstraint('one_profile_a_table', ['datasource_id', 'schema', 'table'])
    .execute()
}

async function documentation(tx: Transaction<Tables>): Promise<void> {
  await tx.schema
    .createTable('documentation')
    .addColumn('datasource_id', 'text', ofDatasource)
    .addColumn('schema', 'text', required)
    .addColumn('table', 'text', required)
    .addColumn('draft', 'text', required)
    .addColumn('updated_at', 'text', required)
    // Null if the text was generated. No foreign key, because the text stays when its author's account is deleted.
    .addColumn('author_id', 'text')
    .addPrimaryKeyConstraint('one_documentation_a_table', ['datasource_id', 'schema', 'table'])
    .execute()
  await tx.schema
    .createTable('publications')
    .addColumn('datasource_id', 'text', ofDatasource)
    .addColumn('version', 'integer', required)
    .addColumn('tables', 'text', required)
    .addColumn('author_id', 'text', required)
    .addColumn('published_at', 'text', required)
    .addPrimaryKeyConstraint('one_publication_a_version', ['datasource_id', 'version'])
    .execute()
}
