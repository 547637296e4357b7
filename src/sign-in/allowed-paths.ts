// The allowed paths under /auth, with their bodies and parameters. Requests to other paths never reach the sign-in
// library. No path changes the e-mail address of an account, because keys and invitations depend on it.
import type { z } from 'zod'
import { SIGN_IN_ROUTES, type SignInRoute, type SignInRouteName } from '../contract/sign-in-routes.ts'

interface Traits {
  /** Allows a guess, hashes a password, sends a mail or asks a provider. Counted by the caller's network. */
  readonly costly?: true
  /** Hashes a password, so only a few of these requests run at the same time (sign-in-limits.ts). */
  readonly hashes?: true
  /** Sends a mail to the e-mail address in the body. Also counted by this address. */
  readonly mails?: true
  /** Needs the password of the signed-in person. Counted by session. */
  readonly asksPassword?: true
  /** Contains a code of a second factor, which is counted before it is checked (second-factor-limits.ts). */
  readonly asksCode?: true
  /** Weakens the second factor. While the factor is on, needs a code in addition to the password. */
  readonly needsCode?: true
  /** Creates a session, or a sign-in that waits for a code. Both end if the password changes at the same time. */
  readonly makesSession?: true
  /** The action in the audit. If missing, the path changes no account, or its handler records the change. */
  readonly action?: string
  /** The handler records the change in its transaction, and `action` is used only for refusals. */
  readonly ownRow?: true
  /** Needs a signed-in person, although it has no `action`. */
  readonly ofPerson?: true
}

interface AuthPath extends Traits {
  /** The schema of the body. Null for a GET without a body. */
  readonly body: z.ZodType | null
  readonly query?: z.ZodType
}

const costly = true
const hashes = true
const mails = true
const asksPassword = true
const asksCode = true
const needsCode = true
const makesSession = true
const ownRow = true
const ofPerson = true

const TRAITS: Readonly<Record<SignInRouteName, Traits>> = {
  'GET /auth/options': {},
  'POST /auth/sign-up/email': { costly, hashes, mails, action: 'signUp' },
  'POST /auth/sign-in/email': { costly, hashes, makesSession, action: 'signIn' },
  'POST /auth/sign-out': { action: 'signOut' },
  'GET /auth/get-session': {},
  'GET /auth/token': {},
  'POST /auth/change-password': { costly, hashes, asksPassword, action: 'changePassword' },
  'POST /auth/request-password-reset': { costly, mails },
  'GET /auth/reset-password': {},
  'POST /auth/reset-password/preview': { costly },
  'POST /auth/reset-password': { costly, hashes },
  'POST /auth/send-verification-email': { costly, mails },
  'GET /auth/verify-email': {},
  'POST /auth/verify-email': { costly, hashes },
  'GET /auth/list-sessions': { ofPerson },
  'POST /auth/revoke-session': { action: 'revokeSession' },
  'POST /auth/revoke-sessions': { action: 'revokeSessions' },
  'POST /auth/revoke-other-sessions': { action: 'revokeOtherSessions' },
  'POST /auth/two-factor/enable': { costly, hashes, asksPassword, action: 'beginSecondFactor' },
  'POST /auth/two-factor/disable': { costly, hashes, asksPassword, needsCode, makesSession, action: 'endSecondFactor' },
  'POST /auth/two-factor/get-totp-uri': { costly, hashes, asksPassword, needsCode, action: 'showSecondFactor' },
  'POST /auth/two-factor/generate-backup-codes': {
    costly,
    hashes,
    asksPassword,
    needsCode,
    action: 'renewBackupCodes',
  },
  'POST /auth/two-factor/verify-totp': { costly, asksCode, makesSession, action: 'signIn' },
  'POST /auth/two-factor/verify-backup-code': { costly, asksCode, makesSession, action: 'signIn' },
  'GET /auth/sign-in-methods': { ofPerson },
  'POST /auth/passkey/add-options': { costly, ofPerson },
  'POST /auth/passkey/add': { costly, action: 'addPasskey', ownRow },
  'POST /auth/passkey/rename': { action: 'renamePasskey', ownRow },
  'POST /auth/passkey/remove': { action: 'removePasskey', ownRow },
  'POST /auth/passkey/sign-in-options': { costly },
  'POST /auth/passkey/sign-in': { costly },
  'POST /auth/sign-in/provider': { costly },
  'POST /auth/connect-provider': { costly, ofPerson },
  'POST /auth/disconnect-provider': { action: 'disconnectProvider', ownRow },
  'GET /auth/callback/github': { costly },
  'GET /auth/callback/google': { costly },
  'GET /auth/callback/oidc': { costly },
}

export const OPTIONS = 'GET /auth/options'
export const SIGN_UP = 'POST /auth/sign-up/email'
export const SIGN_IN = 'POST /auth/sign-in/email'
export const CHANGE_PASSWORD = 'POST /auth/change-password'
export const REVOKE_SESSION = 'POST /auth/revoke-session'
export const RESET = 'POST /auth/reset-password'
export const RESET_PAGE = 'GET /auth/reset-password'
export const RESET_PREVIEW = 'POST /auth/reset-password/preview'
export const VERIFY_EMAIL = 'POST /auth/verify-email'
export const VERIFY_PAGE = 'GET /auth/verify-email'

const CALLBACK = 'GET /auth/callback/'

/** Returns the provider of a callback path. Null for other paths. */
export function callbackOf(name: string): string | null {
  return name.startsWith(CALLBACK) ? name.slice(CALLBACK.length) : null
}

const ROUTES: ReadonlyMap<string, SignInRoute> = new Map(Object.entries(SIGN_IN_ROUTES))

export const PATHS: ReadonlyMap<string, AuthPath> = new Map(
  Object.entries(TRAITS).map(([name, traits]): [string, AuthPath] => {
    const { body = null, query } = ROUTES.get(name) ?? {}
    return [name, { ...traits, body, ...(query === undefined ? {} : { query }) }]
  }),
)

/** Returns true if the path needs to know who is signed in, or whose sign-in waits for a code. */
export function isOfPerson(name: string): boolean {
  const path = PATHS.get(name)
  return path?.ofPerson === true || (path?.action !== undefined && name !== SIGN_UP && name !== SIGN_IN)
}
