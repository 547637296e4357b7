// Checks whether the caller is a member of a team. The error is the same if the account is not a member, if a key does
// not reach the team, and if the team does not exist.
import type { Audit } from '../audit/audit.ts'
import { mayEnter, type Call, type Caller } from '../auth/caller.ts'
import { AppError, notFound } from '../errors.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { AccountId, TeamId } from '../ids.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import type { Role } from '../contract/schemas.ts'
import type { MembershipTable } from '../store/tables.ts'
import { roleAtLeast } from './roles.ts'
import { requiresSecondFactor } from './team-settings.ts'

export interface Membership {
  readonly teamId: TeamId
  readonly accountId: AccountId
  readonly role: Role
  readonly status: MembershipTable['status']
}

interface Deps {
  readonly store: Store
  /** Records refusals because of a low role or a missing second factor. */
  readonly audit?: Pick<Audit, 'refused' | 'folded'>
}

/**
 * Throws NOT_FOUND if the account is not a member, if the key does not reach the team, or if the team does not exist.
 * Throws TEAM_NOT_OPENED for an INVITED member, unless `invited`. Throws SECOND_FACTOR_REQUIRED if the team requires a
 * second factor that the account does not have, unless `withoutSecondFactor`. Throws ROLE_REQUIRED if the caller's role
 * is below `role`.
 */
export async function requireMembership(
  deps: Deps,
  call: Call,
  teamId: TeamId,
  need: { readonly role?: Role; readonly invited?: boolean; readonly withoutSecondFactor?: boolean } = {},
): Promise<Membership> {
  if (!mayEnter(call.caller, teamId)) throw notFound()
  const found = await standingOf(deps.store, teamId, call.caller.accountId)
  if (found === null) throw notFound()
  const { membership, lacksSecondFactor } = found
  if (membership.status === 'INVITED' && need.invited !== true) {
    throw new AppError('TEAM_NOT_OPENED', 'You were invited to this team. Open the team first.')
  }
  // An INVITED member reaches no datasource, and gets this error only after opening the team.
  if (lacksSecondFactor && membership.status === 'ACTIVE' && need.withoutSecondFactor !== true) {
    const error = secondFactorRequired()
    deps.audit?.folded(call, { teamId, outcome: 'DENIED', code: error.code })
    throw error
  }
  if (need.role !== undefined && !roleAtLeast(membership.role, need.role)) {
    const error = roleRequired(need.role)
    deps.audit?.refused(call, { teamId }, error)
    throw error
  }
  return membership
}

/** Returns null if the membership is not cached, or if requireMembership() would throw. */
export function knownMembership(store: Pick<Store, 'known'>, caller: Caller, teamId: TeamId): Membership | null {
  if (!mayEnter(caller, teamId)) return null
  return usable(store.known<Found | null>(nameOf(teamId, caller.accountId)))
}

/** Returns the memberships of all teams whose routes the caller may use now (see requireMembership()). */
export async function membershipsOf({ store }: Pick<Deps, 'store'>, call: Call): Promise<readonly Membership[]> {
  const { accountId } = call.caller
  const own = store.db.selectFrom('memberships').select('team_id').where('account_id', '=', accountId)
  const found: Membership[] = []
  const pause = inSlices()
  for (const { team_id: teamId } of await own.orderBy('team_id').execute()) {
    // SQLite answers synchronously, so let other requests run.
    await pause()
    const membership = mayEnter(call.caller, teamId) ? await usableMembership(store, teamId, accountId) : null
    if (membership !== null) found.push(membership)
  }
  return found
}

/** Returns null if the account may not use the routes of the team now (see requireMembership()). */
export async function usableMembership(store: Store, teamId: TeamId, accountId: AccountId): Promise<Membership | null> {
  return usable(await standingOf(store, teamId, accountId))
}

function usable(found: Found | null | undefined): Membership | null {
  if (found === null || found === undefined) return null
  return found.membership.status === 'ACTIVE' && !found.lacksSecondFactor ? found.membership : null
}

interface Found {
  readonly membership: Membership
  readonly lacksSecondFactor: boolean
}

/** Returns null if the account is not a member. The membership is cached. */
function standingOf(store: Store, teamId: TeamId, accountId: AccountId): Promise<Found | null> {
  return store.recall(nameOf(teamId, accountId), async () => {
    const row = await store.db
      .selectFrom('memberships')
      .innerJoin('accounts', 'accounts.id', 'memberships.account_id')
      .innerJoin('teams', 'teams.id', 'memberships.team_id')
      .select(['memberships.role', 'memberships.status', 'accounts.twoFactorEnabled', 'teams.settings'])
      .where('memberships.team_id', '=', teamId)
      .where('memberships.account_id', '=', accountId)
      .executeTakeFirst()
    if (row === undefined) return null
    const membership = { teamId, accountId, role: row.role, status: row.status }
    return { membership, lacksSecondFactor: !isTrue(row.twoFactorEnabled) && requiresSecondFactor(row.settings) }
  })
}

function nameOf(teamId: TeamId, accountId: AccountId): string {
  return `membership ${teamId} ${accountId}`
}

function secondFactorRequired(): AppError {
  return new AppError(
    'SECOND_FACTOR_REQUIRED',
    'This team requires a second factor. Sign in and set one up: POST /auth/two-factor/enable.',
  )
}

export function roleRequired(role: Role): AppError {
  return new AppError(
    'ROLE_REQUIRED',
    `This needs the role ${role}${role === 'OWNER' ? '' : ' or above'} in the team.`,
    {
      extra: { requiredRole: role },
    },
  )
}
