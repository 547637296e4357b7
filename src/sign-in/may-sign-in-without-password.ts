// If mail is on, an account must verify its e-mail address before it can sign in. The library checks this for sign-ins
// with a password, and this file for all others.
import { AppError } from '../errors.ts'
import type { AccountId } from '../ids.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import { EMAIL_NOT_VERIFIED, notSignedIn } from './better-auth-errors.ts'

/** Throws SIGN_IN_REFUSED if the address must be verified first, and UNAUTHENTICATED if the account was deleted. */
export async function requireMayEnter(
  { store, mailIsOn }: { readonly store: Pick<Store, 'db'>; readonly mailIsOn: boolean },
  accountId: AccountId,
): Promise<void> {
  const account = await store.db
    .selectFrom('accounts')
    .select('emailVerified')
    .where('id', '=', accountId)
    .executeTakeFirst()
  if (account === undefined) throw notSignedIn()
  if (!mailIsOn || isTrue(account.emailVerified)) return
  throw new AppError('SIGN_IN_REFUSED', EMAIL_NOT_VERIFIED, { extra: { reason: 'EMAIL_NOT_VERIFIED' } })
}
