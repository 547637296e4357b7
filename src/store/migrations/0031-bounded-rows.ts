// Adds indexes for the newest rows of a team or webhook, for expired invitations, and for the invitations to an
// address. Without them, each search reads all rows.
import type { Migration } from '../migration.ts'

export const boundedRows: Migration = {
  name: '0031-bounded-rows',
  async up(tx) {
    const index = (name: string) => tx.schema.createIndex(name)
    await index('requests_of_team_by_end').on('exposure_requests').columns(['team_id', 'closed_at']).execute()
    await tx.schema.dropIndex('requests_of_team').execute()
    await index('invitations_by_end').on('invitations').column('expires_at').execute()
    await index('invitations_of_address').on('invitations').column('email').execute()
    await index('deliveries_of_webhook').on('webhook_deliveries').columns(['webhook_id', 'created_at']).execute()
  },
}
