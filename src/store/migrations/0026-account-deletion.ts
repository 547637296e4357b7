// Adds indexes for finding and deleting unverified accounts. Without them, each deletion reads whole tables.
import type { Migration } from '../migration.ts'

export const accountDeletion: Migration = {
  name: '0026-account-deletion',
  async up(tx) {
    const columns = ['emailVerified', 'createdAt']
    await tx.schema.createIndex('accounts_by_verified').on('accounts').columns(columns).execute()
    await tx.schema.createIndex('verifications_of_account').on('verifications').column('value').execute()
    await tx.schema.createIndex('invitations_by_inviter').on('invitations').column('invited_by').execute()
  },
}
