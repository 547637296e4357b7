import { setImmediate } from 'node:timers/promises'
import type { Kysely, Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import { changesOf, type Target } from '../audit/recorded-changes.ts'
import { AppError } from '../errors.ts'
import type { AccountId } from '../ids.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { AccountTable, Tables } from '../store/tables.ts'
import { isoTime, storedTime } from '../store/better-auth-times.ts'
import { unauthenticated } from './authenticate.ts'
import type { Call } from './caller.ts'
import { requireConfirmed } from './require-recent-sign-in.ts'

export interface Account {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly avatarUrl: string | null
  readonly emailVerified: boolean
  readonly createdAt: string
}

interface Deps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change' | 'refused'>
  readonly now?: () => number
}

interface DeleteDeps extends Deps {
  endInvitationsOf(
    db: Kysely<Tables>,
    accountId: AccountId,
    commit: (work: (tx: Transaction<Tables>) => Promise<unknown>) => Promise<unknown>,
  ): Promise<void>
}

export async function account(deps: Pick<Deps, 'store'>, call: Call): Promise<Account> {
  const { accountId } = call.caller
  const row = await deps.store.recall(`account ${accountId}`, () =>
    deps.store.db.selectFrom('accounts').selectAll().where('id', '=', accountId).executeTakeFirst(),
  )
  // The account was deleted after the token was checked.
  if (row === undefined) throw unauthenticated()
  return shown(row)
}

export async function renameAccount(deps: Deps, call: Call, change: { readonly name?: string }): Promise<Account> {
  const { accountId } = call.caller
  const { name } = change
  if (name !== undefined) {
    await deps.store.write(async (tx) => {
      const updatedAt = storedTime(deps.store.dialect, Date.now())
      const row = await tx.selectFrom('accounts').select('name').where('id', '=', accountId).executeTakeFirst()
      await tx.updateTable('accounts').set({ name, updatedAt }).where('id', '=', accountId).execute()
      const changes = changesOf({ name: row?.name }, { name })
      await deps.audit.change(tx, call, {}, { target: accountTarget(accountId, name), changes })
    })
  }
  return await account(deps, call)
}

/**
 * Deletes the account with everything that belongs to it, including the invitations that it sent, and unused
 * invitations and links to its address. Its audit rows stay. Throws REAUTHENTICATION_REQUIRED unless `confirm` is the
 * e-mail address and the sign-in is recent. Throws CONFLICT if the account is the last OWNER of a team.
 */
export async function deleteAccount(deps: DeleteDeps, call: Call, body: { readonly confirm?: string }): Promise<void> {
  const { accountId } = call.caller
  try {
    const { email, name } = await account(deps, call)
    const confirmed = body.confirm?.trim().toLowerCase() === email.toLowerCase()
    requireConfirmed(call.caller, confirmed, 'its e-mail address', (deps.now ?? Date.now)())
    await requireOtherOwners(deps.store.db, accountId)
    // An account may have many of these rows, so they are not deleted with the account in one transaction.
    await deleteInPortions(deps.store, 'oauth_refresh_tokens', (eb) => eb('userId', '=', accountId))
    await deleteInPortions(deps.store, 'exposure_requests', (eb) =>
      eb.and([eb('account_id', '=', accountId), eb('closed_at', 'is not', null)]),
    )
    await deleteInPortions(deps.store, 'access_entries', (eb) => eb('account_id', '=', accountId))
    await deleteInPortions(deps.store, 'invitations', (eb) =>
      eb.and([eb('email', '=', email.toLowerCase()), eb('used_at', 'is', null)]),
    )
    await deps.endInvitationsOf(deps.store.db, accountId, async (work) => {
      await deps.store.write(work)
      // SQLite answers synchronously, so let other requests run.
      await setImmediate()
    })
    await deps.store.write(async (tx) => {
      await requireOtherOwners(tx, accountId)
      const changes = changesOf({ name }, null)
      await deps.audit.change(tx, call, {}, { target: accountTarget(accountId, name), changes })
      // The account may have sent others in the meantime.
      await deps.endInvitationsOf(tx, accountId, (work) => work(tx))
      // These rows have no foreign key, so they are not deleted with the account.
      await tx.deleteFrom('invitations').where('email', '=', email.toLowerCase()).where('used_at', 'is', null).execute()
      await tx.deleteFrom('verifications').where('value', '=', accountId).execute()
      await tx.deleteFrom('accounts').where('id', '=', accountId).execute()
    })
  } catch (error) {
    deps.audit.refused(call, {}, error)
    throw error
  }
}

/** Throws CONFLICT if the account is the last OWNER of a team. */
async function requireOtherOwners(db: Kysely<Tables>, accountId: AccountId): Promise<void> {
  const team = await db
    .selectFrom('memberships')
    .innerJoin('teams', 'teams.id', 'memberships.team_id')
    .select('teams.name')
    .where('account_id', '=', accountId)
    .where('role', '=', 'OWNER')
    .where('status', '=', 'ACTIVE')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('memberships as other')
            .select('other.account_id')
            .whereRef('other.team_id', '=', 'teams.id')
            .where('other.account_id', '!=', accountId)
            .where('other.role', '=', 'OWNER')
            .where('other.status', '=', 'ACTIVE'),
        ),
      ),
    )
    .executeTakeFirst()
  if (team === undefined) return
  throw new AppError(
    'CONFLICT',
    `You are the last OWNER of the team ${team.name}. Make another member OWNER or delete the team first.`,
  )
}

/** Audit rows without a team must not contain an e-mail address, so the target has only the name. */
export function accountTarget(id: AccountId, name: string): Target {
  return { kind: 'account', id, name }
}

function shown(row: AccountTable): Account {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    avatarUrl: row.image,
    emailVerified: isTrue(row.emailVerified),
    createdAt: isoTime(row.createdAt),
  }
}
