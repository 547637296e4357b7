// Adds the audit column `detail`. It holds JSON: for example the change, the names of the caller and of the API key,
// and why a call was refused. `detail` is null in existing rows, so their seals stay valid.
import type { Migration } from '../migration.ts'

export const auditDetail: Migration = {
  name: '0013-audit-detail',
  async up(tx) {
    await tx.schema.alterTable('audit').addColumn('detail', 'text').execute()
  },
}
