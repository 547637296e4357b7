// Whether a caller belongs to a team, and as what. A stranger, a key narrowed away and a team that never was are told
// the same, here and nowhere else.
import type { Audit } from '../audit/audit.ts'
import { mayEnter, type Call } from '../auth/caller.ts'
import { AppError, notFound } from '../errors.ts'
import type { AccountId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { MembershipTable, Role } from '../store/tables.ts'
import { roleAtLeast } from './access.ts'

export interface Membership {
  readonly teamId: TeamId
  readonly accountId: AccountId
  readonly role: Role
  readonly status: MembershipTable['status']
}

interface Deps {
  readonly store: Store
  /** Keeps what a role was too low for. */
  readonly audit?: Pick<Audit, 'refused'>
}

/**
 * The caller's membership. Throws NOT_FOUND for a stranger, a narrowed or ended key, no such team; TEAM_NOT_OPENED
 * while INVITED unless `invited`; ROLE_REQUIRED below `role`.
 */
export async function belong(
  deps: Deps,
  call: Call,
  teamId: TeamId,
  need: { readonly role?: Role; readonly invited?: boolean } = {},
): Promise<Membership> {
  if (!mayEnter(call.caller, teamId)) throw notFound()
  const membership = await membershipOf(deps.store, teamId, call.caller.accountId)
  if (membership === null) throw notFound()
  if (membership.status === 'INVITED' && need.invited !== true) {
    throw new AppError('TEAM_NOT_OPENED', 'You were invited to this team: open it first.')
  }
  if (need.role !== undefined && !roleAtLeast(membership.role, need.role)) {
    const error = roleRequired(need.role)
    deps.audit?.refused(call, { teamId }, error)
    throw error
  }
  return membership
}

/** Recalled; null for a stranger. */
function membershipOf(store: Store, teamId: TeamId, accountId: AccountId): Promise<Membership | null> {
  return store.recall(`membership ${teamId} ${accountId}`, async () => {
    const row = await store.db
      .selectFrom('memberships')
      .select(['role', 'status'])
      .where('team_id', '=', teamId)
      .where('account_id', '=', accountId)
      .executeTakeFirst()
    return row === undefined ? null : { teamId, accountId, role: row.role, status: row.status }
  })
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
