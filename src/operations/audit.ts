import { listActivity, type ActivityDeps } from '../audit/reading/own-activity.ts'
import { exportAudit, getAuditItem, listAudit, type ExportDeps } from '../audit/reading/within-reach.ts'
import { usageOf, type UsageDeps } from '../query/usage.ts'
import type { Definitions } from './operation-types.ts'

export function auditOperations(
  deps: ExportDeps & ActivityDeps & UsageDeps,
): Pick<Definitions, 'listAudit' | 'listActivity' | 'getAuditItem' | 'exportAudit' | 'getUsage'> {
  return {
    listAudit: (at) => listAudit(deps, at.call, at.membership, at.query),
    listActivity: (at) => listActivity(deps, at.call, at.query),
    getAuditItem: (at) => getAuditItem(deps, at.call, at.membership, at.params.auditId),
    exportAudit: (at) => exportAudit(deps, at.call, at.membership, at.query),
    getUsage: (at) => usageOf(deps, at.call, at.membership, at.query),
  }
}
