// Verifies an e-mail address with the mailed link and the password of the sign-up. Without the password, one click of
// the owner would verify the account of a stranger who signed up with the owner's address.
import { AppError } from '../errors.ts'
import type { AccountId } from '../ids.ts'
import { storedFlag } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import type { Attempts } from '../auth/attempt-counter.ts'
import type { AccountLinks } from './verification-links.ts'
import { heldBy } from './password-still-current.ts'
import type { Library } from './sign-in-library.ts'

const BY_LINK = { limit: 10, windowMs: 300_000 }

interface Deps {
  readonly store: Store
  readonly library: Library
  readonly links: AccountLinks
  readonly tries: Attempts
  readonly now: number
}

export interface Verified {
  readonly accountId: AccountId
  readonly email: string
  /** The stored hash at the time when the password was checked. */
  readonly password: string | null
  /** False if the address was already verified. */
  readonly isNew: boolean
}

/** Throws UNAUTHENTICATED for a wrong password or an invalid link, and RATE_LIMITED after too many passwords. */
export async function verifyEmail(
  deps: Deps,
  order: { readonly token: string; readonly password: string },
): Promise<Verified> {
  const link = await deps.links.opened(order.token)
  if (link === null) throw refused('INVALID_TOKEN', NO_SUCH_LINK)
  if (link.endsAt <= deps.now) throw refused('TOKEN_EXPIRED', 'This link has expired. Request another one.')
  const key = `verify: ${link.accountId}`
  // Only somebody with a link of the account can use up this limit.
  await deps.tries.spend([{ key, ...BY_LINK }])
  const held = await heldBy(deps.store, { accountId: link.accountId })
  if (!(await deps.library.isPassword(link.accountId, order.password))) {
    throw refused('INVALID_PASSWORD', NOT_THE_PASSWORD)
  }
  await deps.tries.clear([key])
  const isNew = await setVerified(deps.store, link.accountId)
  return { accountId: link.accountId, email: link.email, password: held?.password ?? null, isNew }
}

/** False if the address was already verified. Throws UNAUTHENTICATED if another sign-up replaced the account. */
async function setVerified(store: Store, accountId: AccountId): Promise<boolean> {
  const yes = storedFlag(store.dialect, true)
  return await store.write(async (tx) => {
    const own = tx.updateTable('accounts').set({ emailVerified: yes }).where('id', '=', accountId)
    const changed = await own.where('emailVerified', '!=', yes).executeTakeFirst()
    if (changed.numUpdatedRows === 1n) return true
    const account = await tx.selectFrom('accounts').select('id').where('id', '=', accountId).executeTakeFirst()
    if (account === undefined) throw refused('INVALID_TOKEN', NO_SUCH_LINK)
    return false
  })
}

const NO_SUCH_LINK = 'This link is not valid: a later sign-up replaced it, or it was never issued.'
const NOT_THE_PASSWORD =
  'This is not the password of the sign-up that requested this link. If you did not sign up, somebody else did. Ask for a ' +
  'new password, which makes the account yours.'

function refused(reason: string, message: string): AppError {
  return new AppError('UNAUTHENTICATED', message, { extra: { reason } })
}
