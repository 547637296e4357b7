// Sets a new password with a mailed link. All sessions and links end, and so do the keys, grants, passkeys and
// providers that the person does not keep. The second factor of a verified account stays on without a code, because
// access to the mailbox alone must not be enough to sign in (docs/decisions/0022-proof-of-an-address.md).
import { hash, randomUUID } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { z } from 'zod'
import type { Reset } from '../contract/sign-in-routes.ts'
import { aliveGrantsOf, endGrantsOf, forgetTokens } from '../auth/grants.ts'
import { invalidRequest } from '../errors.ts'
import type { AccountId } from '../ids.ts'
import { isTrue, storedFlag } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import type { ApiKeyTable, ConnectorGrantTable, PasskeyTable, Tables } from '../store/tables.ts'
import { storedTime } from '../store/better-auth-times.ts'
import type { CodeTries } from './second-factor-limits.ts'
import { invalidLink } from './better-auth-errors.ts'
import type { Library } from './sign-in-library.ts'
import type { Providers } from './providers/trips-to-providers.ts'
import { wrongCode } from './second-factor-lock.ts'
import { factorOf, useCode } from './consume-second-factor-code.ts'
import { passkeysOf, waysOf, type ShownProvider } from './ways-to-sign-in.ts'

interface Deps {
  readonly store: Store
  readonly library: Library
  readonly codes: Pick<CodeTries, 'byLink'>
  readonly providers: Pick<Providers, 'all'>
  /** If mail is on, the link was mailed and proves the address. If not, the link was logged. */
  readonly mailIsOn: boolean
  readonly now: number
}

type Order = z.infer<typeof Reset>
type ShownKey = Pick<ApiKeyTable, 'id' | 'name' | 'hint'>
interface ShownGrant {
  readonly id: string
  readonly clientName: string
  readonly clientHost: string
}

type EndedPasskey = Pick<PasskeyTable, 'id' | 'name'>
type EndedProvider = Pick<ShownProvider, 'provider' | 'name' | 'label'>

/** Lists what a new password would end. The link stays valid. Throws INVALID_REQUEST if it is invalid. */
export async function previewReset(deps: Omit<Deps, 'library' | 'codes'>, token: string) {
  const { accountId } = await linkOf(deps, token)
  const account = await accountOf(deps.store.db, accountId)
  const keys = await aliveKeys(deps.store.db, accountId, deps.now)
  const grants = await aliveGrantsOf(deps.store.db, accountId, deps.now)
  return {
    keys: keys.map((key) => ({
      id: key.id,
      name: key.name,
      hint: key.hint,
      createdAt: key.created_at,
      lastUsedAt: key.last_used_at,
      expiresAt: key.expires_at,
    })),
    grants: grants.map((grant) => ({
      ...shownGrant(grant),
      createdAt: grant.created_at,
      lastUsedAt: grant.last_used_at,
      expiresAt: grant.expires_at,
    })),
    ...(await endableWays(deps, accountId)),
    secondFactor: (await factorOf(deps.store, accountId)) !== null,
    mayKeep: !provesAddress(deps, account),
  }
}

interface Part {
  readonly keys: readonly ShownKey[]
  readonly grants: readonly ShownGrant[]
  readonly passkeys: readonly EndedPasskey[]
  readonly providers: readonly EndedProvider[]
  readonly secondFactor: boolean
}

export interface ResetDone {
  readonly accountId: AccountId
  readonly email: string
  readonly password: string
  readonly answer: {
    readonly status: true
    readonly ended: Part & { readonly sessions: number }
    readonly kept: Part
  }
}

/**
 * Throws INVALID_REQUEST if the link is invalid or was used, or if `keep` is invalid. Throws UNAUTHENTICATED if the
 * code is wrong, and RATE_LIMITED after too many codes. A refused reset changes nothing, except that a correct code is
 * used up if another request uses the link first.
 */
export async function resetPassword(deps: Deps, order: Order): Promise<ResetDone> {
  const { store, library, now } = deps
  const link = await linkOf(deps, order.token)
  await checkKeep(deps, link.accountId, order.keep)
  const endsFactor = await maySwitchOff(deps, link.accountId, order)
  const password = await library.hashPassword(order.newPassword)
  const done = await store.write(async (tx): Promise<ResetDone> => {
    const used = await tx.deleteFrom('verifications').where('id', '=', link.id).executeTakeFirst()
    if (used.numDeletedRows !== 1n) throw invalidLink()
    // Another request used the link first.
    const account = await accountOf(tx, link.accountId)
    const proves = provesAddress(deps, account)
    await setPassword(store, tx, { accountId: link.accountId, password, now })
    const sessions = await tx.deleteFrom('sessions').where('userId', '=', link.accountId).executeTakeFirst()
    await tx.deleteFrom('verifications').where('value', '=', link.accountId).execute()
    if (proves) {
      const emailVerified = storedFlag(store.dialect, true)
      await tx.updateTable('accounts').set({ emailVerified }).where('id', '=', link.accountId).execute()
    }
    const keys = await endKeys(tx, link.accountId, proves ? [] : (order.keep?.keyIds ?? []), now)
    const grants = await endGrants(tx, link.accountId, proves ? [] : (order.keep?.grantIds ?? []), now)
    const passkeys = await endPasskeys(tx, link.accountId, proves ? [] : (order.keep?.passkeyIds ?? []))
    const providers = await endProviders(deps, tx, link.accountId, proves ? [] : (order.keep?.providers ?? []))
    const hadFactor = isTrue(account.twoFactorEnabled)
    if (proves || endsFactor) await endSecondFactor(store, tx, link.accountId)
    const secondFactor = hadFactor && (proves || endsFactor)
    return {
      accountId: link.accountId,
      email: account.email,
      password,
      answer: {
        status: true,
        ended: {
          sessions: Number(sessions.numDeletedRows),
          keys: keys.ended,
          grants: grants.ended,
          passkeys: passkeys.ended,
          providers: providers.ended,
          secondFactor,
        },
        kept: {
          keys: keys.kept,
          grants: grants.kept,
          passkeys: passkeys.kept,
          providers: providers.kept,
          secondFactor: hadFactor && !secondFactor,
        },
      },
    }
  })
  forgetTokens(
    store,
    done.answer.ended.grants.map((grant) => grant.id),
  )
  return done
}

/** Throws INVALID_REQUEST if `keep` names something that the account does not have. */
async function checkKeep(deps: Deps, accountId: AccountId, keep: Order['keep']): Promise<void> {
  if (keep === undefined) return
  const { db } = deps.store
  const { passkeys, providers } = await endableWays(deps, accountId)
  const keys = await aliveKeys(db, accountId, deps.now)
  const grants = await aliveGrantsOf(db, accountId, deps.now)
  const lists: readonly (readonly [string, readonly string[] | undefined, readonly string[]])[] = [
    ['keyIds: contains a key that this account does not have', keep.keyIds, keys.map(({ id }) => id)],
    ['grantIds: contains a grant that this account does not have', keep.grantIds, grants.map(({ id }) => id)],
    ['passkeyIds: contains a passkey that this account does not have', keep.passkeyIds, passkeys.map(({ id }) => id)],
    ['providers: contains a provider that is not connected', keep.providers, providers.map((each) => each.provider)],
  ]
  const problems = lists.flatMap(([problem, named = [], held]) =>
    named.every((one) => held.includes(one)) ? [] : [`keep.${problem}`],
  )
  if (problems.length > 0) throw invalidRequest(problems)
}

export async function endSecondFactor(
  store: Pick<Store, 'dialect'>,
  tx: Transaction<Tables>,
  accountId: AccountId,
): Promise<void> {
  const twoFactorEnabled = storedFlag(store.dialect, false)
  await tx.deleteFrom('second_factors').where('userId', '=', accountId).execute()
  await tx.updateTable('accounts').set({ twoFactorEnabled }).where('id', '=', accountId).execute()
}

/** True if the request does not keep the second factor and has a valid code, which is then used up. */
async function maySwitchOff(deps: Deps, accountId: AccountId, order: Order): Promise<boolean> {
  const factor = order.keep?.secondFactor === true ? null : await factorOf(deps.store, accountId)
  if (order.code === undefined || factor === null) return false
  const settle = await deps.codes.byLink(accountId)
  if (!(await useCode(deps, factor, order.code, deps.now))) throw wrongCode()
  await settle()
  return true
}

interface Link {
  readonly id: string
  readonly accountId: AccountId
}

async function linkOf({ store, now }: Pick<Deps, 'store' | 'now'>, token: string): Promise<Link> {
  // The library creates the links, in this format.
  const identifier = hash('sha256', `reset-password:${token}`, 'base64url')
  const row = await store.db
    .selectFrom('verifications')
    .innerJoin('accounts', 'accounts.id', 'verifications.value')
    .select(['verifications.id', 'accounts.id as accountId'])
    .where('identifier', '=', identifier)
    .where('expiresAt', '>', storedTime(store.dialect, now))
    .executeTakeFirst()
  if (row === undefined) throw invalidLink()
  return row
}

async function accountOf(db: Store['db'], accountId: AccountId) {
  const row = await db
    .selectFrom('accounts')
    .select(['email', 'emailVerified', 'twoFactorEnabled'])
    .where('id', '=', accountId)
    .executeTakeFirst()
  if (row === undefined) throw invalidLink()
  return row
}

/** True if the link verifies the address for the first time. Then a stranger may have signed up, so nothing is kept. */
function provesAddress(
  { mailIsOn }: Pick<Deps, 'mailIsOn'>,
  account: { readonly emailVerified: number | boolean },
): boolean {
  return mailIsOn && !isTrue(account.emailVerified)
}

async function setPassword(
  store: Pick<Store, 'dialect'>,
  tx: Transaction<Tables>,
  { accountId, password, now }: { readonly accountId: AccountId; readonly password: string; readonly now: number },
): Promise<void> {
  const at = storedTime(store.dialect, now)
  const changed = await tx
    .updateTable('sign_in_methods')
    .set({ password, updatedAt: at })
    .where('userId', '=', accountId)
    .where('providerId', '=', 'credential')
    .executeTakeFirst()
  if (changed.numUpdatedRows > 0n) return
  const none = { accessToken: null, refreshToken: null, idToken: null, scope: null }
  const ends = { accessTokenExpiresAt: null, refreshTokenExpiresAt: null }
  const row = { id: randomUUID(), userId: accountId, accountId, providerId: 'credential', password }
  await tx
    .insertInto('sign_in_methods')
    .values({ ...row, ...none, ...ends, createdAt: at, updatedAt: at })
    .execute()
}

async function endKeys(tx: Transaction<Tables>, accountId: AccountId, keep: readonly string[], now: number) {
  const keys = await aliveKeys(tx, accountId, now)
  const [kept, ended] = [keys.filter((key) => keep.includes(key.id)), keys.filter((key) => !keep.includes(key.id))]
  await tx
    .updateTable('api_keys')
    .set({ revoked_at: new Date(now).toISOString() })
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .$if(keep.length > 0, (query) =>
      query.where(
        'id',
        'not in',
        kept.map((key) => key.id),
      ),
    )
    .execute()
  return { kept: kept.map(shown), ended: ended.map(shown) }
}

async function endGrants(tx: Transaction<Tables>, accountId: AccountId, keep: readonly string[], now: number) {
  const kept = (await aliveGrantsOf(tx, accountId, now)).filter((grant) => keep.includes(grant.id))
  const ended = await endGrantsOf(tx, accountId, now, keep)
  return { kept: kept.map(shownGrant), ended: ended.map(shownGrant) }
}

async function endPasskeys(tx: Transaction<Tables>, accountId: AccountId, keep: readonly string[]) {
  const passkeys = await passkeysOf(tx, accountId)
  const kept = passkeys.filter((passkey) => keep.includes(passkey.id))
  const ended = passkeys.filter((passkey) => !keep.includes(passkey.id))
  for (const { id } of ended) await tx.deleteFrom('passkeys').where('id', '=', id).execute()
  const shown = ({ id, name }: PasskeyTable): EndedPasskey => ({ id, name })
  return { kept: kept.map(shown), ended: ended.map(shown) }
}

async function endableWays({ store, providers: offered }: Pick<Deps, 'store' | 'providers'>, accountId: AccountId) {
  const { passkeys, providers } = await waysOf(store.db, accountId, offered)
  return { passkeys, providers }
}

async function endProviders(
  { providers: offered }: Pick<Deps, 'providers'>,
  tx: Transaction<Tables>,
  accountId: AccountId,
  keep: readonly string[],
) {
  const { providers } = await waysOf(tx, accountId, offered)
  const kept = providers.filter(({ provider }) => keep.includes(provider))
  const ended = providers.filter(({ provider }) => !keep.includes(provider))
  for (const { provider } of ended) {
    await tx.deleteFrom('sign_in_methods').where('userId', '=', accountId).where('providerId', '=', provider).execute()
  }
  const shown = ({ provider, name, label }: ShownProvider): EndedProvider => ({ provider, name, label })
  return { kept: kept.map(shown), ended: ended.map(shown) }
}

function shownGrant(row: ConnectorGrantTable): ShownGrant {
  return { id: row.id, clientName: row.client_name, clientHost: row.client_host }
}

function aliveKeys(db: Store['db'], accountId: AccountId, now: number): Promise<ApiKeyTable[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', new Date(now).toISOString())]))
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

function shown({ id, name, hint }: ApiKeyTable): ShownKey {
  return { id, name, hint }
}
