// A change in a team, the memberships that it depends on, and its audit row are in one transaction.
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

interface Done<T> extends Changed {
  readonly value: T
}

/** Runs a change and records it in the audit. operations/ records refusals. */
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

/** Reads the membership again, because it may have changed. Throws NOT_FOUND if it has ended. */
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

/** The audit names a member by the e-mail address. */
export async function memberTarget(tx: Kysely<Tables>, accountId: AccountId): Promise<Target> {
  const account = await tx.selectFrom('accounts').select('email').where('id', '=', accountId).executeTakeFirst()
  return { kind: 'member', id: accountId, name: account?.email ?? '' }
}
