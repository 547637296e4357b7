// Drops the index on the audit's time, because ids increase over time and find old rows too.
import type { Migration } from '../migration.ts'

export const auditById: Migration = {
  name: '0010-audit-by-id',
  async up(tx) {
    await tx.schema.dropIndex('audit_by_time').execute()
  },
}
