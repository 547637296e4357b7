// The passkeys of an account. The authenticator always checks the person (fingerprint, face or PIN), so a sign-in with
// a passkey needs no code.
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Transaction } from 'kysely'
import { z } from 'zod'
import { ALGORITHMS, type PasskeyCreation } from '../contract/passkey-schemas.ts'
import type { PasskeyAdded, PasskeyName } from '../contract/sign-in-routes.ts'
import type { Audit } from '../audit/audit.ts'
import { changesOf, type Changes } from '../audit/recorded-changes.ts'
import { accountTarget } from '../auth/own-account.ts'
import { doneFrom, type Notices } from '../auth/security-mail.ts'
import { requireRecent } from '../auth/require-recent-sign-in.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import { asId, newId, type AccountId, type PasskeyId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { PasskeyTable, Tables } from '../store/tables.ts'
import { notSignedIn } from './better-auth-errors.ts'
import { passkeyPlace, type PasskeyPlace } from './passkey-host.ts'
import { callBy, type Person } from './signed-in-person.ts'
import type { Providers } from './providers/trips-to-providers.ts'
import { sealedCookie, type SealedCookie, type SealedCookieOptions } from './sealed-cookie.ts'
import { useOnce } from './consume-second-factor-code.ts'
import { passkeysOf, requireAnotherWay, shownPasskey, type ShownPasskey } from './ways-to-sign-in.ts'

export interface PasskeyDeps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change'>
  readonly config: Parameters<typeof passkeyPlace>[0]
  readonly challenges: SealedCookie<Challenge>
  readonly notices: Notices
  readonly providers: Pick<Providers, 'all'>
  readonly now: number
}

/** How long a browser may take to answer a challenge. */
export const LIFE_MS = 300_000
const PASSKEYS_MAX = 20

/** Contains the account, because somebody else may sign in to this browser before the answer. */
const Challenge = z.object({
  challenge: z.string(),
  for: z.union([z.literal('sign in'), z.object({ add: z.string() })]),
})
export type Challenge = z.infer<typeof Challenge>

export function passkeyChallenges(
  deps: Pick<SealedCookieOptions<Challenge>, 'secrets' | 'secure' | 'now'>,
): SealedCookie<Challenge> {
  return sealedCookie({ ...deps, name: 'passkey', schema: Challenge, seconds: LIFE_MS / 1000 })
}

export function newChallenge(purpose: Challenge['for']): Challenge {
  return { challenge: randomBytes(32).toString('base64url'), for: purpose }
}

/** Throws SIGN_IN_REFUSED if passkeys do not work with the host name in the browser. */
export function requirePlace(deps: Pick<PasskeyDeps, 'config'>, request: Request): PasskeyPlace {
  const place = passkeyPlace(deps.config, request)
  if (place !== null) return place
  throw new AppError(
    'SIGN_IN_REFUSED',
    'A passkey needs a host name and HTTPS. On this machine, open the service under the name localhost.',
    { extra: { reason: 'NO_PASSKEYS_HERE' } },
  )
}

/** Returns what the browser needs to create a passkey, and a cookie with the challenge. */
export async function passkeyCreation(
  deps: PasskeyDeps,
  request: Request,
  { caller, email }: Person,
): Promise<{ readonly options: z.infer<typeof PasskeyCreation>; readonly cookie: string }> {
  const { rpId } = requirePlace(deps, request)
  requireRecent(caller.signedInAt, deps.now, 'add a way to sign in')
  const known = await passkeysOf(deps.store.db, caller.accountId)
  requireRoom(known)
  const challenge = newChallenge({ add: caller.accountId })
  const options = {
    challenge: challenge.challenge,
    rp: { id: rpId, name: 'Vitrine' },
    // All passkeys of an account have the same user id, so that a new passkey replaces the old one in the same
    // authenticator.
    user: { id: Buffer.from(caller.accountId).toString('base64url'), name: email, displayName: caller.name },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key' as const, alg })),
    timeout: LIFE_MS,
    excludeCredentials: known.map((passkey) => ({
      id: passkey.credential_id,
      type: 'public-key' as const,
      transports: transportsOf(passkey),
    })),
    authenticatorSelection: {
      residentKey: 'required' as const,
      requireResidentKey: true,
      userVerification: 'required' as const,
    },
    attestation: 'none' as const,
  }
  return { options, cookie: await deps.challenges.set(challenge) }
}

/**
 * Throws REAUTHENTICATION_REQUIRED if the sign-in is over 10 minutes old, UNAUTHENTICATED if the session has ended,
 * INVALID_REQUEST if the browser's answer is invalid or late, and CONFLICT if the passkey is known or the account has
 * too many.
 */
export async function addPasskey(
  deps: PasskeyDeps,
  request: Request,
  { caller }: Person,
  order: z.output<typeof PasskeyAdded>,
): Promise<ShownPasskey> {
  const { store, now } = deps
  requireRecent(caller.signedInAt, now, 'add a way to sign in')
  const challenge = await challengeOf(deps, request, { add: caller.accountId })
  const made = await verified(requirePlace(deps, request), challenge, order)
  const row: PasskeyTable = {
    id: newId<PasskeyId>(),
    account_id: caller.accountId,
    name: order.name.trim(),
    ...made,
    created_at: new Date(now).toISOString(),
    last_used_at: null,
  }
  await store.write(async (tx) => {
    // The session may have ended before the person answered.
    const session = await tx.selectFrom('sessions').select('id').where('id', '=', caller.sessionId).executeTakeFirst()
    if (session === undefined) throw notSignedIn()
    if (!(await useOnce(tx, caller.accountId, challenge, { until: now + LIFE_MS, now }))) throw notVerified()
    requireRoom(await passkeysOf(tx, caller.accountId))
    const taken = await tx
      .selectFrom('passkeys')
      .select('id')
      .where('credential_id', '=', row.credential_id)
      .executeTakeFirst()
    if (taken !== undefined) throw new AppError('CONFLICT', 'This passkey is already in use.')
    await tx.insertInto('passkeys').values(row).execute()
    await recordChange(deps, tx, request, caller, {
      action: 'addPasskey',
      changes: changesOf({}, { passkey: row.name }),
    })
  })
  await deps.notices.tell(caller.accountId, { kind: 'passkey added', name: row.name }, doneFrom(request))
  return shownPasskey(row)
}

/** Throws NOT_FOUND if the account has no such passkey. */
export async function renamePasskey(
  deps: PasskeyDeps,
  request: Request,
  { caller }: Person,
  order: z.infer<typeof PasskeyName>,
): Promise<void> {
  const name = order.name.trim()
  await deps.store.write(async (tx) => {
    const row = await ownPasskey(tx, caller.accountId, order.id)
    await tx.updateTable('passkeys').set({ name }).where('id', '=', row.id).execute()
    await recordChange(deps, tx, request, caller, {
      action: 'renamePasskey',
      changes: changesOf({ passkey: row.name }, { passkey: name }),
    })
  })
}

/** Throws NOT_FOUND if the account has no such passkey, and CONFLICT if no other way to sign in is left. */
export async function removePasskey(
  deps: PasskeyDeps,
  request: Request,
  { caller }: Person,
  id: string,
): Promise<void> {
  const removed = await deps.store.write(async (tx) => {
    const row = await ownPasskey(tx, caller.accountId, id)
    await tx.deleteFrom('passkeys').where('id', '=', row.id).execute()
    await requireAnotherWay(tx, caller.accountId, deps.providers)
    await recordChange(deps, tx, request, caller, {
      action: 'removePasskey',
      changes: changesOf({ passkey: row.name }, {}),
    })
    return row
  })
  await deps.notices.tell(caller.accountId, { kind: 'passkey removed', name: removed.name }, doneFrom(request))
}

/** Returns the challenge in the cookie. Throws INVALID_REQUEST if there is none for this purpose. */
export async function challengeOf(
  deps: Pick<PasskeyDeps, 'challenges'>,
  request: Request,
  purpose: Challenge['for'],
): Promise<string> {
  const held = await deps.challenges.read(request)
  if (isDeepStrictEqual(held?.for, purpose) && held !== null) return held.challenge
  throw invalidRequest(['response: took longer than five minutes, or was begun by another account. Try again.'])
}

export function transportsOf({ transports }: Pick<PasskeyTable, 'transports'>): Transport[] {
  return Transports.parse(JSON.parse(transports))
}
const Transports = z.array(z.enum(['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']))
type Transport = z.infer<typeof Transports>[number]

/** Throws INVALID_REQUEST if the browser's answer is invalid. */
async function verified({ rpId, origin }: PasskeyPlace, challenge: string, order: z.output<typeof PasskeyAdded>) {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const { registrationInfo: made } = await verifyRegistrationResponse({
    response: order.response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpId,
    requireUserVerification: true,
    supportedAlgorithmIDs: [...ALGORITHMS],
  }).catch(() => ({ registrationInfo: undefined }))
  if (made === undefined) throw notVerified()
  return {
    credential_id: made.credential.id,
    public_key: Buffer.from(made.credential.publicKey).toString('base64url'),
    counter: made.credential.counter,
    transports: JSON.stringify(order.response.response.transports ?? []),
    synced: Number(made.credentialBackedUp),
  }
}

function notVerified(): AppError {
  return invalidRequest(['response: is not a valid passkey for this page'])
}

function requireRoom(known: readonly unknown[]): void {
  if (known.length < PASSKEYS_MAX) return
  throw new AppError('CONFLICT', `An account has at most ${PASSKEYS_MAX} passkeys. Remove one first.`)
}

async function ownPasskey(tx: Transaction<Tables>, accountId: AccountId, id: string): Promise<PasskeyTable> {
  const row = await tx
    .selectFrom('passkeys')
    .selectAll()
    .where('id', '=', asId<PasskeyId>(id))
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (row === undefined) throw notFound()
  return row
}

async function recordChange(
  { audit }: Pick<PasskeyDeps, 'audit'>,
  tx: Transaction<Tables>,
  request: Request,
  caller: Person['caller'],
  { action, changes }: { readonly action: string; readonly changes: Changes },
): Promise<void> {
  const target = accountTarget(caller.accountId, caller.name)
  await audit.change(tx, callBy(action, caller, request), {}, { target, changes })
}
