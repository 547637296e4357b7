// Returns the description of a datasource: the exposed tables and columns, or the whole catalog for managers.
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import { roleAtLeast } from '../teams/roles.ts'
import { roleRequired } from '../teams/require-membership.ts'
import type { Descriptions, Rendered } from './description-cache.ts'
import type { Reached } from '../datasources/require-reach.ts'
import { notIntrospected } from '../exposure/require-usable.ts'

export interface Description extends Rendered {
  readonly headers: Readonly<Record<string, string>>
}

interface Deps {
  readonly audit: Audit
  readonly descriptions: Descriptions
}

/** Only the caller may cache the answer, and must revalidate it with the ETag. */
export const PRIVATE = { 'cache-control': 'private, no-cache', vary: 'Authorization' } as const

/** Throws NOT_CONNECTED before the first introspection. With `full`, throws ROLE_REQUIRED for callers below ADMIN. */
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
    const { json, etag, starts } = await deps.descriptions.of(at, ask.full ? 'f' : 'e')
    deps.audit.record(call, { ...place, outcome: 'ANSWERED' })
    return { json, etag, starts, headers: PRIVATE }
  } catch (error) {
    deps.audit.refused(call, place, error)
    throw error
  }
}
