// Lists what a person can grant an agent: only access that the person has.
import type { Call } from '../auth/caller.ts'
import { reachable } from '../datasources/datasources.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { Store } from '../store/open.ts'
import type { Asked } from './authorization-pages.ts'

/**
 * The maximum number of datasources on the page, which is also the maximum in a grant. The person can still allow all
 * datasources of all teams.
 */
const DATASOURCES_MAX = 1_000

/**
 * Returns the teams in which the person is an active member, with the datasources that the person can reach. They are
 * null from the first team whose datasources do not fit on the page.
 */
export async function choicesOf(deps: { readonly store: Store }, call: Call): Promise<Asked['teams']> {
  const { accountId } = call.caller
  const rows = await deps.store.db
    .selectFrom('memberships')
    .innerJoin('teams', 'teams.id', 'memberships.team_id')
    .select(['teams.id', 'teams.name', 'memberships.role', 'memberships.status'])
    .where('memberships.account_id', '=', accountId)
    .where('memberships.status', '=', 'ACTIVE')
    .orderBy('teams.created_at')
    .orderBy('teams.id')
    .execute()
  const teams: Asked['teams'][number][] = []
  let left = DATASOURCES_MAX
  const pause = inSlices()
  for (const { id: teamId, name, role, status } of rows) {
    // SQLite answers synchronously, so let other requests run.
    await pause()
    const datasources = left < 0 ? [] : await reachable(deps, call, { teamId, accountId, role, status })
    left = left < datasources.length ? -1 : left - datasources.length
    teams.push({ id: teamId, name, datasources: left < 0 ? null : datasources.map(({ id, name }) => ({ id, name })) })
  }
  return teams
}
