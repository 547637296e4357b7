// Marks: what the store must remember of itself, one value a name (the id of the root key it was written with).
import type { Migration } from '../migrate.ts'

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
