// A change within a team: one transaction with its audit row, and the membership as it stands inside it.
import type { Kysely, Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
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

/** One change with its audit row in one transaction; the door keeps a refusal. */
export async function changing<T>(
  deps: TeamChangeDeps,
  call: Call,
  teamId: TeamId,
  work: (tx: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  return await deps.store.write(async (tx) => {
    const done = await work(tx)
    await deps.audit.change(tx, call, { teamId })
    return done
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
