// Counts a team's members, and its datasources that a caller can reach (docs/contract.md#operations).
import type { Caller } from '../auth/caller.ts'
import type { AccountId, DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { canReach } from './roles.ts'
import type { Membership } from './require-membership.ts'

export interface Counts {
  /** Includes INVITED members. */
  readonly memberCount: number
  readonly dataSourceCount: number
}

export async function countsOf(store: Store, caller: Caller, membership: Membership): Promise<Counts> {
  const { teamId, accountId } = membership
  const { members, datasources } = await store.recall(`counts ${teamId} ${accountId}`, async () => {
    const counted = await store.db
      .selectFrom('memberships')
      .select((eb) => eb.fn.countAll<number>().as('members'))
      .where('team_id', '=', teamId)
      .executeTakeFirstOrThrow()
    const rows = await standings(store.db, membership)
    return { members: counted.members, datasources: rows }
  })
  const reached = datasources.filter(
    (row) =>
      (caller.kind === 'session' || caller.datasourceIds === null || caller.datasourceIds.has(row.id)) &&
      isReached(membership, row),
  )
  return { memberCount: members, dataSourceCount: reached.length }
}

/** Returns the datasources of a team that a member can reach. Reads the store, not the cache. */
export async function reachedIdsOf(db: Store['db'], membership: Membership): Promise<ReadonlySet<DatasourceId>> {
  const rows = await standings(db, membership)
  return new Set(rows.filter((row) => isReached(membership, row)).map((row) => row.id))
}

export async function reachedBy(db: Store['db'], accountId: AccountId): Promise<ReadonlySet<DatasourceId>> {
  const memberships = await db
    .selectFrom('memberships')
    .select(['team_id', 'role', 'status'])
    .where('account_id', '=', accountId)
    .where('status', '=', 'ACTIVE')
    .execute()
  const ids = new Set<DatasourceId>()
  for (const { team_id: teamId, role, status } of memberships) {
    for (const id of await reachedIdsOf(db, { teamId, accountId, role, status })) ids.add(id)
  }
  return ids
}

/** Returns the fields that decide whether the member reaches a datasource, for each datasource of a team. */
function standings(db: Store['db'], { teamId, accountId }: Membership) {
  return db
    .selectFrom('datasources')
    .leftJoin('access_entries', (join) =>
      join.onRef('access_entries.datasource_id', '=', 'datasources.id').on('access_entries.account_id', '=', accountId),
    )
    .select(['datasources.id', 'access_mode', 'min_role', 'access_entries.account_id as listed'])
    .where('team_id', '=', teamId)
    .execute()
}

type Standing = Awaited<ReturnType<typeof standings>>[number]

function isReached(membership: Membership, row: Standing): boolean {
  return canReach(membership, { accessMode: row.access_mode, minRole: row.min_role }, row.listed !== null)
}
