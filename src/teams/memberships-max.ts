// Bounds the memberships of an account, because its list of teams and its activity read all of them, and the members of
// a team, because its list of members and its access lists do.
import type { Transaction } from 'kysely'
import { AppError } from '../errors.ts'
import type { AccountId, TeamId } from '../ids.ts'
import type { MembershipTable, Tables } from '../store/tables.ts'

/** An account that has not opened this many teams becomes a member of another one only with the token. */
export const UNOPENED_MAX = 50
/** An account that is in this many teams opens no other one. */
export const OPENED_MAX = 200
/** A team with this many members, including those who have not opened it, gets no other one. */
export const MEMBERS_MAX = 2_000

export async function hasRoomUnopened(tx: Transaction<Tables>, accountId: AccountId): Promise<boolean> {
  return (await count(tx, accountId, 'INVITED')) < UNOPENED_MAX
}

/** Throws CONFLICT if the account has too many teams that it has not opened. */
export async function requireRoomUnopened(tx: Transaction<Tables>, accountId: AccountId): Promise<void> {
  if (await hasRoomUnopened(tx, accountId)) return
  throw new AppError(
    'CONFLICT',
    `You have ${UNOPENED_MAX} invitations to teams that you have not opened. Open or leave one of these teams first.`,
  )
}

/** Throws CONFLICT if the account is in too many teams. */
export async function requireRoomOpened(tx: Transaction<Tables>, accountId: AccountId): Promise<void> {
  if ((await count(tx, accountId, 'ACTIVE')) < OPENED_MAX) return
  throw new AppError('CONFLICT', `You are in ${OPENED_MAX} teams. Leave one of them first.`)
}

/** Throws CONFLICT if the team has too many members. */
export async function requireRoomInTeam(tx: Transaction<Tables>, teamId: TeamId): Promise<void> {
  const row = await tx
    .selectFrom('memberships')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow()
  if (Number(row.count) < MEMBERS_MAX) return
  throw new AppError('CONFLICT', `A team can have at most ${MEMBERS_MAX} members. A manager must remove one first.`)
}

async function count(
  tx: Transaction<Tables>,
  accountId: AccountId,
  status: MembershipTable['status'],
): Promise<number> {
  const row = await tx
    .selectFrom('memberships')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('status', '=', status)
    .executeTakeFirstOrThrow()
  return Number(row.count)
}
