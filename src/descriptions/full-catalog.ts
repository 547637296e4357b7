// Returns the whole catalog of a datasource, for managers who choose the exposure.
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import { notIntrospected } from '../exposure/require-usable.ts'
import type { Reached } from '../datasources/require-reach.ts'
import { PRIVATE, type Description } from './describe-datasource.ts'
import type { Descriptions } from './description-cache.ts'
import type { QueryEvidence } from './query-evidence.ts'

interface Deps {
  readonly audit: Audit
  readonly catalogs: Catalogs
  readonly descriptions: Descriptions
  readonly evidence: QueryEvidence
}

/** Throws NOT_CONNECTED before the first introspection. */
export async function getCatalog(deps: Deps, call: Call, at: Reached): Promise<Description> {
  const full = await deps.catalogs.full(at.row)
  if (full === null) throw notIntrospected()
  const { json, etag, starts } = await deps.descriptions.catalog(at, full, await deps.evidence.of(at, full))
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED' })
  return { json, etag, starts, headers: PRIVATE }
}
