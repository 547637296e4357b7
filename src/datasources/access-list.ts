// If a datasource has the access mode EXPLICIT, only OWNERs and the accounts on its access list can reach it. The list
// may contain only ACTIVE members of the team.
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import { changesOf } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import { invalidRequest, notFound } from '../errors.ts'
import { targetOf } from '../exposure/audited-target.ts'
import { asId, type AccountId, type DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { AccountTable, Tables } from '../store/tables.ts'
import type { Membership } from '../teams/require-membership.ts'
import { membershipIn } from '../teams/change-in-team.ts'
import type { Reached } from './require-reach.ts'

export interface AccessDeps {
  readonly store: Store
  readonly audit: Audit
}

const ENTRIES_AT_ONCE = 500

export interface AccessList {
  readonly accountIds: readonly AccountId[]
}

export async function getAccess(deps: Pick<AccessDeps, 'store'>, id: DatasourceId): Promise<AccessList> {
  const rows = await deps.store.db
    .selectFrom('access_entries')
    .innerJoin('accounts', 'accounts.id', 'access_entries.account_id')
    .select('access_entries.account_id')
    .where('access_entries.datasource_id', '=', id)
    .orderBy('accounts.createdAt')
    .orderBy('accounts.id')
    .execute()
  return { accountIds: rows.map((row) => row.account_id) }
}

/** Replaces the whole list. Throws INVALID_REQUEST with up to 100 accounts that are not ACTIVE members. */
export async function putAccess(
  deps: AccessDeps,
  call: Call,
  at: Reached,
  request: { readonly accountIds: readonly string[] },
): Promise<AccessList> {
  const wanted = new Set(request.accountIds.map((text) => asId<AccountId>(text)))
  // SQLite answers synchronously, so let other requests run before and after the transaction.
  await setImmediate()
  const after = await deps.store.write(async (tx) => {
    const members = await membersOf(tx, at)
    const active = new Set(members.map(({ id }) => id))
    const strangers = [...wanted].filter((id) => !active.has(id))
    if (strangers.length > 0)
      throw invalidRequest(strangers.slice(0, 100).map((id) => `accountIds: ${id} is not an ACTIVE member`))
    const removed = members.filter(({ id, listed }) => listed !== null && !wanted.has(id))
    const added = members.filter(({ id, listed }) => listed === null && wanted.has(id))
    for (const portion of portionsOf(removed)) {
      const accounts = portion.map(({ id }) => id)
      await tx
        .deleteFrom('access_entries')
        .where('datasource_id', '=', at.id)
        .where('account_id', 'in', accounts)
        .execute()
    }
    for (const portion of portionsOf(added)) {
      const entries = portion.map(({ id }) => ({ datasource_id: at.id, account_id: id }))
      await tx.insertInto('access_entries').values(entries).execute()
    }
    const changes = changesOf(audited(removed), audited(added))
    const change = { target: await targetOf(tx, 'access', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, change)
    return members.filter(({ id }) => wanted.has(id))
  })
  await setImmediate()
  return { accountIds: after.map(({ id }) => id) }
}

/** Returns the ACTIVE members in the order of getAccess(). `listed` is null for members who are not on the list. */
async function membersOf(tx: Transaction<Tables>, { id, teamId }: Reached) {
  return await tx
    .selectFrom('memberships')
    .innerJoin('accounts', 'accounts.id', 'memberships.account_id')
    .leftJoin('access_entries', (join) =>
      join
        .on('access_entries.datasource_id', '=', id)
        .onRef('access_entries.account_id', '=', 'memberships.account_id'),
    )
    .select(['accounts.id', 'accounts.email', 'access_entries.account_id as listed'])
    .where('team_id', '=', teamId)
    .where('status', '=', 'ACTIVE')
    .orderBy('accounts.createdAt')
    .orderBy('accounts.id')
    .execute()
}

function audited(accounts: readonly Pick<AccountTable, 'id' | 'email'>[]) {
  const sorted = accounts.toSorted((a, b) => (a.email < b.email ? -1 : 1))
  return { accountIds: sorted.map(({ id }) => id), emails: sorted.map(({ email }) => email) }
}

/** A statement has a limited number of values. */
function portionsOf<T>(items: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / ENTRIES_AT_ONCE) }, (_, n) =>
    items.slice(n * ENTRIES_AT_ONCE, (n + 1) * ENTRIES_AT_ONCE),
  )
}

/** The creator could not reach an EXPLICIT datasource otherwise. An OWNER is not added, because an OWNER always can. */
export async function listCreator(
  tx: Transaction<Tables>,
  id: DatasourceId,
  { role, accountId }: Pick<Membership, 'role' | 'accountId'>,
): Promise<void> {
  if (role === 'OWNER') return
  await tx
    .insertInto('access_entries')
    .values({ datasource_id: id, account_id: accountId })
    .onConflict((oc) => oc.doNothing())
    .execute()
}

/**
 * Adds the caller to the access list when a ROLE_BASED datasource becomes EXPLICIT, unless the caller is an OWNER. Call
 * this before the change. Mode and membership are read in this transaction, so an account that was removed from the
 * list cannot add itself again. Throws NOT_FOUND if the caller is no longer a member.
 */
export async function listChanger(
  tx: Transaction<Tables>,
  { id, teamId, membership }: Pick<Reached, 'id' | 'teamId' | 'membership'>,
): Promise<void> {
  const row = await tx.selectFrom('datasources').select('access_mode').where('id', '=', id).executeTakeFirst()
  if (row?.access_mode !== 'ROLE_BASED') return
  const { role, status } = await membershipIn(tx, teamId, membership.accountId)
  if (status !== 'ACTIVE') throw notFound()
  await listCreator(tx, id, { role, accountId: membership.accountId })
}
