// What a password lets in holds only while it is the account's password. To look at a password takes long. Meanwhile a link
// may set another one: that ends all sessions, but not the session that is made a moment later.
import type { AccountId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { sessionMadeBy } from './cookies.ts'
import { endSecondFactor } from './reset.ts'

/** An account as it was when a request began. */
export interface Held {
  readonly accountId: AccountId
  /** As it is kept. */
  readonly password: string
  readonly hadFactor: boolean
}

/** null for no such account, and for one without a password. `email` in lower case. */
export async function heldBy(
  store: Pick<Store, 'db'>,
  who: { readonly accountId: AccountId } | { readonly email: string },
): Promise<Held | null> {
  const methods = store.db
    .selectFrom('sign_in_methods')
    .innerJoin('accounts', 'accounts.id', 'sign_in_methods.userId')
    .select(['accounts.id', 'accounts.twoFactorEnabled', 'sign_in_methods.password'])
    .where('providerId', '=', 'credential')
  const own =
    'email' in who ? methods.where('accounts.email', '=', who.email) : methods.where('accounts.id', '=', who.accountId)
  const row = await own.executeTakeFirst()
  if (row === undefined || row.password === null) return null
  const hadFactor = row.twoFactorEnabled === true || row.twoFactorEnabled === 1
  return { accountId: row.id, password: row.password, hadFactor }
}

/**
 * Whether the password of before is still the account's. If not, the session that the answer makes ends, and so do sign-ins
 * that wait for a code, and a second factor that was switched on meanwhile.
 */
export async function stillHolds(store: Store, held: Held, answer: Response): Promise<boolean> {
  const made = sessionMadeBy(answer)
  const { accountId, password, hadFactor } = held
  return await store.write(async (tx) => {
    // Written, and not only read: of two such transactions at once PostgreSQL runs one again, which then sees the other.
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
