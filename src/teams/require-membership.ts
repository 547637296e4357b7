// Checks a caller's membership of a team. An account outside the team, a key without access and an unknown team get the
// same error.
import type { Audit } from '../audit/audit.ts'
import { mayEnter, type Call, type Caller } from '../auth/caller.ts'
import { AppError, notFound } from '../errors.ts'
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
  /** Records refusals for a low role or a missing second factor. */
  readonly audit?: Pick<Audit, 'refused' | 'folded'>
}

/**
 * Returns the caller's membership. Throws NOT_FOUND for an account outside the team, a key that does not reach the
 * team, or an unknown team. Throws TEAM_NOT_OPENED while INVITED, unless `invited`. Throws SECOND_FACTOR_REQUIRED for
 * an ACTIVE member without the factor that the team requires, unless `withoutSecondFactor`. Throws ROLE_REQUIRED below
 * `role`.
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
  // INVITED members reach no datasource yet, so they get this error only after they open the team.
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

/**
 * Returns the membership if it is cached. Returns null otherwise, and if requireMembership() would throw.
 */
export function knownMembership(store: Pick<Store, 'known'>, caller: Caller, teamId: TeamId): Membership | null {
  if (!mayEnter(caller, teamId)) return null
  return usable(store.known<Found | null>(nameOf(teamId, caller.accountId)))
}

/**
 * Returns the memberships with which the caller may currently use the routes of a team, by the rules of
 * requireMembership().
 */
export async function membershipsOf({ store }: Pick<Deps, 'store'>, call: Call): Promise<readonly Membership[]> {
  const { accountId } = call.caller
  const own = store.db.selectFrom('memberships').select('team_id').where('account_id', '=', accountId)
  const found: Membership[] = []
  for (const { team_id: teamId } of await own.orderBy('team_id').execute()) {
    const membership = mayEnter(call.caller, teamId) ? await usableMembership(store, teamId, accountId) : null
    if (membership !== null) found.push(membership)
  }
  return found
}

/**
 * Returns the membership with which the account may currently use the routes of the team. Returns null if
 * requireMembership() would throw.
 */
export async function usableMembership(store: Store, teamId: TeamId, accountId: AccountId): Promise<Membership | null> {
  return usable(await standingOf(store, teamId, accountId))
}

function usable(found: Found | null | undefined): Membership | null {
  if (found === null || found === undefined) return null
  return found.membership.status === 'ACTIVE' && !found.lacksSecondFactor ? found.membership : null
}

interface Found {
  readonly membership: Membership
  /** True if the team requires a second factor and the account has not enabled one. */
  readonly lacksSecondFactor: boolean
}

/** Returns the membership, from the cache or the store. Returns null if the account is not a member. */
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
