// Lists what a person can grant an agent: only access that the person has.
import type { Call } from '../auth/caller.ts'
import { reachable } from '../datasources/datasources.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { Store } from '../store/open.ts'
import type { Asked } from './authorization-pages.ts'

/** The maximum number of datasources of a team on the page. The person can still allow all datasources of a team. */
const DATASOURCES_MAX = 500

/** Returns the teams in which the person is an active member, with the datasources that the person can reach. */
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
  const pause = inSlices()
  for (const { id: teamId, name, role, status } of rows) {
    // SQLite answers synchronously, so let other requests run.
    await pause()
    const datasources = await reachable(deps, call, { teamId, accountId, role, status })
    teams.push({ id: teamId, name, datasources: datasources.slice(0, DATASOURCES_MAX) })
  }
  return teams
}
