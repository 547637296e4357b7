// The audit of a team and its usage: only of the datasources the caller reaches, as the rooms say.
import { exportAudit, getAuditItem, listAudit, type ExportDeps } from '../../datasources/audit-trail.ts'
import { usageOf, type UsageDeps } from '../../query/usage.ts'
import type { Handlers } from '../handler.ts'

export function auditHandlers(
  deps: ExportDeps & UsageDeps,
): Pick<Handlers, 'listAudit' | 'getAuditItem' | 'exportAudit' | 'getUsage'> {
  return {
    listAudit: (at) => listAudit(deps, at.call, at.membership, at.query),
    getAuditItem: (at) => getAuditItem(deps, at.call, at.membership, at.params.auditId),
    exportAudit: (at) => exportAudit(deps, at.call, at.membership, at.query),
    getUsage: (at) => usageOf(deps, at.call, at.membership, at.query),
  }
}
