// Finds the datasource of a call and checks whether the caller can reach it. If not, the refusal is the same NOT_FOUND
// as for an unknown id, so it does not reveal that the datasource exists.
import type { Audit } from '../audit/audit.ts'
import type { Call, Caller } from '../auth/caller.ts'
import type { Driver } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import { AppError, notFound } from '../errors.ts'
import type { DatasourceId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Role } from '../contract/schemas.ts'
import { canReach, roleAtLeast } from '../teams/roles.ts'
import { knownMembership, requireMembership, roleRequired, type Membership } from '../teams/require-membership.ts'
import { knownRow, recallRow, type DatasourceRow } from './datasource-rows.ts'

export type Drivers = ReadonlyMap<DatasourceType, Driver>

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

/**
 * Throws NOT_FOUND if the caller cannot reach the datasource, SECOND_FACTOR_REQUIRED like requireMembership(), and
 * ROLE_REQUIRED if the caller's role is too low. Records ROLE_REQUIRED in the audit.
 */
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

/**
 * Decides from cached rows, without waiting. Null if a row is not cached or if reach() may refuse. Then call reach().
 */
export function knownReach(
  deps: Pick<Deps, 'drivers'> & { readonly store: Pick<Store, 'known'> },
  caller: Caller,
  teamId: TeamId,
  id: DatasourceId,
): Reached | null {
  const membership = knownMembership(deps.store, caller, teamId)
  const row = knownRow(deps.store, id)
  if (membership === null || row?.team_id !== teamId || !isWithin(caller, id)) return null
  // Without the access list, which is not read here, only an OWNER surely reaches an EXPLICIT datasource.
  if (!canReach(membership, { accessMode: row.access_mode, minRole: row.min_role }, false)) return null
  const driver = deps.drivers.get(row.type)
  return driver === undefined ? null : { id, teamId, membership, row, driver }
}

/** Checks the membership, but not the restrictions of an API key. */
export async function reaches(store: Store, membership: Membership, row: DatasourceRow): Promise<boolean> {
  return reachesIf(membership, row, false) || (reachesIf(membership, row, true) && (await isListed()))

  function isListed(): Promise<boolean> {
    return store.recall(`access ${row.id} ${membership.accountId}`, async () => {
      const entry = await store.db
        .selectFrom('access_entries')
        .select('account_id')
        .where('datasource_id', '=', row.id)
        .where('account_id', '=', membership.accountId)
        .executeTakeFirst()
      return entry !== undefined
    })
  }
}

/** Does the same as reaches() for datasources of one team, with one statement. */
export async function reachedOf(
  store: Store,
  membership: Membership,
  rows: readonly DatasourceRow[],
): Promise<readonly DatasourceRow[]> {
  const isUnknown = (row: DatasourceRow) => !reachesIf(membership, row, false) && reachesIf(membership, row, true)
  const listed = rows.some(isUnknown) ? await listedOf(store, membership) : new Set<DatasourceId>()
  return rows.filter((row) => reachesIf(membership, row, listed.has(row.id)))
}

function reachesIf(membership: Membership, row: DatasourceRow, isListed: boolean): boolean {
  return canReach(membership, { accessMode: row.access_mode, minRole: row.min_role }, isListed)
}

async function listedOf(
  { db }: Pick<Store, 'db'>,
  { teamId, accountId }: Membership,
): Promise<ReadonlySet<DatasourceId>> {
  const rows = await db
    .selectFrom('datasources')
    .select('id')
    .where('team_id', '=', teamId)
    .where(({ exists, selectFrom }) =>
      // The store searches for one entry of each datasource, because an account may be on many lists of other teams.
      exists(
        selectFrom('access_entries')
          .select('account_id')
          .whereRef('datasource_id', '=', 'datasources.id')
          .where('account_id', '=', accountId),
      ),
    )
    .execute()
  return new Set(rows.map(({ id }) => id))
}

export function isWithin(caller: Caller, id: DatasourceId): boolean {
  return caller.kind === 'session' || caller.datasourceIds === null || caller.datasourceIds.has(id)
}
