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
}

const costly = true
const mails = true
const asksPassword = true

export const PATHS: ReadonlyMap<string, AuthPath> = new Map<string, AuthPath>([
  ['POST /auth/sign-up/email', { body: SignUp, costly, mails }],
  ['POST /auth/sign-in/email', { body: SignInBody, costly }],
  ['POST /auth/sign-out', { body: nothing }],
  ['GET /auth/get-session', { body: null }],
  ['GET /auth/token', { body: null }],
  ['POST /auth/change-password', { body: PasswordChange, costly, asksPassword }],
  ['POST /auth/request-password-reset', { body: z.strictObject({ email, redirectTo: place }), costly, mails }],
  ['POST /auth/reset-password', { body: z.strictObject({ token, newPassword }), costly }],
  ['POST /auth/send-verification-email', { body: z.strictObject({ email, callbackURL: place }), costly, mails }],
  ['GET /auth/verify-email', { body: null, query: z.strictObject({ token, callbackURL: place }), costly }],
  ['GET /auth/list-sessions', { body: null }],
  ['POST /auth/revoke-session', { body: z.strictObject({ token: text(200) }) }],
  ['POST /auth/revoke-sessions', { body: nothing }],
  ['POST /auth/revoke-other-sessions', { body: nothing }],
  ['POST /auth/two-factor/enable', { body: withPassword, costly, asksPassword }],
  ['POST /auth/two-factor/disable', { body: withPassword, costly, asksPassword }],
  ['POST /auth/two-factor/get-totp-uri', { body: withPassword, costly, asksPassword }],
  ['POST /auth/two-factor/generate-backup-codes', { body: withPassword, costly, asksPassword }],
  ['POST /auth/two-factor/verify-totp', { body: code, costly }],
  ['POST /auth/two-factor/verify-backup-code', { body: code, costly }],
])
