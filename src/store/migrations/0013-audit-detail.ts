// One more column of the audit: what was changed, the names of who did it, why it was refused. Rows from before have none
// and keep their seal.
import type { Migration } from '../migrate.ts'

export const auditDetail: Migration = {
  name: '0013-audit-detail',
  async up(tx) {
    await tx.schema.alterTable('audit').addColumn('detail', 'text').execute()
  },
}
