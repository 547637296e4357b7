// What of the audit somebody may read: their team's rows, less those of datasources they do not reach.
import type { Audit } from '../audit/audit.ts'
import type { AuditPage } from '../audit/page.ts'
import type { Call } from '../auth/caller.ts'
import type { Store } from '../store/open.ts'
import type { Membership } from '../teams/belong.ts'
import { reachable } from './datasources.ts'

export interface AuditTrailDeps {
  readonly store: Store
  readonly audit: Audit
}

const LIMIT = 50

/** Newest first. An OWNER reaches all, so also what was done to datasources that are gone. */
export async function listAudit(
  deps: AuditTrailDeps,
  call: Call,
  membership: Membership,
  page: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
): Promise<AuditPage> {
  const ask = { cursor: page.cursor, limit: page.limit ?? LIMIT }
  if (membership.role === 'OWNER') return await deps.audit.page(membership.teamId, ask)
  const datasourceIds = (await reachable(deps, call, membership)).map((row) => row.id)
  return await deps.audit.page(membership.teamId, { ...ask, datasourceIds })
}
