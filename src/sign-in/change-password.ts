// Changes the password in one transaction. The library checks the old password and writes the new one later. In
// between, a reset link could set another password, which the library would overwrite.
import type { z } from 'zod'
import type { PasswordChange } from '../contract/sign-in-routes.ts'
import type { Store } from '../store/open.ts'
import { heldBy, stillHolds } from './held-password.ts'
import { notSignedIn, wrongPassword } from './library-refusal.ts'
import type { Identity, Library } from './library.ts'

interface Deps {
  readonly store: Store
  readonly library: Library
  readonly now: number
}

/**
 * Ends links, sign-ins that wait for a code and, by default, every session. This request then gets a new session.
 * Throws UNAUTHENTICATED without a session, INVALID_REQUEST for a wrong password.
 */
export async function changePassword(
  deps: Deps,
  request: Request,
  { signedIn, sessionId }: Identity,
  order: z.infer<typeof PasswordChange>,
): Promise<Response> {
  const { store, library, now } = deps
  if (signedIn === null || sessionId === null) throw notSignedIn()
  const held = await heldBy(store, { accountId: signedIn })
  const isRight = await library.isPassword(signedIn, order.currentPassword)
  if (held === null || !isRight) throw wrongPassword()
  const password = await library.hashPassword(order.newPassword)
  const isSet = await store.write(async (tx) => {
    const session = await tx.selectFrom('sessions').select('id').where('id', '=', sessionId).executeTakeFirst()
    if (session === undefined) throw notSignedIn()
    const set = await tx
      .updateTable('sign_in_methods')
      .set({ password, updatedAt: store.dialect === 'postgres' ? new Date(now) : new Date(now).toISOString() })
      .where('userId', '=', signedIn)
      .where('providerId', '=', 'credential')
      .where('password', '=', held.password)
      .executeTakeFirst()
    if (set.numUpdatedRows === 0n) return false
    await tx.deleteFrom('verifications').where('value', '=', signedIn).execute()
    if (order.revokeOtherSessions) await tx.deleteFrom('sessions').where('userId', '=', signedIn).execute()
    return true
  })
  if (!isSet) throw wrongPassword()
  const answer = await library.signedIn(request, signedIn, { anew: order.revokeOtherSessions })
  if (!(await stillHolds(store, { ...held, password }, answer))) throw notSignedIn()
  return answer
}
