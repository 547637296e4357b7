// Adds an index for the deletion of expired sessions.
import type { Migration } from '../migration.ts'

export const sessionEnds: Migration = {
  name: '0028-session-ends',
  async up(tx) {
    await tx.schema.createIndex('sessions_by_end').on('sessions').column('expiresAt').execute()
  },
}
