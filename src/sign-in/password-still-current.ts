// Checking a password takes long. In the meantime, a reset link may set another password and end all sessions, but a
// moment later the old password would create another session. So after a session is created, this file checks that the
// password is still the same.
import type { AccountId } from '../ids.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import { sessionMadeBy } from './cookies.ts'
import { endSecondFactor } from './reset-password.ts'

/** The account when the request arrived. */
export interface Held {
  readonly accountId: AccountId
  readonly email: string
  readonly password: string
  readonly hadFactor: boolean
}

/** Returns null if the account does not exist or has no password. `email` must be in lower case. */
export async function heldBy(
  store: Pick<Store, 'db'>,
  who: { readonly accountId: AccountId } | { readonly email: string },
): Promise<Held | null> {
  const methods = store.db
    .selectFrom('sign_in_methods')
    .innerJoin('accounts', 'accounts.id', 'sign_in_methods.userId')
    .select(['accounts.id', 'accounts.email', 'accounts.twoFactorEnabled', 'sign_in_methods.password'])
    .where('providerId', '=', 'credential')
  const own =
    'email' in who ? methods.where('accounts.email', '=', who.email) : methods.where('accounts.id', '=', who.accountId)
  const row = await own.executeTakeFirst()
  if (row === undefined || row.password === null) return null
  const hadFactor = isTrue(row.twoFactorEnabled)
  return { accountId: row.id, email: row.email, password: row.password, hadFactor }
}

/**
 * If not, ends the new session, links, sign-ins that wait for a code, and a second factor turned on in the meantime.
 */
export async function stillHolds(store: Store, held: Held, answer: Response): Promise<boolean> {
  const made = sessionMadeBy(answer)
  const { accountId, password, hadFactor } = held
  return await store.write(async (tx) => {
    // Write the row instead of reading it. Then PostgreSQL detects a conflicting transaction, and the retry sees its
    // change.
    const same = await tx
      .updateTable('sign_in_methods')
      .set((eb) => ({ updatedAt: eb.ref('updatedAt') }))
      .where('userId', '=', accountId)
      .where('providerId', '=', 'credential')
      .where('password', '=', password)
      .executeTakeFirst()
    if (same.numUpdatedRows > 0n) return true
    if (made !== null) await tx.deleteFrom('sessions').where('token', '=', made).execute()
    await tx.deleteFrom('verifications').where('value', '=', accountId).execute()
    if (!hadFactor) await endSecondFactor(store, tx, accountId)
    return false
  })
}
