// Adds grants: the access that a person has granted to an agent. The columns that limit it are the same as in api_keys.
import type { Migration } from '../migration.ts'

export const connectorGrants: Migration = {
  name: '0017-connector-grants',
  async up(tx) {
    await tx.schema
      .createTable('connector_grants')
      .addColumn('id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id').onDelete('cascade'))
      .addColumn('client_id', 'text', (column) => column.notNull())
      .addColumn('client_name', 'text', (column) => column.notNull())
      .addColumn('client_host', 'text', (column) => column.notNull())
      .addColumn('scopes', 'text', (column) => column.notNull())
      .addColumn('team_ids', 'text')
      .addColumn('datasource_ids', 'text')
      .addColumn('ended_team_ids', 'text', (column) => column.notNull())
      .addColumn('created_at', 'text', (column) => column.notNull())
      .addColumn('expires_at', 'text')
      .addColumn('last_used_at', 'text')
      .addColumn('revoked_at', 'text')
      .execute()
    await tx.schema.createIndex('grants_of_account').on('connector_grants').column('account_id').execute()
    await tx.schema.createIndex('grants_of_client').on('connector_grants').column('client_id').execute()
  },
}
