// Replaces the indexes of the queue of deliveries, because the service now searches for the due deliveries of one
// webhook at a time.
import type { Migration } from '../migration.ts'

export const webhookTurns: Migration = {
  name: '0025-webhook-turns',
  async up(tx) {
    await tx.schema.dropIndex('deliveries_due').execute()
    await tx.schema.dropIndex('deliveries_of_webhook').execute()
    const columns = ['webhook_id', 'state', 'next_at']
    await tx.schema.createIndex('deliveries_due_of_webhook').on('webhook_deliveries').columns(columns).execute()
  },
}
