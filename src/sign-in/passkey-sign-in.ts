// Signs in with a passkey. The browser offers the passkeys of this host, so nobody types an e-mail address, and no
// answer reveals which addresses have an account.
import type { z } from 'zod'
import type { PasskeyRequest } from '../contract/passkey-schemas.ts'
import type { PasskeySignIn } from '../contract/sign-in-routes.ts'
import { AppError } from '../errors.ts'
import type { Store } from '../store/open.ts'
import type { PasskeyTable } from '../store/tables.ts'
import { sessionMadeBy } from './cookies.ts'
import type { Library } from './sign-in-library.ts'
import { requireMayEnter } from './may-sign-in-without-password.ts'
import { challengeOf, LIFE_MS, newChallenge, requirePlace, transportsOf, type PasskeyDeps } from './passkeys.ts'
import type { PasskeyPlace } from './passkey-host.ts'
import type { Trail } from './audit-account-events.ts'
import { useOnce } from './consume-second-factor-code.ts'

interface Deps extends Pick<PasskeyDeps, 'store' | 'config' | 'challenges' | 'now'> {
  readonly library: Library
  readonly trail: Pick<Trail, 'recordAction' | 'refusedTo'>
  readonly mailIsOn: boolean
}

/** Returns the challenge for the browser to sign, and a cookie with it. */
export async function passkeyRequest(
  deps: Pick<Deps, 'config' | 'challenges'>,
  request: Request,
): Promise<{ readonly options: z.infer<typeof PasskeyRequest>; readonly cookie: string }> {
  const { rpId } = requirePlace(deps, request)
  const challenge = newChallenge('sign in')
  const options = { challenge: challenge.challenge, rpId, timeout: LIFE_MS, userVerification: 'required' as const }
  return { options, cookie: await deps.challenges.set(challenge) }
}

/**
 * Throws UNAUTHENTICATED if the passkey is unknown, the signature is wrong, or the challenge was used before. Also
 * throws the errors of requirePlace, challengeOf and requireMayEnter.
 */
export async function passkeySignIn(
  deps: Deps,
  request: Request,
  order: z.output<typeof PasskeySignIn>,
): Promise<Response> {
  const { store, library, trail } = deps
  const place = requirePlace(deps, request)
  const challenge = await challengeOf(deps, request, 'sign in')
  const row = await store.db
    .selectFrom('passkeys')
    .selectAll()
    .where('credential_id', '=', order.response.id)
    .executeTakeFirst()
  if (row === undefined) throw refused('PASSKEY_NOT_FOUND', 'This passkey is not known here. It may have been removed.')
  const { account_id: accountId } = row
  try {
    const signed = await verified(place, challenge, row, order)
    if (signed === null) throw notVerified()
    await requireMayEnter(deps, accountId)
    const made = await library.signedIn(request, accountId, { anew: true, remember: order.rememberMe ?? true })
    if (!(await used(deps, row, { challenge, ...signed }, made))) throw notVerified()
    trail.recordAction('signIn', accountId, request, { method: { from: null, to: 'passkey' } })
    return made
  } catch (error) {
    await trail.refusedTo('signIn', accountId, request, error)
    throw error
  }
}

interface Signed {
  readonly counter: number
  readonly synced: number
}

async function verified(
  { rpId, origin }: PasskeyPlace,
  challenge: string,
  row: PasskeyTable,
  { response }: z.output<typeof PasskeySignIn>,
): Promise<Signed | null> {
  const { userHandle } = response.response
  if (userHandle !== undefined && Buffer.from(userHandle, 'base64url').toString() !== row.account_id) return null
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  const { verified: isRight, authenticationInfo } = await verifyAuthenticationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpId,
    requireUserVerification: true,
    credential: {
      id: row.credential_id,
      publicKey: new Uint8Array(Buffer.from(row.public_key, 'base64url')),
      counter: row.counter,
      transports: transportsOf(row),
    },
  }).catch(() => ({ verified: false, authenticationInfo: undefined }))
  if (!isRight || authenticationInfo === undefined) return null
  return { counter: authenticationInfo.newCounter, synced: Number(authenticationInfo.credentialBackedUp) }
}

/**
 * If the challenge was used, the counter has changed or the passkey was removed, ends the session and returns false.
 */
async function used(
  { store, now }: { readonly store: Store; readonly now: number },
  row: PasskeyTable,
  { challenge, counter, synced }: Signed & { readonly challenge: string },
  made: Response,
): Promise<boolean> {
  const token = sessionMadeBy(made)
  return await store.write(async (tx) => {
    const isNew = await useOnce(tx, row.account_id, challenge, { until: now + LIFE_MS, now })
    const changed = await tx
      .updateTable('passkeys')
      .set({ counter, synced, last_used_at: new Date(now).toISOString() })
      .where('id', '=', row.id)
      .where('counter', '=', row.counter)
      .executeTakeFirst()
    if (isNew && changed.numUpdatedRows === 1n) return true
    if (token !== null) await tx.deleteFrom('sessions').where('token', '=', token).execute()
    return false
  })
}

function notVerified(): AppError {
  return refused('PASSKEY_NOT_VERIFIED', 'The passkey could not be verified. Try again.')
}

function refused(reason: string, message: string): AppError {
  return new AppError('UNAUTHENTICATED', message, { extra: { reason } })
}
