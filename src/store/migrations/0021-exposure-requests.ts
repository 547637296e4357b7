// Adds requests to expose tables and columns for which a member's query was refused.
import type { Migration } from '../migration.ts'

export const exposureRequests: Migration = {
  name: '0021-exposure-requests',
  async up(tx) {
    await tx.schema
      .createTable('exposure_requests')
      .addColumn('id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('team_id', 'text', (column) => column.notNull().references('teams.id').onDelete('cascade'))
      .addColumn('datasource_id', 'text', (column) => column.notNull().references('datasources.id').onDelete('cascade'))
      .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id').onDelete('cascade'))
      .addColumn('audit_id', 'text', (column) => column.notNull())
      .addColumn('why', 'text', (column) => column.notNull())
      .addColumn('blocked', 'text', (column) => column.notNull())
      .addColumn('created_at', 'text', (column) => column.notNull())
      .addColumn('closed_at', 'text')
      .addColumn('closed_by', 'text')
      .addColumn('resolution', 'text')
      .addColumn('note', 'text')
      .execute()
    const index = (name: string, column: string) =>
      tx.schema.createIndex(name).on('exposure_requests').column(column).execute()
    await index('requests_of_team', 'team_id')
    await index('requests_of_datasource', 'datasource_id')
    await index('requests_of_account', 'account_id')
  },
}
