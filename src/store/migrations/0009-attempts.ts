// Adds counters of attempts. They are stored so that several processes share a limit.
import type { Migration } from '../migration.ts'

export const attempts: Migration = {
  name: '0009-attempts',
  async up(tx) {
    await tx.schema
      .createTable('attempts')
      .addColumn('key_hash', 'text', (column) => column.primaryKey().notNull())
      .addColumn('count', 'integer', (column) => column.notNull())
      .addColumn('ends_at', 'bigint', (column) => column.notNull())
      .execute()
    await tx.schema.createIndex('attempts_by_end').on('attempts').column('ends_at').execute()
  },
}
