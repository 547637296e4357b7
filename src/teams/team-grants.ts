// A grant lets an agent act for a member. A manager can end a member's grant in the manager's own team, but not in
// other teams. When a membership ends, all grants of the account end in this team.
import type { Transaction } from 'kysely'
import { changesOf } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import { endedTeamIdsOf } from '../auth/read-restrictions.ts'
import { grantTarget, shownGrant, type GrantDeps, type ShownGrant } from '../auth/grants.ts'
import { notFound } from '../errors.ts'
import type { AccountId, GrantId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { changing, membershipIn } from './change-in-team.ts'
import { readByMember, withinTeam } from './read-by-member.ts'
import { reachedIdsOf } from './team-counts.ts'
import { roleRequired, type Membership } from './require-membership.ts'
import { canTouch } from './roles.ts'
import { aliveEndedIds, reaches } from './team-keys.ts'

export type TeamGrant = ShownGrant & { readonly accountId: string; readonly email: string }

type Deps = Pick<GrantDeps, 'store' | 'audit' | 'now'>

/** Oldest first. The grants contain no other team, and only datasources that the manager can reach. */
export async function listTeamGrants(
  deps: Pick<Deps, 'store' | 'now'>,
  membership: Membership,
  signal?: AbortSignal,
): Promise<readonly TeamGrant[]> {
  const { teamId } = membership
  const at = (deps.now ?? Date.now)()
  const reachedIds = await reachedIdsOf(deps.store.db, membership)
  return await readByMember(
    deps.store.db,
    teamId,
    'connector_grants',
    (accountId) =>
      aliveGrants(deps.store.db, teamId, at).where('connector_grants.account_id', '=', accountId).execute(),
    (row) => {
      if (!reaches(row, teamId)) return null
      return { ...withinTeam(shownGrant(row), teamId, reachedIds), accountId: row.account_id, email: row.email }
    },
    signal,
  )
}

/**
 * Ends a grant in this team. Throws NOT_FOUND if the grant does not reach this team, and ROLE_REQUIRED if it belongs to
 * an OWNER and the caller is not an OWNER.
 */
export async function endTeamForGrant(deps: Deps, call: Call, membership: Membership, id: GrantId): Promise<void> {
  const { teamId } = membership
  await changing(deps, call, teamId, async (tx) => {
    const row = await aliveGrants(tx, teamId, (deps.now ?? Date.now)())
      .where('connector_grants.id', '=', id)
      .executeTakeFirst()
    if (row === undefined || !reaches(row, teamId)) throw notFound()
    const by = await membershipIn(tx, teamId, membership.accountId)
    const owner = await membershipIn(tx, teamId, row.account_id)
    if (!canTouch(by, owner)) throw roleRequired('OWNER')
    await setEnded(tx, id, [...endedTeamIdsOf(row), teamId])
    // The audit of this team must not contain the other teams of the grant.
    const changes = changesOf({ endedForTeams: [] }, { endedForTeams: [teamId] })
    return { value: undefined, target: grantTarget(row), changes }
  })
}

/** Ends all grants of an account in this team, because the account leaves the team. Returns the names of the agents. */
export async function endTeamForGrantsOf(
  tx: Transaction<Tables>,
  teamId: TeamId,
  accountId: AccountId,
): Promise<readonly string[]> {
  const grants = await tx
    .selectFrom('connector_grants')
    .select(['id', 'client_name', 'team_ids', 'ended_team_ids'])
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .execute()
  const reaching = grants.filter((grant) => reaches(grant, teamId))
  const isAlive = await aliveEndedIds(tx, reaching)
  for (const grant of reaching) {
    await setEnded(tx, grant.id, [...endedTeamIdsOf(grant).filter((id) => isAlive.has(id)), teamId])
  }
  return reaching.map((grant) => grant.client_name)
}

async function setEnded(tx: Transaction<Tables>, id: GrantId, teamIds: readonly TeamId[]): Promise<void> {
  await tx
    .updateTable('connector_grants')
    .set({ ended_team_ids: JSON.stringify(teamIds) })
    .where('id', '=', id)
    .execute()
}

function aliveGrants(db: Store['db'], teamId: TeamId, now: number) {
  return db
    .selectFrom('connector_grants')
    .innerJoin('memberships', 'memberships.account_id', 'connector_grants.account_id')
    .innerJoin('accounts', 'accounts.id', 'connector_grants.account_id')
    .selectAll('connector_grants')
    .select('accounts.email')
    .where('memberships.team_id', '=', teamId)
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', new Date(now).toISOString())]))
}
