// Adds named values that the store keeps about itself, such as the id of its root key.
import type { Migration } from '../migration.ts'

export const marks: Migration = {
  name: '0002-marks',
  async up(tx) {
    await tx.schema
      .createTable('marks')
      .addColumn('name', 'text', (column) => column.primaryKey().notNull())
      .addColumn('value', 'text', (column) => column.notNull())
      .execute()
  },
}
