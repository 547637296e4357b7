// Adds the column `detail` to the audit: JSON with names, changes, reasons of refusals and more. Existing rows have
// null, so their seals stay valid.
import type { Migration } from '../migration.ts'

export const auditDetail: Migration = {
  name: '0013-audit-detail',
  async up(tx) {
    await tx.schema.alterTable('audit').addColumn('detail', 'text').execute()
  },
}
