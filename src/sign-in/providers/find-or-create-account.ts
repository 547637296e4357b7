// Finds the account of a person who comes from a provider: the account to which the provider is connected, or else the
// account with the same e-mail address. The address counts only if both the provider and this service have verified it,
// because a stranger may have typed an unverified address. If there is no account, creates one if the provider has
// verified the address and the person may sign up.
import { randomUUID } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { Audit } from '../../audit/audit.ts'
import { changesOf } from '../../audit/recorded-changes.ts'
import { accountTarget } from '../../auth/own-account.ts'
import type { Config, Provider } from '../../config.ts'
import { newId, type AccountId } from '../../ids.ts'
import type { Secrets } from '../../secrets.ts'
import { isTrue, storedFlag } from '../../store/better-auth-booleans.ts'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'
import { storedTime } from '../../store/better-auth-times.ts'
import { callBy } from '../signed-in-person.ts'
import { replaceUnverifiedIn, requireSignUp } from '../sign-up.ts'
import type { HeldTrip } from './trips-to-providers.ts'
import { providerRefusal, type Profile } from './provider-identity.ts'

export interface AccountDeps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change'>
  readonly secrets: Pick<Secrets, 'derive'>
  readonly config: Pick<Config, 'signup' | 'loopback'>
  readonly mailIsOn: boolean
  readonly now: number
}

export interface Known {
  readonly provider: Provider
  readonly profile: Profile
}

export interface Entered {
  readonly accountId: AccountId
  readonly methodId: string
  /** True if the provider was connected to an existing account just now. Then its owner gets a mail. */
  readonly joined: boolean
}

/** `trip` has the tokens that the person had when the sign-in began. Throws SIGN_IN_REFUSED. */
export async function accountFor(
  deps: AccountDeps,
  request: Request,
  { provider, profile }: Known,
  trip: Pick<HeldTrip, 'setupToken' | 'inviteToken'>,
): Promise<Entered> {
  return await onceMore(() =>
    deps.store.write(async (tx) => {
      const method = await methodOf(tx, provider, profile)
      if (method !== undefined) {
        await tx.updateTable('sign_in_methods').set({ label: profile.label }).where('id', '=', method.id).execute()
        return { accountId: method.userId, methodId: method.id, joined: false }
      }
      const { email } = profile
      if (email === null || !profile.emailVerified) throw providerRefusal('EMAIL_UNVERIFIED')
      const found = await tx.selectFrom('accounts').selectAll().where('email', '=', email).executeTakeFirst()
      if (found !== undefined && isTrue(found.emailVerified)) {
        const methodId = await connect(deps, tx, request, { id: found.id, name: found.name }, { provider, profile })
        return { accountId: found.id, methodId, joined: true }
      }
      if (found !== undefined && !deps.mailIsOn) throw providerRefusal('ACCOUNT_UNVERIFIED')
      await requireSignUp({ ...deps, store: { db: tx } }, { email, ...tokensOf(trip) }, deps.now)
      const id = newId<AccountId>()
      const stays = found !== undefined && !(await replaceUnverifiedIn(tx, found.id, id))
      if (stays) throw providerRefusal('ACCOUNT_UNVERIFIED')
      const { name } = profile
      await addAccount(deps, tx, { id, email, name })
      const methodId = await addMethod(deps, tx, id, { provider, profile })
      const changes = changesOf({}, { provider: provider.name })
      await deps.audit.change(
        tx,
        callBy('signUp', { accountId: id, name }, request),
        {},
        {
          target: accountTarget(id, name),
          changes,
        },
      )
      return { accountId: id, methodId, joined: false }
    }),
  )
}

export async function connect(
  deps: Pick<AccountDeps, 'store' | 'audit' | 'now'>,
  tx: Transaction<Tables>,
  request: Request,
  account: { readonly id: AccountId; readonly name: string },
  known: Known,
): Promise<string> {
  const { provider, profile } = known
  const other = await tx
    .selectFrom('sign_in_methods')
    .select('id')
    .where('userId', '=', account.id)
    .where('providerId', '=', provider.id)
    .executeTakeFirst()
  if (other !== undefined) throw providerRefusal('ANOTHER_CONNECTED')
  const methodId = await addMethod(deps, tx, account.id, known)
  const changes = changesOf({}, { provider: provider.name, login: profile.label })
  await deps.audit.change(
    tx,
    callBy('connectProvider', { accountId: account.id, name: account.name }, request),
    {},
    {
      target: accountTarget(account.id, account.name),
      changes,
    },
  )
  return methodId
}

export async function methodOf(tx: Transaction<Tables>, provider: Provider, { subject }: Pick<Profile, 'subject'>) {
  return await tx
    .selectFrom('sign_in_methods')
    .select(['id', 'userId'])
    .where('providerId', '=', provider.id)
    .where('accountId', '=', keyOf(provider, subject))
    .executeTakeFirst()
}

/** Two issuers may use the same subject for different people, so the stored id includes the issuer. */
function keyOf({ issuer }: Provider, subject: string): string {
  return `${issuer.replace(/\/$/, '')}#${subject}`
}

async function addAccount(
  { store, now }: Pick<AccountDeps, 'store' | 'now'>,
  tx: Transaction<Tables>,
  account: { readonly id: AccountId; readonly email: string; readonly name: string },
): Promise<void> {
  const { dialect } = store
  const at = storedTime(dialect, now)
  const flags = { emailVerified: storedFlag(dialect, true), twoFactorEnabled: storedFlag(dialect, false) }
  await tx
    .insertInto('accounts')
    .values({ ...account, ...flags, image: null, createdAt: at, updatedAt: at })
    .execute()
}

async function addMethod(
  { store, now }: Pick<AccountDeps, 'store' | 'now'>,
  tx: Transaction<Tables>,
  accountId: AccountId,
  { provider, profile }: Known,
): Promise<string> {
  const id = randomUUID()
  const at = storedTime(store.dialect, now)
  const noTokens = { accessToken: null, refreshToken: null, idToken: null, scope: null, password: null }
  const noEnds = { accessTokenExpiresAt: null, refreshTokenExpiresAt: null }
  const row = { id, userId: accountId, accountId: keyOf(provider, profile.subject), providerId: provider.id }
  await tx
    .insertInto('sign_in_methods')
    .values({ ...row, ...noTokens, ...noEnds, label: profile.label, createdAt: at, updatedAt: at })
    .execute()
  return id
}

function tokensOf({ setupToken, inviteToken }: Pick<HeldTrip, 'setupToken' | 'inviteToken'>) {
  return { ...(setupToken !== undefined && { setupToken }), ...(inviteToken !== undefined && { inviteToken }) }
}

/** If a new person signs in twice at the same time, the second attempt finds the account of the first one. */
async function onceMore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === '23505')) throw error
    return await work()
  }
}
