// The audit of a team: only of the datasources the caller reaches, as the room says.
import { listAudit, type AuditTrailDeps } from '../../datasources/audit-trail.ts'
import type { Handlers } from '../handler.ts'

export function auditHandlers(deps: AuditTrailDeps): Pick<Handlers, 'listAudit'> {
  return {
    listAudit: (at) => listAudit(deps, at.call, at.membership, at.query),
  }
}
