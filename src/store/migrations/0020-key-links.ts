// Adds links between a rotated key and its replacement, and the client that last used a key. Existing keys have null.
import type { Migration } from '../migration.ts'

export const keyLinks: Migration = {
  name: '0020-key-links',
  async up(tx) {
    for (const column of ['replaces', 'replaced_by', 'last_client']) {
      await tx.schema.alterTable('api_keys').addColumn(column, 'text').execute()
    }
  },
}
