// An index less for every row of the audit: its ids rise with time, and what is too old is found by them.
import type { Migration } from '../migrate.ts'

export const auditById: Migration = {
  name: '0010-audit-by-id',
  async up(tx) {
    await tx.schema.dropIndex('audit_by_time').execute()
  },
}
