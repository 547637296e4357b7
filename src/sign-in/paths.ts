// What there is under /auth: an allow-list of paths with the body and the parameters each takes. Nothing else of the
// sign-in library can be reached. Changing the address of an account is not among it: keys and invitations hang on it.
import type { z } from 'zod'
import { SIGN_IN_ROUTES, type SignInRoute, type SignInRouteName } from '../contract/sign-in-routes.ts'

/** What a path is, beside its body. */
interface Traits {
  /** It costs a hash, a mail, or is a guess: counted by the caller's address. */
  readonly costly?: true
  /** It sends a mail to the address in its body: counted by that, too. */
  readonly mails?: true
  /** It asks a signed-in person for their password: counted by the session. */
  readonly asksPassword?: true
  /** A code of a second factor: counted by the account whose sign-in waits for it. */
  readonly asksCode?: true
  /** It weakens the second factor: while that is on, the password alone does not do. */
  readonly needsCode?: true
  /** The library makes a session, or a sign-in that waits for a code. */
  readonly makesSession?: true
  /** What the audit calls it; absent: it changes nothing, or tells the audit by itself. */
  readonly action?: string
}

interface AuthPath extends Traits {
  /** null: a GET, without a body. */
  readonly body: z.ZodType | null
  readonly query?: z.ZodType
}

const costly = true
const mails = true
const asksPassword = true
const asksCode = true
const needsCode = true
const makesSession = true

const TRAITS: Readonly<Record<SignInRouteName, Traits>> = {
  'POST /auth/sign-up/email': { costly, mails, action: 'signUp' },
  'POST /auth/sign-in/email': { costly, makesSession, action: 'signIn' },
  'POST /auth/sign-out': { action: 'signOut' },
  'GET /auth/get-session': {},
  'GET /auth/token': {},
  'POST /auth/change-password': { costly, asksPassword, action: 'changePassword' },
  'POST /auth/request-password-reset': { costly, mails },
  'GET /auth/reset-password': {},
  'POST /auth/reset-password/preview': { costly },
  'POST /auth/reset-password': { costly },
  'POST /auth/send-verification-email': { costly, mails },
  'GET /auth/verify-email': {},
  'POST /auth/verify-email': { costly },
  'GET /auth/list-sessions': {},
  'POST /auth/revoke-session': { action: 'revokeSession' },
  'POST /auth/revoke-sessions': { action: 'revokeSessions' },
  'POST /auth/revoke-other-sessions': { action: 'revokeOtherSessions' },
  'POST /auth/two-factor/enable': { costly, asksPassword, action: 'beginSecondFactor' },
  'POST /auth/two-factor/disable': { costly, asksPassword, needsCode, makesSession, action: 'endSecondFactor' },
  'POST /auth/two-factor/get-totp-uri': { costly, asksPassword, needsCode, action: 'showSecondFactor' },
  'POST /auth/two-factor/generate-backup-codes': { costly, asksPassword, needsCode, action: 'renewBackupCodes' },
  'POST /auth/two-factor/verify-totp': { costly, asksCode, makesSession, action: 'signIn' },
  'POST /auth/two-factor/verify-backup-code': { costly, asksCode, makesSession, action: 'signIn' },
}

export const SIGN_UP = 'POST /auth/sign-up/email'
export const SIGN_IN = 'POST /auth/sign-in/email'
export const CHANGE_PASSWORD = 'POST /auth/change-password'
export const RESET = 'POST /auth/reset-password'
export const RESET_PAGE = 'GET /auth/reset-password'
export const RESET_PREVIEW = 'POST /auth/reset-password/preview'
export const VERIFY_EMAIL = 'POST /auth/verify-email'
export const VERIFY_PAGE = 'GET /auth/verify-email'

const ROUTES: ReadonlyMap<string, SignInRoute> = new Map(Object.entries(SIGN_IN_ROUTES))

export const PATHS: ReadonlyMap<string, AuthPath> = new Map(
  Object.entries(TRAITS).map(([name, traits]): [string, AuthPath] => {
    const { body = null, query } = ROUTES.get(name) ?? {}
    return [name, { ...traits, body, ...(query === undefined ? {} : { query }) }]
  }),
)

/** Whether it is asked by somebody who is signed in, or waits for a code. */
export function isOfPerson(name: string): boolean {
  return PATHS.get(name)?.action !== undefined && name !== SIGN_UP && name !== SIGN_IN
}
