// Proves an address: by the link that was mailed to it together with the password of the sign-up that asked for the link.
// The click alone would give a stranger who signed up with the address an account that its owner has vouched for.
import { AppError } from '../errors.ts'
import type { Attempts } from './attempts.ts'
import type { AccountLinks } from './account-links.ts'
import type { Library } from './library.ts'

const BY_LINK = { limit: 10, windowMs: 300_000 }

interface Deps {
  readonly library: Library
  readonly links: AccountLinks
  readonly tries: Attempts
}

/**
 * The library's answer, which verifies the address where the link is right and not too old; and the address. Throws
 * UNAUTHENTICATED for a link that was never made or whose account is gone, and for another password.
 */
export async function verifyEmail(
  deps: Deps,
  request: Pick<Request, 'headers'>,
  order: { readonly token: string; readonly password: string },
): Promise<{ readonly response: Response; readonly email: string }> {
  const opened = await deps.links.opened(order.token)
  if (opened === null) throw refused('INVALID_TOKEN', NO_SUCH_LINK)
  const key = `verify ${opened.accountId}`
  // Only who has a link gets here: nobody else can use these tries up.
  await deps.tries.spend([{ key, ...BY_LINK }])
  if (!(await deps.library.isPassword(opened.accountId, order.password))) {
    throw refused('INVALID_PASSWORD', NOT_THE_PASSWORD)
  }
  await deps.tries.clear([key])
  const url = new URL('/auth/verify-email', deps.library.origin)
  url.searchParams.set('token', opened.token)
  return { response: await deps.library.handle(new Request(url, { headers: request.headers })), email: opened.email }
}

const NO_SUCH_LINK = 'This link is not valid: a later sign-up replaced it, or it was never made.'
const NOT_THE_PASSWORD =
  'This is not the password of the sign-up that asked for this link. If you did not sign up, somebody else did: ask for a ' +
  'new password, which makes the account yours.'

function refused(reason: string, message: string): AppError {
  return new AppError('UNAUTHENTICATED', message, { extra: { reason } })
}
