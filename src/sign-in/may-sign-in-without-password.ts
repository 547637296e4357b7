// Checks whether an account may sign in without its password. If mail is on, the account's e-mail address must be
// verified first. The same rule applies to a sign-in with the password.
import { AppError } from '../errors.ts'
import type { AccountId } from '../ids.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import { EMAIL_NOT_VERIFIED, notSignedIn } from './better-auth-errors.ts'

/** Throws SIGN_IN_REFUSED if the account may not sign in, and UNAUTHENTICATED if the account was deleted. */
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
