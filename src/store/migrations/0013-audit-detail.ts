// Adds one audit column: the change, the caller's names, and the reason of a refusal. Existing rows have none and keep
// their seal.
import type { Migration } from '../migrate.ts'

export const auditDetail: Migration = {
  name: '0013-audit-detail',
  async up(tx) {
    await tx.schema.alterTable('audit').addColumn('detail', 'text').execute()
  },
}
