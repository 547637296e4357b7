// Adds who sent an invitation. This is unknown for existing invitations.
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
