// A change within a team: one transaction with its audit row, and the membership as it stands inside it.
import type { Kysely, Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import type { Changed, Target } from '../audit/changes.ts'
import type { Call } from '../auth/caller.ts'
import { notFound } from '../errors.ts'
import type { AccountId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { MembershipTable, Tables } from '../store/tables.ts'

export interface TeamChangeDeps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change'>
  readonly now?: () => number
}

/** What a change answers with, and what of it the audit keeps. */
interface Done<T> extends Changed {
  readonly value: T
}

/** One change with its audit row in one transaction; the door keeps a refusal. */
export async function changing<T>(
  deps: TeamChangeDeps,
  call: Call,
  teamId: TeamId,
  work: (tx: Transaction<Tables>) => Promise<Done<T>>,
): Promise<T> {
  return await deps.store.write(async (tx) => {
    const { value, ...what } = await work(tx)
    await deps.audit.change(tx, call, { teamId }, what)
    return value
  })
}

/** As it stands in this transaction: the door looked before it began. Throws NOT_FOUND for none. */
export async function membershipIn(tx: Kysely<Tables>, teamId: TeamId, accountId: AccountId): Promise<MembershipTable> {
  const row = await tx
    .selectFrom('memberships')
    .selectAll()
    .where('team_id', '=', teamId)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (row === undefined) throw notFound()
  return row
}

/** A member of a team, by the address that the team knows them by. */
export async function memberTarget(tx: Kysely<Tables>, accountId: AccountId): Promise<Target> {
  const account = await tx.selectFrom('accounts').select('email').where('id', '=', accountId).executeTakeFirst()
  return { kind: 'member', id: accountId, name: account?.email ?? '' }
}
