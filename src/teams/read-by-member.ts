// Reads what the members of a team have, one member at a time. A member has at most 100 API keys and 100 grants, but each
// may list 1,000 datasources (all together 5,000). SQLite reads all rows of a statement synchronously.
import type { AccountId, DatasourceId, TeamId } from '../ids.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { Store } from '../store/open.ts'

interface Made {
  readonly id: string
  readonly createdAt: string
}

interface Limited {
  readonly teamIds: readonly TeamId[] | null
  readonly datasourceIds: readonly DatasourceId[] | null
}

/** Returns a key or a grant as a member of the team may see it: without other teams, and only datasources in `reachedIds`. */
export function withinTeam<T extends Limited>(shown: T, teamId: TeamId, reachedIds: ReadonlySet<DatasourceId>) {
  return {
    ...shown,
    teamIds: shown.teamIds && [teamId],
    datasourceIds: shown.datasourceIds && shown.datasourceIds.filter((id) => reachedIds.has(id)),
  }
}

/**
 * Calls `read` for each member who has rows in `table`, and `show` for each row. Returns what is shown, the oldest
 * first. Other requests run between two members and between two rows. Throws the reason of the signal when it aborts.
 */
export async function readByMember<R, T extends Made>(
  db: Store['db'],
  teamId: TeamId,
  table: 'api_keys' | 'connector_grants',
  read: (accountId: AccountId) => Promise<readonly R[]>,
  /** Returns null for a row that is not shown. */
  show: (row: R) => T | null,
  signal?: AbortSignal,
): Promise<readonly T[]> {
  const members = await db
    .selectFrom('memberships')
    .select('account_id')
    .where('team_id', '=', teamId)
    .where(({ exists, selectFrom }) =>
      exists(selectFrom(table).select('id').whereRef('account_id', '=', 'memberships.account_id')),
    )
    .execute()
  const all: T[] = []
  const pause = inSlices(signal)
  for (const { account_id } of members) {
    for (const row of await read(account_id)) {
      await pause()
      const shown = show(row)
      if (shown !== null) all.push(shown)
    }
    await pause()
  }
  return all.sort((a, b) => compare(a.createdAt, b.createdAt) || compare(a.id, b.id))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
