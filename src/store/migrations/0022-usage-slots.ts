// Adds query counts by hour, caller, datasource and client. Hours before the upgrade have no counts.
import type { ColumnDefinitionBuilder } from 'kysely'
import type { Migration } from '../migration.ts'

const required = (column: ColumnDefinitionBuilder) => column.notNull()

export const usageSlots: Migration = {
  name: '0022-usage-slots',
  async up(tx) {
    await tx.schema
      .createTable('usage_slots')
      .addColumn('team_id', 'text', required)
      .addColumn('slot', 'text', required)
      .addColumn('datasource_id', 'text', required)
      .addColumn('account_id', 'text', required)
      .addColumn('key_id', 'text', required)
      .addColumn('client', 'text', required)
      .addColumn('chain', 'text', required)
      .addColumn('queries', 'bigint', required)
      .addColumn('denied', 'bigint', required)
      .addColumn('failed', 'bigint', required)
      .addColumn('row_count', 'bigint', required)
      .addColumn('bytes', 'bigint', required)
      .addColumn('duration_ms', 'double precision', required)
      .addColumn('estimate', 'double precision', required)
      .addColumn('times', 'text', required)
      .addPrimaryKeyConstraint('one_usage_slot', [
        'team_id',
        'slot',
        'datasource_id',
        'account_id',
        'key_id',
        'client',
        'chain',
      ])
      .execute()
    await tx.schema.createIndex('usage_slots_by_end').on('usage_slots').column('slot').execute()
  },
}
