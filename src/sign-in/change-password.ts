// Changes the password in one transaction. The library would check the old password first and write the new one later,
// and could overwrite a password that a reset link set in between.
import type { z } from 'zod'
import { changesOf } from '../audit/recorded-changes.ts'
import { endGrantsOf, forgetTokens } from '../auth/grants.ts'
import type { PasswordChange } from '../contract/sign-in-routes.ts'
import type { Store } from '../store/open.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { heldBy, stillHolds } from './password-still-current.ts'
import { notSignedIn, wrongPassword } from './better-auth-errors.ts'
import { withCookie } from './cookies.ts'
import type { KnownDevices } from './known-browser-cookie.ts'
import type { Identity, Library } from './sign-in-library.ts'
import type { Trail } from './audit-account-events.ts'

interface Deps {
  readonly store: Store
  readonly library: Library
  readonly trail: Pick<Trail, 'recordAction'>
  readonly devices: Pick<KnownDevices, 'cookie'>
  readonly now: number
}

/**
 * Also ends links, sign-ins that wait for a code and grants of agents. By default, all sessions end too, and the answer
 * starts a new one. Only this browser remains a known device. Throws UNAUTHENTICATED if there is no session, and
 * INVALID_REQUEST if the old password is wrong, or was changed in the meantime.
 */
export async function changePassword(
  deps: Deps,
  request: Request,
  { signedIn, sessionId }: Identity,
  order: z.infer<typeof PasswordChange>,
): Promise<Response> {
  const { store, library, trail, devices, now } = deps
  if (signedIn === null || sessionId === null) throw notSignedIn()
  const held = await heldBy(store, { accountId: signedIn })
  const isRight = await library.isPassword(signedIn, order.currentPassword)
  if (held === null || !isRight) throw wrongPassword()
  const password = await library.hashPassword(order.newPassword)
  const ended = await store.write(async (tx) => {
    const session = await tx.selectFrom('sessions').select('id').where('id', '=', sessionId).executeTakeFirst()
    if (session === undefined) throw notSignedIn()
    const set = await tx
      .updateTable('sign_in_methods')
      .set({ password, updatedAt: storedTime(store.dialect, now) })
      .where('userId', '=', signedIn)
      .where('providerId', '=', 'credential')
      .where('password', '=', held.password)
      .executeTakeFirst()
    if (set.numUpdatedRows === 0n) return null
    await tx.deleteFrom('verifications').where('value', '=', signedIn).execute()
    if (order.revokeOtherSessions) await tx.deleteFrom('sessions').where('userId', '=', signedIn).execute()
    return await endGrantsOf(tx, signedIn, now)
  })
  if (ended === null) throw wrongPassword()
  forgetTokens(
    store,
    ended.map((grant) => grant.id),
  )
  if (ended.length > 0) {
    const grants = ended.map((grant) => grant.client_name)
    trail.recordAction('endGrants', signedIn, request, changesOf({ grants }, { grants: [] }))
  }
  const answer = await library.signedIn(request, signedIn, { anew: order.revokeOtherSessions })
  const holds = { ...held, password }
  if (!(await stillHolds(store, holds, answer))) throw notSignedIn()
  return withCookie(answer, devices.cookie(request, holds))
}
