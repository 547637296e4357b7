// If a datasource has the access mode EXPLICIT, only OWNERs and the accounts on its access list can reach it. The list
// may contain only ACTIVE members of the team.
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
  const ids = [...new Set(request.accountIds)].map((text) => asId<AccountId>(text))
  await deps.store.write(async (tx) => {
    const members = await tx
      .selectFrom('memberships')
      .innerJoin('accounts', 'accounts.id', 'memberships.account_id')
      .select(['accounts.id', 'accounts.email'])
      .where('team_id', '=', at.teamId)
      .where('status', '=', 'ACTIVE')
      .execute()
    const active = new Set(members.map(({ id }) => id))
    const strangers = ids.filter((id) => !active.has(id))
    if (strangers.length > 0)
      throw invalidRequest(strangers.slice(0, 100).map((id) => `accountIds: ${id} is not an ACTIVE member`))
    const before = await listIn(tx, at.id)
    const [known, wanted] = [new Set(before.map(({ id }) => id)), new Set(ids)]
    for (const removed of portionsOf(before.filter(({ id }) => !wanted.has(id)))) {
      const accounts = removed.map(({ id }) => id)
      await tx
        .deleteFrom('access_entries')
        .where('datasource_id', '=', at.id)
        .where('account_id', 'in', accounts)
        .execute()
    }
    for (const added of portionsOf(ids.filter((id) => !known.has(id)))) {
      const entries = added.map((account_id) => ({ datasource_id: at.id, account_id }))
      await tx.insertInto('access_entries').values(entries).execute()
    }
    const after = members.filter(({ id }) => wanted.has(id))
    const changes = changesOf(audited(before), audited(after))
    const change = { target: await targetOf(tx, 'access', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, change)
  })
  return await getAccess(deps, at.id)
}

async function listIn(tx: Transaction<Tables>, id: DatasourceId): Promise<readonly Listed[]> {
  return await tx
    .selectFrom('access_entries')
    .innerJoin('accounts', 'accounts.id', 'access_entries.account_id')
    .select(['accounts.id', 'accounts.email'])
    .where('datasource_id', '=', id)
    .execute()
}

type Listed = Pick<AccountTable, 'id' | 'email'>

function audited(accounts: readonly Listed[]) {
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
