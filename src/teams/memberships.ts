// The members of a team. Nobody can give a role above their own, only an OWNER can change OWNERs, and the last OWNER of
// a team stays. These rules are checked in the transaction of the change.
import type { Member } from './member-item.ts'
import type { ExpressionBuilder, Kysely, Transaction } from 'kysely'
import { changesOf, type Changed } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import { AppError } from '../errors.ts'
import type { AccountId, TeamId } from '../ids.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { Role } from '../contract/schemas.ts'
import type { MembershipTable, Tables } from '../store/tables.ts'
import { canGrant, canTouch, roleAtLeast } from './roles.ts'
import { roleRequired, type Membership } from './require-membership.ts'
import { changing, membershipIn, memberTarget, type TeamChangeDeps } from './change-in-team.ts'
import { endInvitationsBy, pendingInvitations } from './invitations.ts'
import { requireRoomOpened } from './memberships-max.ts'
import { endTeamForGrantsOf } from './team-grants.ts'
import { endTeamForKeysOf } from './team-keys.ts'
import { showTeam, type Team } from './teams.ts'

/** Oldest first. For managers, the pending invitations follow. */
export async function listMembers(
  deps: Pick<TeamChangeDeps, 'store' | 'now'>,
  membership: Membership,
): Promise<readonly Member[]> {
  const rows = await members(deps.store.db, membership.teamId).orderBy('created_at').orderBy('account_id').execute()
  if (!roleAtLeast(membership.role, 'ADMIN')) return rows.map(shown)
  const at = (deps.now ?? Date.now)()
  return [...rows.map(shown), ...(await pendingInvitations(deps.store.db, membership.teamId, at))]
}

/** Throws CONFLICT if the caller is in too many teams. */
export async function openTeam(deps: TeamChangeDeps, call: Call, membership: Membership): Promise<Team> {
  const { teamId, accountId } = membership
  await deps.store.write(async (tx) => {
    const own = await membershipIn(tx, teamId, accountId)
    if (own.status === 'ACTIVE') return
    await requireRoomOpened(tx, accountId)
    await update(tx, own, { status: 'ACTIVE' })
    const changes = changesOf({ status: own.status }, { status: 'ACTIVE' })
    await deps.audit.change(tx, call, { teamId }, { target: await memberTarget(tx, accountId), changes })
  })
  return await showTeam(deps.store, call, { ...membership, status: 'ACTIVE' })
}

/** Removes the caller from the team and its access lists. Throws CONFLICT if the caller is the last OWNER. */
export async function leaveTeam(deps: TeamChangeDeps, call: Call, membership: Membership): Promise<void> {
  await removing(deps, call, membership.teamId, async (db) => {
    return await membershipIn(db, membership.teamId, membership.accountId)
  })
}

/** Throws NOT_FOUND if the account is not a member, and ROLE_REQUIRED or CONFLICT by the rules above. */
export async function changeMember(
  deps: TeamChangeDeps,
  call: Call,
  membership: Membership,
  accountId: AccountId,
  change: { readonly role: Role },
): Promise<Member> {
  const { teamId } = membership
  return await changing(deps, call, teamId, async (tx) => {
    const { by, target } = await parties(tx, membership, accountId)
    if (!canTouch(by, target)) throw roleRequired('OWNER')
    if (!canGrant(by, change.role)) throw roleRequired(change.role)
    if (change.role !== 'OWNER') await requireOtherOwner(tx, target)
    await update(tx, target, { role: change.role })
    const invitations = await endInvitationsBy(tx, teamId, accountId, change.role)
    const value = shown(await members(tx, teamId).where('account_id', '=', accountId).executeTakeFirstOrThrow())
    const changes = changesOf({ role: target.role, invitations }, { role: change.role })
    return { value, target: await memberTarget(tx, accountId), changes }
  })
}

/** Removes a member from the team and its access lists. Throws like changeMember(). */
export async function removeMember(
  deps: TeamChangeDeps,
  call: Call,
  membership: Membership,
  accountId: AccountId,
): Promise<void> {
  await removing(deps, call, membership.teamId, async (db) => {
    const { by, target } = await parties(db, membership, accountId)
    if (!canTouch(by, target)) throw roleRequired('OWNER')
    return target
  })
}

/** Throws NOT_FOUND if the account is not a member, and ROLE_REQUIRED if the caller may not change that member. */
export async function requireMember(
  deps: Pick<TeamChangeDeps, 'store'>,
  membership: Membership,
  accountId: AccountId,
): Promise<void> {
  const { by, target } = await parties(deps.store.db, membership, accountId)
  if (!canTouch(by, target)) throw roleRequired('OWNER')
}

async function parties(tx: Kysely<Tables>, membership: Membership, accountId: AccountId) {
  const by = await membershipIn(tx, membership.teamId, membership.accountId)
  if (!roleAtLeast(by.role, 'ADMIN')) throw roleRequired('ADMIN')
  return { by, target: await membershipIn(tx, membership.teamId, accountId) }
}

/**
 * Throws CONFLICT if the target is the last OWNER. An INVITED OWNER does not count, because that person may never open
 * the team.
 */
async function requireOtherOwner(tx: Kysely<Tables>, target: MembershipTable): Promise<void> {
  if (target.role !== 'OWNER' || target.status !== 'ACTIVE') return
  const other = await tx
    .selectFrom('memberships')
    .select('account_id')
    .where('team_id', '=', target.team_id)
    .where('account_id', '!=', target.account_id)
    .where('role', '=', 'OWNER')
    .where('status', '=', 'ACTIVE')
    .executeTakeFirst()
  if (other === undefined)
    throw new AppError('CONFLICT', 'A team must keep one OWNER. Make another member OWNER first.')
}

async function update(
  tx: Transaction<Tables>,
  of: MembershipTable,
  set: Partial<Pick<MembershipTable, 'role' | 'status'>>,
): Promise<void> {
  await tx
    .updateTable('memberships')
    .set(set)
    .where('team_id', '=', of.team_id)
    .where('account_id', '=', of.account_id)
    .execute()
}

/**
 * Ends the membership that `find` returns. The access entries are deleted first, in portions: there may be 500, and
 * SQLite writes another page for each. So an account that is removed loses its access at once, and never later.
 */
async function removing(
  deps: TeamChangeDeps,
  call: Call,
  teamId: TeamId,
  find: (db: Kysely<Tables>) => Promise<MembershipTable>,
): Promise<void> {
  const found = async (db: Kysely<Tables>) => {
    const target = await find(db)
    await requireOtherOwner(db, target)
    return target
  }
  const { account_id } = await found(deps.store.db)
  await deleteInPortions(deps.store, 'access_entries', (eb) => isEntryOf(eb, teamId, account_id), ENTRIES_A_PORTION)
  await changing(deps, call, teamId, async (tx) => ({ value: undefined, ...(await remove(tx, await found(tx))) }))
}

const ENTRIES_A_PORTION = 50

function isEntryOf(eb: ExpressionBuilder<Tables, 'access_entries'>, teamId: TeamId, accountId: AccountId) {
  const datasources = eb.selectFrom('datasources').select('id').where('team_id', '=', teamId)
  return eb.and([eb('account_id', '=', accountId), eb('datasource_id', 'in', datasources)])
}

/** Also ends the invitations that this member sent. Returns what the audit records. */
async function remove(tx: Transaction<Tables>, of: MembershipTable): Promise<Changed> {
  const keys = await endTeamForKeysOf(tx, of.team_id, of.account_id)
  const grants = await endTeamForGrantsOf(tx, of.team_id, of.account_id)
  await tx
    .deleteFrom('access_entries')
    .where((eb) => isEntryOf(eb, of.team_id, of.account_id))
    .execute()
  await tx.deleteFrom('memberships').where('team_id', '=', of.team_id).where('account_id', '=', of.account_id).execute()
  const invitations = await endInvitationsBy(tx, of.team_id, of.account_id, null)
  const changes = changesOf({ role: of.role, status: of.status, keys, grants, invitations }, null)
  return { target: await memberTarget(tx, of.account_id), changes }
}

function members(db: Store['db'], teamId: TeamId) {
  return db
    .selectFrom('memberships')
    .innerJoin('accounts', 'accounts.id', 'memberships.account_id')
    .select(['account_id', 'accounts.email', 'accounts.name', 'role', 'status', 'created_at'])
    .where('team_id', '=', teamId)
}

function shown(row: MemberRow): Member {
  return {
    accountId: row.account_id,
    email: row.email,
    // Members may not see the name before the person has opened the team.
    name: row.status === 'INVITED' ? null : row.name,
    role: row.role,
    status: row.status,
    createdAt: row.created_at,
  }
}

type MemberRow = Pick<MembershipTable, 'account_id' | 'role' | 'status' | 'created_at'> & {
  readonly email: string
  readonly name: string
}
