// The description of a datasource: what of the stored snapshot is exposed, or for its managers all of it. Never asks
// the database.
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import { roleAtLeast } from '../teams/access.ts'
import { roleRequired } from '../teams/require-membership.ts'
import type { Descriptions, Rendered } from './descriptions.ts'
import type { Reached } from '../datasources/reach.ts'
import { notIntrospected } from '../datasources/refusals.ts'

/** JSON already written, and the tag that stands for it. */
export interface Description extends Rendered {
  readonly headers: Readonly<Record<string, string>>
}

interface Deps {
  readonly audit: Audit
  readonly descriptions: Descriptions
}

/** Nobody but the caller may keep it, and only to be asked again with its tag. */
const HEADERS = { 'cache-control': 'private, no-cache', vary: 'Authorization' } as const

/** `full`: everything introspected; throws ROLE_REQUIRED below ADMIN, then NOT_CONNECTED where nothing was. */
export async function describeDatasource(
  deps: Deps,
  call: Call,
  at: Reached,
  ask: { readonly full: boolean },
): Promise<Description> {
  const place = { teamId: at.teamId, datasourceId: at.id }
  try {
    if (ask.full && !roleAtLeast(at.membership.role, 'ADMIN')) throw roleRequired('ADMIN')
    if (ask.full && at.row.catalog_version === 0) throw notIntrospected()
    const { json, etag } = await deps.descriptions.of(at, ask.full ? 'f' : 'e')
    deps.audit.record(call, { ...place, outcome: 'ANSWERED' })
    return { json, etag, headers: HEADERS }
  } catch (error) {
    deps.audit.refused(call, place, error)
    throw error
  }
}
