// Decides who may sign up, by the operator's setting and by invitations. The first account may always be created. It
// needs the setup token, unless the service listens only on loopback.
import { hash, timingSafeEqual } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import type { AccountId } from '../ids.ts'
import type { Secrets } from '../secrets.ts'
import { isTrue, storedFlag } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { accountBy } from './account-by-address.ts'

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly secrets: Pick<Secrets, 'derive'>
  readonly config: Pick<Config, 'signup' | 'loopback'>
}

export interface SignUpOrder {
  readonly email: string
  readonly setupToken?: string
  readonly inviteToken?: string
}

/** Throws SIGN_IN_REFUSED with a `reason` if the person may not sign up. */
export async function requireSignUp(deps: Deps, order: SignUpOrder, now: number): Promise<void> {
  if (await isEmpty(deps.store)) {
    if (deps.config.loopback || isSame(order.setupToken ?? '', setupToken(deps.secrets))) return
    throw refused('SETUP_TOKEN_NEEDED', 'The first account needs the setupToken from the log of this service.')
  }
  switch (deps.config.signup) {
    case 'open':
      return
    case 'invited':
      if (await isInvited(deps.store, order, now)) return
      throw refused('INVITATION_NEEDED', 'Signing up requires an invitation for this e-mail address.')
    case 'closed':
      throw refused('SIGN_UP_CLOSED', 'Signing up is closed.')
    default:
      return deps.config.signup satisfies never
  }
}

/**
 * Returns the id, or null. An account in a team is not deleted: it was created while mail was off, and anybody could
 * delete it by signing up.
 */
export async function deleteUnverified(store: Store, email: string): Promise<AccountId | null> {
  const unverified = await store.db
    .selectFrom('accounts')
    .select('id')
    .where('email', '=', email)
    .where('emailVerified', '=', storedFlag(store.dialect, false))
    .executeTakeFirst()
  if (unverified === undefined) return null
  return await store.write(async (tx) => ((await deleteUnverifiedIn(tx, unverified.id)) ? unverified.id : null))
}

export async function deleteUnverifiedIn(tx: Transaction<Tables>, id: AccountId): Promise<boolean> {
  const row = await tx
    .selectFrom('accounts')
    .leftJoin('memberships', 'memberships.account_id', 'accounts.id')
    .select(['accounts.emailVerified', 'accounts.twoFactorEnabled', 'memberships.team_id'])
    .where('accounts.id', '=', id)
    .executeTakeFirst()
  if (row === undefined || row.team_id !== null || isTrue(row.emailVerified)) return false
  // There may be sign-ins that wait for a code.
  if (isTrue(row.twoFactorEnabled)) await tx.deleteFrom('verifications').where('value', '=', id).execute()
  await tx.deleteFrom('accounts').where('id', '=', id).execute()
  return true
}

/** Also moves the reset links to `newId`. Returns false if the account is not deleted. */
export async function replaceUnverifiedIn(tx: Transaction<Tables>, id: AccountId, newId: AccountId): Promise<boolean> {
  if (!(await deleteUnverifiedIn(tx, id))) return false
  await tx.updateTable('verifications').set({ value: newId }).where('value', '=', id).execute()
  return true
}

/**
 * When a sign-up replaces an account, its reset links are moved to the new account, because a person who opens one owns
 * the address. Otherwise a stranger could use up the limit of mails, and then make the owner's links invalid by signing
 * up again.
 */
export async function moveLinks(store: Store, deletedId: AccountId, email: string): Promise<void> {
  const accountId = await accountBy(store, email)
  await store.write(async (tx) => {
    if (accountId === null) await tx.deleteFrom('verifications').where('value', '=', deletedId).execute()
    else await tx.updateTable('verifications').set({ value: accountId }).where('value', '=', deletedId).execute()
  })
}

/** Null if an account exists, or if the service listens only on loopback. */
export async function neededSetupToken(deps: Deps): Promise<string | null> {
  return !deps.config.loopback && (await isEmpty(deps.store)) ? setupToken(deps.secrets) : null
}

/** Derived from the root key, so the token is the same in every process and after a restart. */
function setupToken(secrets: Pick<Secrets, 'derive'>): string {
  return Buffer.from(secrets.derive('setup token')).toString('base64url')
}

/** While there is no account, sign-ups run one after the other, so that only one can be the first. */
export function serializedWhileEmpty(store: Store): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return async (work) => {
    if (!(await isEmpty(store))) return await work()
    const done = last.then(work)
    last = done.catch(() => undefined)
    return await done
  }
}

export async function isEmpty(store: Pick<Store, 'db'>): Promise<boolean> {
  return (await store.db.selectFrom('accounts').select('id').limit(1).executeTakeFirst()) === undefined
}

async function isInvited(store: Pick<Store, 'db'>, order: SignUpOrder, now: number): Promise<boolean> {
  if (order.inviteToken === undefined) return false
  const row = await store.db
    .selectFrom('invitations')
    .select('id')
    .where('token_hash', '=', hash('sha256', order.inviteToken))
    .where('email', '=', order.email.toLowerCase())
    .where('used_at', 'is', null)
    .where('expires_at', '>', new Date(now).toISOString())
    .executeTakeFirst()
  return row !== undefined
}

function isSame(given: string, wanted: string): boolean {
  return timingSafeEqual(Buffer.from(hash('sha256', given)), Buffer.from(hash('sha256', wanted)))
}

function refused(reason: string, message: string): AppError {
  return new AppError('SIGN_IN_REFUSED', message, { extra: { reason } })
}
