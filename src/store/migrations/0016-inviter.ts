// Adds the inviter to invitations, so that invited people see who invited them. Existing invitations have no inviter.
import type { Migration } from '../migration.ts'

export const inviter: Migration = {
  name: '0016-inviter',
  async up(tx) {
    await tx.schema
      .alterTable('invitations')
      .addColumn('invited_by', 'text', (column) => column.references('accounts.id').onDelete('set null'))
      .execute()
  },
}
