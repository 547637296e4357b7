// Counts a team's members, and its datasources that a caller can reach (docs/contract.md#operations).
import type { Caller } from '../auth/caller.ts'
import { Role } from '../contract/schemas.ts'
import type { AccountId, DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { roleAtLeast } from './roles.ts'
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
