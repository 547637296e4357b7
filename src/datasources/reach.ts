// Which datasource a call means, and whether it may: a stranger, an INVITED member, a narrowed key, another team's id
// and one that never was get the one NOT_FOUND, made here and nowhere else.
import type { Audit } from '../audit/audit.ts'
import type { Call, Caller } from '../auth/caller.ts'
import type { DatasourceType, Driver } from '../drivers/driver.ts'
import { AppError, notFound } from '../errors.ts'
import type { AccountId, DatasourceId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Role } from '../store/tables.ts'
import { canReach, roleAtLeast } from '../teams/access.ts'
import { requireMembership, roleRequired, type Membership } from '../teams/require-membership.ts'
import { recallRow, type DatasourceRow } from './rows.ts'

export type Drivers = ReadonlyMap<DatasourceType, Driver>

/** A datasource that the caller reaches, as it stands. */
export interface Reached {
  readonly id: DatasourceId
  readonly teamId: TeamId
  readonly membership: Membership
  readonly row: DatasourceRow
  readonly driver: Driver
}

interface Deps {
  readonly store: Store
  readonly drivers: Drivers
  readonly audit: Audit
}

/** Throws the one NOT_FOUND; then, for a role below the needed, ROLE_REQUIRED, which the audit keeps. */
export async function reach(
  deps: Deps,
  call: Call,
  teamId: TeamId,
  id: DatasourceId,
  need: { readonly role?: Role } = {},
): Promise<Reached> {
  const membership = await requireMembership(deps, call, teamId, { invited: true })
  const row = await recallRow(deps.store, id)
  if (row?.team_id !== teamId || !isWithin(call.caller, id)) throw notFound()
  if (!(await reaches(deps.store, membership, row))) throw notFound()
  const driver = deps.drivers.get(row.type)
  if (driver === undefined) throw new AppError('INTERNAL', `There is no driver for ${row.type}.`)
  if (need.role !== undefined && !roleAtLeast(membership.role, need.role)) {
    const error = roleRequired(need.role)
    deps.audit.refused(call, { teamId, datasourceId: id }, error)
    throw error
  }
  return { id, teamId, membership, row, driver }
}

/** Whether a member reaches a datasource of their own team, key or no key. */
export async function reaches(store: Store, membership: Membership, row: DatasourceRow): Promise<boolean> {
  if (membership.status !== 'ACTIVE') return false
  const listed = row.access_mode === 'EXPLICIT' && (await accessList(store, row.id)).has(membership.accountId)
  return canReach(membership, { accessMode: row.access_mode, minRole: row.min_role }, listed)
}

/** False where a key is narrowed away from the datasource. */
export function isWithin(caller: Caller, id: DatasourceId): boolean {
  return caller.kind === 'session' || caller.datasourceIds === null || caller.datasourceIds.has(id)
}

/** The accounts on a datasource's access list, recalled. */
function accessList(store: Store, id: DatasourceId): Promise<ReadonlySet<AccountId>> {
  return store.recall(`access ${id}`, async () => {
    const rows = await store.db
      .selectFrom('access_entries')
      .select('account_id')
      .where('datasource_id', '=', id)
      .execute()
    return new Set(rows.map((row) => row.account_id))
  })
}
