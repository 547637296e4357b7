// The audit of a team and its usage: only of the datasources the caller reaches, as the rooms say.
import { exportAudit, listAudit, type ExportDeps } from '../../datasources/audit-trail.ts'
import { usageOf, type UsageDeps } from '../../query/usage.ts'
import type { Handlers } from '../handler.ts'

export function auditHandlers(deps: ExportDeps & UsageDeps): Pick<Handlers, 'listAudit' | 'exportAudit' | 'getUsage'> {
  return {
    listAudit: (at) => listAudit(deps, at.call, at.membership, at.query),
    exportAudit: (at) => exportAudit(deps, at.call, at.membership, at.query),
    getUsage: (at) => usageOf(deps, at.call, at.membership, at.query),
  }
}
