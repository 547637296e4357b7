// Adds webhooks, the conditions that they have reported, and the queue of their deliveries.
import type { ColumnDefinitionBuilder } from 'kysely'
import type { Migration } from '../migration.ts'

const required = (column: ColumnDefinitionBuilder) => column.notNull()

export const webhooks: Migration = {
  name: '0024-webhooks',
  async up(tx) {
    await tx.schema
      .createTable('webhooks')
      .addColumn('id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('team_id', 'text', (column) => column.notNull().references('teams.id').onDelete('cascade'))
      .addColumn('account_id', 'text', required)
      .addColumn('name', 'text', required)
      .addColumn('host', 'text', required)
      .addColumn('format', 'text', required)
      .addColumn('events', 'text', required)
      .addColumn('refusals_count', 'integer', required)
      .addColumn('refusals_minutes', 'integer', required)
      .addColumn('enabled', 'integer', required)
      .addColumn('sealed_url', 'text', required)
      .addColumn('sealed_secret', 'text', required)
      .addColumn('dropped', 'integer', required)
      .addColumn('created_at', 'text', required)
      .execute()
    await tx.schema.createIndex('webhooks_of_team').on('webhooks').column('team_id').execute()
    const ofWebhook = (column: ColumnDefinitionBuilder) =>
      column.notNull().references('webhooks.id').onDelete('cascade')
    await tx.schema
      .createTable('webhook_conditions')
      .addColumn('webhook_id', 'text', ofWebhook)
      .addColumn('key', 'text', required)
      .addPrimaryKeyConstraint('one_webhook_condition', ['webhook_id', 'key'])
      .execute()
    await tx.schema
      .createTable('webhook_deliveries')
      .addColumn('id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('webhook_id', 'text', ofWebhook)
      .addColumn('event', 'text', required)
      .addColumn('body', 'text', required)
      .addColumn('created_at', 'text', required)
      .addColumn('state', 'text', required)
      .addColumn('attempts', 'integer', required)
      .addColumn('next_at', 'text', required)
      .addColumn('claimed_until', 'text')
      .addColumn('last_at', 'text')
      .addColumn('status', 'integer')
      .addColumn('error', 'text')
      .execute()
    await tx.schema.createIndex('deliveries_due').on('webhook_deliveries').columns(['state', 'next_at']).execute()
    await tx.schema.createIndex('deliveries_of_webhook').on('webhook_deliveries').column('webhook_id').execute()
  },
}
