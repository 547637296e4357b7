// A manager can end a member's API key in the manager's own team, but not in other teams. When a membership ends, all
// keys of the account end in this team.
import type { Transaction } from 'kysely'
import { changesOf } from '../audit/recorded-changes.ts'
import { keyTarget, shownKey, type KeyDeps, type ShownKey } from '../auth/api-keys.ts'
import type { Call } from '../auth/caller.ts'
import { endedTeamIdsOf, teamIdsOf } from '../auth/read-restrictions.ts'
import { notFound } from '../errors.ts'
import type { AccountId, ApiKeyId, TeamId } from '../ids.ts'
import { isHidden } from '../store/delete-team.ts'
import type { Store } from '../store/open.ts'
import type { ApiKeyTable, Tables } from '../store/tables.ts'
import { canTouch } from './roles.ts'
import { roleRequired, type Membership } from './require-membership.ts'
import { changing, membershipIn } from './change-in-team.ts'
import { readByMember, withinTeam } from './read-by-member.ts'
import { reachedIdsOf } from './team-counts.ts'

export type TeamKey = ShownKey & { readonly accountId: string; readonly email: string }

/** Oldest first. The keys contain no other team, and only datasources that the manager can reach. */
export async function listTeamKeys(
  deps: Pick<KeyDeps, 'store' | 'now'>,
  membership: Membership,
  signal?: AbortSignal,
): Promise<readonly TeamKey[]> {
  const { teamId } = membership
  const at = (deps.now ?? Date.now)()
  const reachedIds = await reachedIdsOf(deps.store.db, membership)
  return await readByMember(
    deps.store.db,
    teamId,
    'api_keys',
    (accountId) => aliveKeys(deps.store.db, teamId, at).where('api_keys.account_id', '=', accountId).execute(),
    (row) => {
      if (!reaches(row, teamId)) return null
      const { lastClient: _elsewhere, ...key } = shownKey(row, at)
      return { ...withinTeam(key, teamId, reachedIds), accountId: row.account_id, email: row.email }
    },
    signal,
  )
}

/**
 * Ends a key in this team. Throws NOT_FOUND if the key does not reach this team, and ROLE_REQUIRED if it belongs to an
 * OWNER and the caller is not an OWNER.
 */
export async function endTeamForKey(deps: KeyDeps, call: Call, membership: Membership, keyId: ApiKeyId): Promise<void> {
  const { teamId } = membership
  await changing(deps, call, teamId, async (tx) => {
    const row = await aliveKeys(tx, teamId, (deps.now ?? Date.now)())
      .where('api_keys.id', '=', keyId)
      .executeTakeFirst()
    if (row === undefined || !reaches(row, teamId)) throw notFound()
    const by = await membershipIn(tx, teamId, membership.accountId)
    const owner = await membershipIn(tx, teamId, row.account_id)
    if (!canTouch(by, owner)) throw roleRequired('OWNER')
    await tx
      .updateTable('api_keys')
      .set({ ended_team_ids: JSON.stringify([...endedTeamIdsOf(row), teamId]) })
      .where('id', '=', keyId)
      .execute()
    // The audit of this team must not contain the other teams of the key.
    const changes = changesOf({ endedForTeams: [] }, { endedForTeams: [teamId] })
    return { value: undefined, target: keyTarget(row), changes }
  })
}

/**
 * Ends all keys of an account that leaves the team. Otherwise a later invitation would make forgotten keys work again.
 * Removes deleted teams from the lists of the keys, so that they do not grow. Returns the names of the keys.
 */
export async function endTeamForKeysOf(
  tx: Transaction<Tables>,
  teamId: TeamId,
  accountId: AccountId,
): Promise<readonly string[]> {
  const keys = await tx
    .selectFrom('api_keys')
    // Without the datasources, which may be 1,000 for each key.
    .select(['id', 'name', 'team_ids', 'ended_team_ids'])
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .execute()
  const reaching = keys.filter((key) => reaches(key, teamId))
  const isAlive = await aliveEndedIds(tx, reaching)
  for (const key of reaching) {
    const ids = [...endedTeamIdsOf(key).filter((id) => isAlive.has(id)), teamId]
    await tx
      .updateTable('api_keys')
      .set({ ended_team_ids: JSON.stringify(ids) })
      .where('id', '=', key.id)
      .execute()
  }
  return reaching.map((key) => key.name)
}

/** Returns the teams in which these keys or grants were ended, without deleted teams. */
export async function aliveEndedIds(
  tx: Transaction<Tables>,
  rows: readonly Pick<ApiKeyTable, 'ended_team_ids'>[],
): Promise<ReadonlySet<TeamId>> {
  const ended = [...new Set(rows.flatMap(endedTeamIdsOf))]
  if (ended.length === 0) return new Set()
  const teams = await tx.selectFrom('teams').select(['id', 'slug']).where('id', 'in', ended).execute()
  return new Set(teams.filter((team) => !isHidden(team)).map((team) => team.id))
}

function aliveKeys(db: Store['db'], teamId: TeamId, now: number) {
  return (
    db
      .selectFrom('api_keys')
      .innerJoin('memberships', 'memberships.account_id', 'api_keys.account_id')
      .innerJoin('accounts', 'accounts.id', 'api_keys.account_id')
      .selectAll('api_keys')
      .select('accounts.email')
      .where('memberships.team_id', '=', teamId)
      // Anybody can invite an account. The keys of an INVITED member are not shown, because they reach nothing in the
      // team.
      .where('memberships.status', '=', 'ACTIVE')
      .where('revoked_at', 'is', null)
      .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', new Date(now).toISOString())]))
  )
}

export function reaches(row: Pick<ApiKeyTable, 'team_ids' | 'ended_team_ids'>, teamId: TeamId): boolean {
  const narrowed = teamIdsOf(row)
  return (narrowed === null || narrowed.includes(teamId)) && !endedTeamIdsOf(row).includes(teamId)
}
