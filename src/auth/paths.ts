// What there is under /auth: an allow-list of paths with the body and the parameters each takes. Nothing else of the
// sign-in library can be reached. Changing the address of an account is not among it: keys and invitations hang on it.
import { z } from 'zod'
import { PASSWORD } from './library.ts'

const isText = (value: string) => value.isWellFormed() && !value.includes('\0')
const text = (max: number) => z.string().max(max).refine(isText, 'must not hold NUL or lone surrogates')
const email = z.email().max(254)
/** Too short a password is told at sign-up; at sign-in it is one wrong password more. */
const password = text(PASSWORD.max).min(1)
const newPassword = text(PASSWORD.max).min(PASSWORD.min)
/** Where a link leads on to: checked in return-path.ts. */
const place = text(2_000).exactOptional()
/** Ours are shorter; what is longer is not looked up. */
const token = text(2_000).min(1)
const nothing = z.strictObject({})

export const SignUp = z.strictObject({
  name: text(100).refine((value) => value.trim() !== '', 'must not be empty'),
  email,
  password: newPassword,
  rememberMe: z.boolean().exactOptional(),
  callbackURL: place,
  setupToken: text(200).exactOptional(),
  inviteToken: text(200).exactOptional(),
})
export const SignInBody = z.strictObject({ email, password, rememberMe: z.boolean().exactOptional() })
const PasswordChange = z.strictObject({
  currentPassword: password,
  newPassword,
  /** Who changes a password wants whoever else holds the old one out, unless they say otherwise. */
  revokeOtherSessions: z.boolean().default(true),
})
/** A device is never trusted past its session: that would be a second factor which a thief of a cookie has too. */
const code = z.strictObject({ code: text(100).min(1) })
const withPassword = z.strictObject({ password })

/** What a path is, beside its body. */
interface AuthPath {
  /** null: a GET, without a body. */
  readonly body: z.ZodType | null
  readonly query?: z.ZodType
  /** It costs a hash, a mail, or is a guess: counted by the caller's address. */
  readonly costly?: true
  /** It sends a mail to the address in its body: counted by that, too. */
  readonly mails?: true
  /** It asks a signed-in person for their password: counted by the session. */
  readonly asksPassword?: true
  /** A code of a second factor: counted by the account whose sign-in waits for it. */
  readonly asksCode?: true
  /** What the audit calls it; absent: it changes nothing, or its account is known to the library alone. */
  readonly action?: string
}

const costly = true
const mails = true
const asksPassword = true
const asksCode = true

export const SIGN_UP = 'POST /auth/sign-up/email'
export const SIGN_IN = 'POST /auth/sign-in/email'
export const RESET = 'POST /auth/reset-password'
export const VERIFY_EMAIL = 'GET /auth/verify-email'

export const PATHS: ReadonlyMap<string, AuthPath> = new Map<string, AuthPath>([
  [SIGN_UP, { body: SignUp, costly, mails, action: 'signUp' }],
  [SIGN_IN, { body: SignInBody, costly, action: 'signIn' }],
  ['POST /auth/sign-out', { body: nothing, action: 'signOut' }],
  ['GET /auth/get-session', { body: null }],
  ['GET /auth/token', { body: null }],
  ['POST /auth/change-password', { body: PasswordChange, costly, asksPassword, action: 'changePassword' }],
  ['POST /auth/request-password-reset', { body: z.strictObject({ email, redirectTo: place }), costly, mails }],
  [RESET, { body: z.strictObject({ token, newPassword }), costly }],
  ['POST /auth/send-verification-email', { body: z.strictObject({ email, callbackURL: place }), costly, mails }],
  [VERIFY_EMAIL, { body: null, query: z.strictObject({ token, callbackURL: place }), costly }],
  ['GET /auth/list-sessions', { body: null }],
  ['POST /auth/revoke-session', { body: z.strictObject({ token: text(200) }), action: 'revokeSession' }],
  ['POST /auth/revoke-sessions', { body: nothing, action: 'revokeSessions' }],
  ['POST /auth/revoke-other-sessions', { body: nothing, action: 'revokeOtherSessions' }],
  ['POST /auth/two-factor/enable', { body: withPassword, costly, asksPassword, action: 'beginSecondFactor' }],
  ['POST /auth/two-factor/disable', { body: withPassword, costly, asksPassword, action: 'endSecondFactor' }],
  ['POST /auth/two-factor/get-totp-uri', { body: withPassword, costly, asksPassword, action: 'showSecondFactor' }],
  [
    'POST /auth/two-factor/generate-backup-codes',
    { body: withPassword, costly, asksPassword, action: 'renewBackupCodes' },
  ],
  ['POST /auth/two-factor/verify-totp', { body: code, costly, asksCode, action: 'signIn' }],
  ['POST /auth/two-factor/verify-backup-code', { body: code, costly, asksCode, action: 'signIn' }],
])

/** Whether it is asked by somebody who is signed in, or waits for a code. */
export function isOfPerson(name: string): boolean {
  return PATHS.get(name)?.action !== undefined && name !== SIGN_UP && name !== SIGN_IN
}
