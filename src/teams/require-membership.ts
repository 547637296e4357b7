// Whether a caller belongs to a team, and as what. A stranger, a key narrowed away and a team that never was are told
// the same, here and nowhere else.
import type { Audit } from '../audit/audit.ts'
import { mayEnter, type Call } from '../auth/caller.ts'
import { AppError, notFound } from '../errors.ts'
import type { AccountId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { MembershipTable, Role } from '../store/tables.ts'
import { roleAtLeast } from './access.ts'
import { requiresSecondFactor } from './settings.ts'

export interface Membership {
  readonly teamId: TeamId
  readonly accountId: AccountId
  readonly role: Role
  readonly status: MembershipTable['status']
}

interface Deps {
  readonly store: Store
  /** Keeps what a role was too low for, or a second factor was missing for. */
  readonly audit?: Pick<Audit, 'refused' | 'folded'>
}

/**
 * The caller's membership. Throws NOT_FOUND for a stranger, a narrowed or ended key, no such team; TEAM_NOT_OPENED
 * while INVITED unless `invited`; SECOND_FACTOR_REQUIRED for an ACTIVE member who lacks the factor that the team
 * requires, unless `withoutSecondFactor`; ROLE_REQUIRED below `role`.
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
    throw new AppError('TEAM_NOT_OPENED', 'You were invited to this team: open it first.')
  }
  // INVITED members reach nothing yet; they are told once they have opened the team.
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

interface Found {
  readonly membership: Membership
  /** The team requires a second factor, and the account has none that is on. */
  readonly lacksSecondFactor: boolean
}

/** Recalled; null for a stranger. */
function standingOf(store: Store, teamId: TeamId, accountId: AccountId): Promise<Found | null> {
  return store.recall(`membership ${teamId} ${accountId}`, async () => {
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
    const hasFactor = row.twoFactorEnabled === true || row.twoFactorEnabled === 1
    return { membership, lacksSecondFactor: !hasFactor && requiresSecondFactor(row.settings) }
  })
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
