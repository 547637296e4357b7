// Invitations to a team by e-mail address. The token works once, within 14 days, and only for the invited address. If
// SMTP is set, the token is mailed, except to a verified account, which needs none. The store has only a hash of it.
// The answer does not reveal whether the address has a verified account, but the list of members does, because it
// contains the ids of accounts.
import { hash, randomBytes } from 'node:crypto'
import { AppError, notFound } from '../errors.ts'
import { sql, type Kysely, type Transaction } from 'kysely'
import { changesOf, type Target } from '../audit/recorded-changes.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import type { Call } from '../auth/caller.ts'
import { newId, type InvitationId, type TeamId } from '../ids.ts'
import { invitationLetter } from '../mail/mail-texts.ts'
import type { Mail } from '../mail/send-mail.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import { Role } from '../contract/schemas.ts'
import type { InvitationTable, Tables } from '../store/tables.ts'
import { canGrant, canTouch, roleAtLeast } from './roles.ts'
import { roleRequired, type Membership } from './require-membership.ts'
import { changing, membershipIn, type TeamChangeDeps } from './change-in-team.ts'
import type { Member } from './member-item.ts'
import { hasRoomUnopened, requireRoomInTeam, requireRoomUnopened } from './memberships-max.ts'
import { showTeam, type Team } from './teams.ts'

/** The lifetime of an invitation (docs/session.md#members). */
const LIFE_MS = 14 * 86_400_000

/** Limits for mails that other people cause: to one address, and by one inviter. */
const MAILS_TO_ADDRESS = { limit: 10, windowMs: 3_600_000 }
const MAILS_BY_ACCOUNT = { limit: 200, windowMs: 3_600_000 }
/** Limited because the list of members contains all pending invitations. */
const PENDING_MAX = 500

export interface InviteDeps extends TeamChangeDeps {
  readonly mail: Mail
  readonly origin: () => string
  readonly tries: Attempts
  readonly invitations: { prune(): void }
}

/** `inviteToken` is shown only in this answer. */
export type Invited = Member & { readonly inviteToken: string }

/**
 * Invites an address. An account with a verified address becomes a member (INVITED) immediately, unless it has too many
 * unopened teams. Other people become members when they accept. Throws ROLE_REQUIRED if the role is above the caller's
 * own, or if an ADMIN would replace an invitation as OWNER, CONFLICT if the address is a member or the team has too many
 * members or pending invitations, and RATE_LIMITED if the inviter has caused too many mails. If there were too many
 * mails to the address, no mail is sent.
 */
export async function addMember(
  deps: InviteDeps,
  call: Call,
  membership: Membership,
  order: { readonly email: string; readonly role: Role },
): Promise<Invited> {
  const { teamId } = membership
  const email = order.email.toLowerCase()
  const at = (deps.now ?? Date.now)()
  deps.invitations.prune()
  const inviteToken = randomBytes(32).toString('base64url')
  if (deps.mail.isOn) {
    await deps.tries.spend([{ key: `invitations by: ${membership.accountId}`, ...MAILS_BY_ACCOUNT }])
  }
  const { invited, letter } = await changing(deps, call, teamId, async (tx) => {
    const by = await membershipIn(tx, teamId, membership.accountId)
    if (!roleAtLeast(by.role, 'ADMIN')) throw roleRequired('ADMIN')
    if (!canGrant(by, order.role)) throw roleRequired(order.role)
    const account = await accountBy(tx, email)
    if (account !== undefined && (await isMember(tx, teamId, account.id))) {
      throw new AppError('CONFLICT', `${email} is already a member of this team.`)
    }
    await replaceOlder(tx, by, { teamId, email, at: new Date(at).toISOString() })
    await requireRoom(tx, teamId, new Date(at).toISOString())
    await requireRoomInTeam(tx, teamId)
    // Beyond the maximum, the answer is the same, so that it does not reveal whether the address has an account.
    const joins = account !== undefined && isTrue(account.emailVerified) && (await hasRoomUnopened(tx, account.id))
    const row = {
      id: newId<InvitationId>(),
      team_id: teamId,
      email,
      role: order.role,
      invited_by: membership.accountId,
      token_hash: hashOf(inviteToken),
      created_at: new Date(at).toISOString(),
      expires_at: new Date(at + LIFE_MS).toISOString(),
      // A verified account becomes a member now and needs no token, so the token counts as used.
      used_at: joins ? new Date(at).toISOString() : null,
    }
    await tx.insertInto('invitations').values(row).execute()
    if (joins) await join(tx, row, account.id, row.created_at)
    const names = await namesOf(tx, teamId, membership.accountId)
    const token = joins ? null : inviteToken
    const letter = invitationLetter({ to: email, origin: deps.origin(), role: order.role, token, ...names })
    const changes = changesOf(null, { role: row.role, expiresAt: row.expires_at })
    return { value: { invited: { ...shown(row), inviteToken }, letter }, target: targetOf(row), changes }
  })
  // Strangers can use up the limit of an address, so beyond it only the mail is left out.
  if (deps.mail.isOn && (await deps.tries.allows([{ key: `invited: ${email}`, ...MAILS_TO_ADDRESS }]))) {
    deps.mail.send(letter, `account ${membership.accountId}`)
  }
  return invited
}

/** Throws NOT_FOUND for an unknown invitation, and ROLE_REQUIRED if an ADMIN removes an invitation as OWNER. */
export async function removeInvitation(
  deps: TeamChangeDeps,
  call: Call,
  membership: Membership,
  id: InvitationId,
): Promise<void> {
  const { teamId } = membership
  await changing(deps, call, teamId, async (tx) => {
    const by = await membershipIn(tx, teamId, membership.accountId)
    const row = await tx
      .selectFrom('invitations')
      .selectAll()
      .where('id', '=', id)
      .where('team_id', '=', teamId)
      .where('used_at', 'is', null)
      .executeTakeFirst()
    if (row === undefined) throw notFound()
    if (!canTouch(by, { role: row.role, status: 'INVITED' })) throw roleRequired('OWNER')
    await tx.deleteFrom('invitations').where('id', '=', id).execute()
    const changes = changesOf({ role: row.role, expiresAt: row.expires_at }, null)
    return { value: undefined, target: targetOf(row), changes }
  })
}

/**
 * The caller becomes INVITED. Throws NOT_FOUND if the token is unknown, used, expired, or for another address, and
 * CONFLICT if the caller has too many unopened teams, or the team too many members.
 */
export async function acceptInvitation(deps: TeamChangeDeps, call: Call, token: string): Promise<Team> {
  const { accountId } = call.caller
  const at = new Date((deps.now ?? Date.now)()).toISOString()
  const teamId = await deps.store.write(async (tx) => {
    const account = await tx.selectFrom('accounts').select('email').where('id', '=', accountId).executeTakeFirst()
    const row = account && (await usable(tx, token, account.email, at))
    if (row === undefined) throw notFound()
    await tx.updateTable('invitations').set({ used_at: at }).where('id', '=', row.id).execute()
    const joins = !(await isMember(tx, row.team_id, accountId))
    if (joins) await requireRoomUnopened(tx, accountId)
    if (joins) await requireRoomInTeam(tx, row.team_id)
    if (joins) await join(tx, row, accountId, at)
    const changes = changesOf(null, { usedAt: at, ...(joins && { role: row.role }) })
    await deps.audit.change(tx, call, { teamId: row.team_id }, { target: targetOf(row), changes })
    return row.team_id
  })
  const { role, status } = await deps.store.db
    .selectFrom('memberships')
    .select(['role', 'status'])
    .where('team_id', '=', teamId)
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return await showTeam(deps.store, call, { teamId, accountId, role, status })
}

function targetOf({ id, email }: Pick<InvitationTable, 'id' | 'email'>): Target {
  return { kind: 'invitation', id, name: email }
}

/**
 * Ends the invitations of a member who leaves (`role` is null) or gets another role, as far as the member may no longer
 * send them. Otherwise the member could return with the former role. Also removes the people who were invited in this
 * way and have not opened the team yet. Returns their addresses.
 */
export async function endInvitationsBy(
  tx: Transaction<Tables>,
  teamId: TeamId,
  accountId: Membership['accountId'],
  role: Role | null,
): Promise<readonly string[]> {
  const mayStill = (invited: Role) =>
    role !== null && roleAtLeast(role, 'ADMIN') && canGrant({ role, status: 'ACTIVE' }, invited)
  const roles = Role.options.filter((each) => !mayStill(each))
  if (roles.length === 0) return []
  // The expression keeps SQLite from reading the account's invitations to all teams, of which there may be 50,000.
  const isBy = sql<boolean>`coalesce(invited_by, '') = ${accountId}`
  const made = tx
    .selectFrom('invitations')
    .where('invitations.team_id', '=', teamId)
    .where(isBy)
    .where('invitations.role', 'in', roles)
  const pending = await made.select('email').where('used_at', 'is', null).execute()
  const joined = made
    .innerJoin('accounts', 'accounts.email', 'invitations.email')
    .innerJoin('memberships', 'memberships.account_id', 'accounts.id')
    .where('memberships.team_id', '=', teamId)
    .where('memberships.status', '=', 'INVITED')
    .whereRef('memberships.role', '=', 'invitations.role')
    .where('used_at', 'is not', null)
  const waiting = await joined.select('invitations.email').execute()
  await tx
    .deleteFrom('memberships')
    .where('team_id', '=', teamId)
    .where('account_id', 'in', joined.select('accounts.id'))
    .execute()
  await tx.deleteFrom('invitations').where('team_id', '=', teamId).where(isBy).where('role', 'in', roles).execute()
  return [...pending, ...waiting].map(({ email }) => email)
}

/** Ends all invitations of an account, each team in a call of `commit`. */
export async function endAllInvitationsBy(
  db: Kysely<Tables>,
  accountId: Membership['accountId'],
  commit: (work: (tx: Transaction<Tables>) => Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  // A list of the teams would read all invitations, of which there may be 50,000.
  const first = db.selectFrom('invitations').select('team_id').where('invited_by', '=', accountId).limit(1)
  for (;;) {
    const row = await first.executeTakeFirst()
    if (row === undefined) return
    await commit((tx) => endInvitationsBy(tx, row.team_id, accountId, null))
  }
}

/** Returns the invitations that can still be accepted, oldest first. */
export async function pendingInvitations(db: Store['db'], teamId: TeamId, now: number): Promise<readonly Member[]> {
  const rows = await db
    .selectFrom('invitations')
    .selectAll()
    .where('team_id', '=', teamId)
    .where('used_at', 'is', null)
    .where('expires_at', '>', new Date(now).toISOString())
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return rows.map(shown)
}

/** Throws CONFLICT, also for a verified account, because the answer must not reveal whether the address has one. */
async function requireRoom(tx: Transaction<Tables>, teamId: TeamId, at: string): Promise<void> {
  const { count } = await tx
    .selectFrom('invitations')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .where('used_at', 'is', null)
    .where('expires_at', '>', at)
    .executeTakeFirstOrThrow()
  if (Number(count) < PENDING_MAX) return
  const why = `A team can have at most ${PENDING_MAX} pending invitations. Remove one first, or wait until one expires.`
  throw new AppError('CONFLICT', why)
}

function usable(
  tx: Transaction<Tables>,
  token: string,
  email: string,
  at: string,
): Promise<InvitationTable | undefined> {
  return tx
    .selectFrom('invitations')
    .selectAll()
    .where('token_hash', '=', hashOf(token))
    .where('email', '=', email.toLowerCase())
    .where('used_at', 'is', null)
    .where('expires_at', '>', at)
    .executeTakeFirst()
}

/** Deletes older invitations to the same address. Only an OWNER can replace an invitation as OWNER. */
async function replaceOlder(
  tx: Transaction<Tables>,
  by: { readonly role: Role; readonly status: Membership['status'] },
  { teamId, email, at }: { readonly teamId: TeamId; readonly email: string; readonly at: string },
): Promise<void> {
  const older = await tx
    .selectFrom('invitations')
    .select(['id', 'role', 'used_at', 'expires_at'])
    .where('team_id', '=', teamId)
    .where('email', '=', email)
    .execute()
  for (const row of older) {
    const isPending = row.used_at === null && row.expires_at > at
    if (isPending && !canTouch(by, { role: row.role, status: 'INVITED' })) throw roleRequired('OWNER')
    await tx.deleteFrom('invitations').where('id', '=', row.id).execute()
  }
}

async function join(
  tx: Transaction<Tables>,
  of: Pick<InvitationTable, 'team_id' | 'role'>,
  accountId: Membership['accountId'],
  created_at: string,
): Promise<void> {
  const row = { team_id: of.team_id, account_id: accountId, role: of.role, status: 'INVITED', created_at } as const
  await tx.insertInto('memberships').values(row).execute()
}

async function namesOf(tx: Transaction<Tables>, teamId: TeamId, by: Membership['accountId']) {
  const team = await tx.selectFrom('teams').select('name').where('id', '=', teamId).executeTakeFirstOrThrow()
  const account = await tx.selectFrom('accounts').select('email').where('id', '=', by).executeTakeFirstOrThrow()
  return { team: team.name, by: account.email }
}

function accountBy(tx: Transaction<Tables>, email: string) {
  return tx.selectFrom('accounts').select(['id', 'emailVerified']).where('email', '=', email).executeTakeFirst()
}

async function isMember(tx: Transaction<Tables>, teamId: TeamId, accountId: Membership['accountId']): Promise<boolean> {
  const row = await tx
    .selectFrom('memberships')
    .select('role')
    .where('team_id', '=', teamId)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row !== undefined
}

function shown(row: InvitationTable): Member {
  return {
    invitationId: row.id,
    accountId: null,
    email: row.email,
    name: null,
    role: row.role,
    status: 'INVITED',
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}

export function hashOf(token: string): string {
  return hash('sha256', token)
}
