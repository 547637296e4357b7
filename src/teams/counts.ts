// How many members a team has, and how many of its datasources a caller reaches (session-interface.md §5).
import type { Caller } from '../auth/caller.ts'
import type { Store } from '../store/open.ts'
import { canReach } from './access.ts'
import type { Membership } from './belong.ts'

export interface Counts {
  /** All memberships, INVITED ones too. */
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
    const rows = await store.db
      .selectFrom('datasources')
      .leftJoin('access_entries', (join) =>
        join
          .onRef('access_entries.datasource_id', '=', 'datasources.id')
          .on('access_entries.account_id', '=', accountId),
      )
      .select(['datasources.id', 'access_mode', 'min_role', 'access_entries.account_id as listed'])
      .where('team_id', '=', teamId)
      .execute()
    return { members: counted.members, datasources: rows }
  })
  const reached = datasources.filter(
    (row) =>
      (caller.kind === 'session' || caller.datasourceIds === null || caller.datasourceIds.has(row.id)) &&
      canReach(membership, { accessMode: row.access_mode, minRole: row.min_role }, row.listed !== null),
  )
  return { memberCount: members, dataSourceCount: reached.length }
}
