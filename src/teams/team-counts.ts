// Counts a team's members, and its datasources that a caller can reach (docs/contract.md#operations).
import type { Caller } from '../auth/caller.ts'
import { Role } from '../contract/schemas.ts'
import { asId, type AccountId, type DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { canReach, roleAtLeast } from './roles.ts'
import type { Membership } from './require-membership.ts'

export interface Counts {
  /** Includes INVITED members. */
  readonly memberCount: number
  readonly dataSourceCount: number
}

export async function countsOf(store: Store, caller: Caller, membership: Membership): Promise<Counts> {
  const { teamId, accountId } = membership
  const counts = await store.recall(`counts ${teamId} ${accountId}`, async () => {
    const members = store.db.selectFrom('memberships').where('team_id', '=', teamId)
    return {
      memberCount: await counted(members.select((eb) => eb.fn.countAll<number>().as('count'))),
      dataSourceCount: await counted(
        reached(store.db, membership).select((eb) => eb.fn.countAll<number>().as('count')),
      ),
    }
  })
  if (caller.kind === 'session' || caller.datasourceIds === null) return counts
  const own = await reachedIdsOf(store.db, membership)
  return { ...counts, dataSourceCount: caller.datasourceIds.intersection(own).size }
}

async function counted(query: { executeTakeFirstOrThrow(): Promise<{ readonly count: number }> }): Promise<number> {
  return Number((await query.executeTakeFirstOrThrow()).count)
}

/** Returns the datasources of a team that a member can reach. Reads the store, not the cache. */
export async function reachedIdsOf(db: Store['db'], membership: Membership): Promise<ReadonlySet<DatasourceId>> {
  const rows = await reached(db, membership).select('datasources.id').execute()
  return new Set(rows.map((row) => row.id))
}

/** Returns those of `ids` that the account can reach. Reads only these, because an account may reach 150,000. */
export async function reachedBy(
  db: Store['db'],
  accountId: AccountId,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .selectFrom('datasources')
    .innerJoin('memberships', 'memberships.team_id', 'datasources.team_id')
    .leftJoin('access_entries', (join) =>
      join
        .onRef('access_entries.datasource_id', '=', 'datasources.id')
        .onRef('access_entries.account_id', '=', 'memberships.account_id'),
    )
    .select(['datasources.id', 'access_mode', 'min_role', 'access_entries.account_id as listed'])
    .select(['memberships.role', 'memberships.status'])
    .where(
      'datasources.id',
      'in',
      ids.map((id) => asId<DatasourceId>(id)),
    )
    .where('memberships.account_id', '=', accountId)
    .execute()
  const reached = rows.filter(({ role, status, access_mode: accessMode, min_role: minRole, listed }) =>
    canReach({ role, status }, { accessMode, minRole }, listed !== null),
  )
  return new Set(reached.map((row) => row.id))
}

/** Finds what canReach() allows. The store counts, because a team may have 500 datasources. */
function reached(db: Store['db'], { teamId, accountId, role, status }: Membership) {
  return db
    .selectFrom('datasources')
    .where('team_id', '=', teamId)
    .where(({ eb, lit, or, and, exists, selectFrom }) =>
      status === 'ACTIVE'
        ? or([
            and([
              eb('access_mode', '=', 'ROLE_BASED'),
              eb(
                'min_role',
                'in',
                Role.options.filter((each) => roleAtLeast(role, each)),
              ),
            ]),
            and([
              eb('access_mode', '=', 'EXPLICIT'),
              role === 'OWNER'
                ? lit(true)
                : exists(
                    selectFrom('access_entries')
                      .select('access_entries.account_id')
                      .whereRef('access_entries.datasource_id', '=', 'datasources.id')
                      .where('access_entries.account_id', '=', accountId),
                  ),
            ]),
          ])
        : lit(false),
    )
}
