// Runs a change within a team in one transaction with its audit row, and reads memberships inside that transaction.
import type { Kysely, Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import type { Changed, Target } from '../audit/recorded-changes.ts'
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

/** The result of a change, and the fields for its audit row. */
interface Done<T> extends Changed {
  readonly value: T
}

/** Runs one change and its audit row in one transaction. Refusals are recorded by operations/. */
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

/**
 * Reads the membership again, because it may have changed since the route checked it. Throws NOT_FOUND if the account
 * is no longer a member.
 */
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

/** Returns a member as an audit target, named by e-mail address. */
export async function memberTarget(tx: Kysely<Tables>, accountId: AccountId): Promise<Target> {
  const account = await tx.selectFrom('accounts').select('email').where('id', '=', accountId).executeTakeFirst()
  return { kind: 'member', id: accountId, name: account?.email ?? '' }
}
