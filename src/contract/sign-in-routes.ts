// The routes of signing in, for openapi.json. They use a session cookie instead of a token.
import { z } from 'zod'
import type { Code } from '../errors.ts'
import { SignInOptions } from './instance-schemas.ts'
import { listOf } from './long-lists.ts'
import { PasskeyAssertion, PasskeyCreated, PasskeyCreation, PasskeyRequest } from './passkey-schemas.ts'
import { text } from './schemas.ts'

/** In characters, for new passwords. */
export const PASSWORD = { min: 8, max: 128 } as const

export interface SignInRoute {
  readonly id: string
  readonly summary: string
  /** If absent, the method is GET. */
  readonly body?: z.ZodType
  /** If absent, no parameter is allowed. */
  readonly query?: z.ZodType
  readonly answer: z.ZodType | 'page' | 'redirect'
  /** The route needs the cookie of a session, or of a sign-in that waits for a code. */
  readonly cookie?: true
  /** In addition to the codes of every route. */
  readonly errors: readonly Code[]
}

const email = z.email().max(254)
/** Also accepts short passwords: at the sign-in, such a password is simply wrong. */
const password = text(PASSWORD.max).min(1)
const newPassword = text(PASSWORD.max).min(PASSWORD.min)
/** The address to which a mailed link leads. sign-in/allowed-origins.ts checks it. */
const place = text(2_000).exactOptional()
const token = text(2_000).min(1)
const code = text(100).min(1)
const nothing = z.strictObject({})
const withPassword = z.strictObject({ password })
/** While the second factor is on, `code` is required: a code of the authenticator, or a backup code. */
const withPasswordAndCode = z.strictObject({ password, code: code.exactOptional() })

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
export const PasswordChange = z.strictObject({
  currentPassword: password,
  newPassword,
  /** By default, a new password ends all other sessions. */
  revokeOtherSessions: z.boolean().default(true),
})
export const Verification = z.strictObject({ token, password, callbackURL: place })
export const SessionEnd = z.strictObject({ id: text(200) })
const provider = z.enum(['github', 'google', 'oidc'])
/** Why a provider redirected back without a sign-in. The console has a sentence for each reason. */
const FAILURES = [
  'EXPIRED',
  'CANCELLED',
  'UNAVAILABLE',
  'SWITCHED_OFF',
  'FAILED',
  'EMAIL_UNVERIFIED',
  'ACCOUNT_UNVERIFIED',
  'SIGN_UP_CLOSED',
  'INVITATION_NEEDED',
  'SETUP_TOKEN_NEEDED',
  'TAKEN',
  'ANOTHER_CONNECTED',
  'SESSION_ENDED',
  'RATE_LIMITED',
] as const
export type ProviderFailure = (typeof FAILURES)[number]
export const ProviderFailure = z.enum(FAILURES)
export const ProviderSignIn = z.strictObject({
  provider,
  callbackURL: text(2_000).exactOptional(),
  rememberMe: z.boolean().exactOptional(),
  setupToken: text(200).exactOptional(),
  inviteToken: text(200).exactOptional(),
})
export const ProviderChoice = z.strictObject({ provider })
/** Other parameters of providers are dropped. */
export const ProviderReturn = z.object({
  state: text(200).exactOptional(),
  code: text(4_000).exactOptional(),
  error: text(200).exactOptional(),
  iss: text(1_000).exactOptional(),
})
export const ResetToken = z.strictObject({ token })
const id = text(200)
const passkeyName = text(100).refine((value) => value.trim() !== '', 'must not be empty')
export const PasskeyAdded = z.strictObject({ name: passkeyName, response: PasskeyCreated })
export const PasskeyName = z.strictObject({ id, name: passkeyName })
export const PasskeyEnd = z.strictObject({ id })
export const PasskeySignIn = z.strictObject({ response: PasskeyAssertion, rememberMe: z.boolean().exactOptional() })
export const Reset = z.strictObject({
  token,
  newPassword,
  keep: z
    .strictObject({
      keyIds: listOf(text(200), 200).exactOptional(),
      grantIds: listOf(text(200), 200).exactOptional(),
      passkeyIds: listOf(text(200), 200).exactOptional(),
      providers: listOf(provider, 10).exactOptional(),
      secondFactor: z.boolean().exactOptional(),
    })
    .exactOptional(),
  /**
   * A code of the second factor. With it, the second factor ends unless `keep.secondFactor` is set. Without it, the
   * second factor stays.
   */
  code: code.exactOptional(),
})

const at = z.iso.datetime()
const User = z.object({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  image: z.string().nullable(),
  emailVerified: z.boolean(),
  twoFactorEnabled: z.boolean().nullable(),
  createdAt: at,
  updatedAt: at,
})
const Session = z.object({
  id: z.string(),
  userId: z.string(),
  ipAddress: z.string().nullable(),
  userAgent: z.string().nullable(),
  createdAt: at,
  updatedAt: at,
  expiresAt: at,
  current: z.literal(true).optional().meta({ description: 'True for the session of the cookie.' }),
})
const Status = z.object({ status: z.literal(true) })
const SignedIn = z.object({ user: User })
const BackupCodes = z.array(z.string())
const HeldKey = z.object({
  id: z.string(),
  name: z.string(),
  hint: z.string(),
  createdAt: at,
  lastUsedAt: at.nullable(),
  expiresAt: at.nullable(),
})
const HeldGrant = z.object({
  id: z.string(),
  clientName: z.string(),
  clientHost: z.string(),
  createdAt: at,
  lastUsedAt: at.nullable(),
  expiresAt: at.nullable(),
})
const HeldPasskey = z.object({
  id: z.string(),
  name: z.string(),
  createdAt: at,
  lastUsedAt: at.nullable(),
  synced: z.boolean().meta({ description: 'True if the passkey is copied to the person’s other devices.' }),
})
const HeldProvider = z.object({
  provider,
  name: z.string(),
  label: z.string().nullable().meta({ description: 'The person’s login or address at the provider.' }),
  createdAt: at,
  offered: z.boolean().meta({ description: 'True if the service offers this provider.' }),
})
const Held = z.object({
  keys: z.array(HeldKey),
  grants: z.array(HeldGrant),
  passkeys: z.array(HeldPasskey),
  providers: z.array(HeldProvider),
  secondFactor: z.boolean(),
  /** False if the address was never verified. Then a new password ends everything above. */
  mayKeep: z.boolean(),
})
const EndedKey = HeldKey.pick({ id: true, name: true, hint: true })
const EndedGrant = HeldGrant.pick({ id: true, clientName: true, clientHost: true })
const EndedProvider = HeldProvider.pick({ provider: true, name: true, label: true })
const EndedPasskey = HeldPasskey.pick({ id: true, name: true })
const Kept = z.object({
  keys: z.array(EndedKey),
  grants: z.array(EndedGrant),
  passkeys: z.array(EndedPasskey),
  providers: z.array(EndedProvider),
  secondFactor: z.boolean(),
})
const Ways = z.object({
  password: z.boolean(),
  passkeys: z.array(HeldPasskey),
  providers: z.array(HeldProvider),
})
const Away = z.object({ url: z.string() })
const Ended = Kept.extend({ sessions: z.int().min(0) })

const cookie = true
const MAILED: readonly Code[] = ['RATE_LIMITED']
const BY_PASSWORD: readonly Code[] = ['UNAUTHENTICATED', 'RATE_LIMITED']
const OF_SESSION: readonly Code[] = ['UNAUTHENTICATED']
/** These routes add a way to sign in, so they need a recent sign-in. */
const ADDS_WAY: readonly Code[] = ['UNAUTHENTICATED', 'REAUTHENTICATION_REQUIRED', 'CONFLICT', 'RATE_LIMITED']

export const SIGN_IN_ROUTES = {
  'GET /auth/options': {
    id: 'getSignInOptions',
    summary: 'Returns how people can sign up and sign in, for the sign-up and sign-in pages.',
    answer: SignInOptions,
    errors: [],
  },
  'POST /auth/sign-up/email': {
    id: 'signUp',
    summary: 'Creates an account, and signs in unless mail is on. If mail is on, the address must be verified first.',
    body: SignUp,
    answer: SignedIn,
    errors: ['CONFLICT', 'RATE_LIMITED'],
  },
  'POST /auth/sign-in/email': {
    id: 'signIn',
    summary: 'Signs in with a password. With a second factor, the sign-in then waits for a code.',
    body: SignInBody,
    answer: z.union([
      SignedIn.extend({ redirect: z.boolean() }),
      z.object({ twoFactorRedirect: z.literal(true), twoFactorMethods: z.array(z.string()) }),
    ]),
    errors: BY_PASSWORD,
  },
  'POST /auth/sign-out': {
    id: 'signOut',
    summary: 'Ends the session and its access tokens.',
    body: nothing,
    answer: z.object({ success: z.literal(true) }),
    cookie,
    errors: [],
  },
  'GET /auth/get-session': {
    id: 'getSession',
    summary: 'Returns the session of the cookie, or null.',
    answer: z.object({ session: Session, user: User }).nullable(),
    cookie,
    errors: [],
  },
  'GET /auth/token': {
    id: 'getToken',
    summary: 'Returns an access token of the session, valid for ten minutes.',
    answer: z.object({ token: z.string(), expiresIn: z.int().min(1).meta({ description: 'Seconds.' }) }),
    cookie,
    errors: OF_SESSION,
  },
  'POST /auth/change-password': {
    id: 'changePassword',
    summary: 'Changes the password. Ends the other sessions unless revokeOtherSessions is false.',
    body: PasswordChange,
    answer: SignedIn,
    cookie,
    errors: BY_PASSWORD,
  },
  'POST /auth/request-password-reset': {
    id: 'requestPasswordReset',
    summary: 'Mails a password reset link that works once, for an hour. The answer is the same for every address.',
    body: z.strictObject({ email, redirectTo: place }),
    answer: Status.extend({ message: z.string() }),
    errors: MAILED,
  },
  'GET /auth/reset-password': {
    id: 'resetPasswordPage',
    summary: 'Shows the page of the password reset link, if no redirectTo was given.',
    query: z.strictObject({ token: token.exactOptional() }),
    answer: 'page',
    errors: [],
  },
  'POST /auth/reset-password/preview': {
    id: 'previewPasswordReset',
    summary:
      'Lists what a new password by link would end: API keys, agents, passkeys, providers and the second factor.',
    body: ResetToken,
    answer: Held,
    errors: ['RATE_LIMITED'],
  },
  'POST /auth/reset-password': {
    id: 'resetPassword',
    summary:
      'Sets a new password by link. Ends sessions, links, and what the preview lists unless kept. Does not sign in.',
    body: Reset,
    answer: Status.extend({ ended: Ended, kept: Kept }),
    errors: ['UNAUTHENTICATED', 'RATE_LIMITED'],
  },
  'POST /auth/send-verification-email': {
    id: 'sendVerificationEmail',
    summary: 'Mails a verification link, valid for an hour. The answer is the same for every address.',
    body: z.strictObject({ email, callbackURL: place }),
    answer: Status,
    errors: MAILED,
  },
  'GET /auth/verify-email': {
    id: 'verifyEmailPage',
    summary: 'Shows the page of the verification link, which asks for the password of the sign-up.',
    query: z.strictObject({ token, callbackURL: place }),
    answer: 'page',
    errors: [],
  },
  'POST /auth/verify-email': {
    id: 'verifyEmail',
    summary: 'Verifies the address of a link, with the password of the sign-up. Does not sign in.',
    body: Verification,
    answer: Status.extend({ callbackURL: z.string().nullable() }),
    errors: BY_PASSWORD,
  },
  'GET /auth/list-sessions': {
    id: 'listSessions',
    summary: 'Lists the sessions of the account. The session of the cookie has current: true.',
    answer: z.array(Session),
    cookie,
    errors: OF_SESSION,
  },
  'POST /auth/revoke-session': {
    id: 'revokeSession',
    summary: 'Ends one session and its access tokens.',
    body: SessionEnd,
    answer: Status,
    cookie,
    errors: OF_SESSION,
  },
  'POST /auth/revoke-sessions': {
    id: 'revokeSessions',
    summary: 'Ends all sessions.',
    body: nothing,
    answer: Status,
    cookie,
    errors: OF_SESSION,
  },
  'POST /auth/revoke-other-sessions': {
    id: 'revokeOtherSessions',
    summary: 'Ends all other sessions.',
    body: nothing,
    answer: Status,
    cookie,
    errors: OF_SESSION,
  },
  'POST /auth/two-factor/enable': {
    id: 'beginSecondFactor',
    summary: 'Starts the setup of a second factor. A valid code turns it on.',
    body: withPassword,
    answer: z.object({ method: z.string(), totpURI: z.string(), backupCodes: BackupCodes }),
    cookie,
    errors: BY_PASSWORD,
  },
  'POST /auth/two-factor/disable': {
    id: 'endSecondFactor',
    summary: 'Turns the second factor off. Needs the password and, if the factor is on, a code.',
    body: withPasswordAndCode,
    answer: Status,
    cookie,
    errors: BY_PASSWORD,
  },
  'POST /auth/two-factor/get-totp-uri': {
    id: 'showSecondFactor',
    summary: 'Shows the secret of the second factor again. Needs the password and, if the factor is on, a code.',
    body: withPasswordAndCode,
    answer: z.object({ totpURI: z.string() }),
    cookie,
    errors: BY_PASSWORD,
  },
  'POST /auth/two-factor/generate-backup-codes': {
    id: 'renewBackupCodes',
    summary:
      'Creates ten new backup codes. Needs the password and, if the factor is on, a code. The old codes stop working.',
    body: withPasswordAndCode,
    answer: Status.extend({ backupCodes: BackupCodes }),
    cookie,
    errors: BY_PASSWORD,
  },
  'POST /auth/two-factor/verify-totp': {
    id: 'verifyCode',
    summary:
      'Completes a sign-in with a code of the authenticator app, or turns the second factor on and ends other sessions.',
    body: z.strictObject({ code }),
    answer: SignedIn,
    cookie,
    errors: BY_PASSWORD,
  },
  'POST /auth/two-factor/verify-backup-code': {
    id: 'verifyBackupCode',
    summary: 'Completes a sign-in with a backup code. Each code works once.',
    body: z.strictObject({ code }),
    answer: SignedIn,
    cookie,
    errors: ['UNAUTHENTICATED', 'CONFLICT', 'RATE_LIMITED'],
  },
  'GET /auth/sign-in-methods': {
    id: 'listSignInMethods',
    summary: 'Lists the ways in which the account can sign in.',
    answer: Ways,
    cookie,
    errors: OF_SESSION,
  },
  'POST /auth/passkey/add-options': {
    id: 'beginPasskey',
    summary: 'Returns the options for navigator.credentials.create(). Needs a sign-in of the last 10 minutes.',
    body: nothing,
    answer: PasskeyCreation,
    cookie,
    errors: ADDS_WAY,
  },
  'POST /auth/passkey/add': {
    id: 'addPasskey',
    summary: 'Adds the passkey that the browser created.',
    body: PasskeyAdded,
    answer: HeldPasskey,
    cookie,
    errors: ADDS_WAY,
  },
  'POST /auth/passkey/rename': {
    id: 'renamePasskey',
    summary: 'Renames a passkey.',
    body: PasskeyName,
    answer: Status,
    cookie,
    errors: OF_SESSION,
  },
  'POST /auth/passkey/remove': {
    id: 'removePasskey',
    summary: 'Removes a passkey, unless it is the last way to sign in.',
    body: PasskeyEnd,
    answer: Status,
    cookie,
    errors: ['UNAUTHENTICATED', 'CONFLICT'],
  },
  'POST /auth/passkey/sign-in-options': {
    id: 'beginPasskeySignIn',
    summary: 'Returns the options for navigator.credentials.get(), to sign in with a passkey.',
    body: nothing,
    answer: PasskeyRequest,
    errors: ['RATE_LIMITED'],
  },
  'POST /auth/passkey/sign-in': {
    id: 'signInWithPasskey',
    summary: 'Signs in with a passkey. No code is required: a passkey proves possession and verifies the person.',
    body: PasskeySignIn,
    answer: SignedIn,
    errors: BY_PASSWORD,
  },
  'POST /auth/sign-in/provider': {
    id: 'signInWithProvider',
    summary:
      'Starts a sign-in at a provider, and returns the address to open. The sign-in must end in the same browser within ten minutes.',
    body: ProviderSignIn,
    answer: Away,
    errors: ['NOT_FOUND', 'RATE_LIMITED'],
  },
  'POST /auth/connect-provider': {
    id: 'connectProvider',
    summary: 'Starts to connect the account with an account at a provider. Needs a sign-in of the last 10 minutes.',
    body: ProviderChoice,
    answer: Away,
    cookie,
    errors: [...ADDS_WAY, 'NOT_FOUND'],
  },
  'POST /auth/disconnect-provider': {
    id: 'disconnectProvider',
    summary: 'Disconnects a provider, unless it is the last way to sign in.',
    body: ProviderChoice,
    answer: Status,
    cookie,
    errors: ['UNAUTHENTICATED', 'NOT_FOUND', 'CONFLICT'],
  },
  'GET /auth/callback/github': {
    id: 'githubCallback',
    summary:
      'The address to which GitHub redirects people. Signs in, asks for a code, connects the provider, or shows the reason of a failure.',
    query: ProviderReturn,
    answer: 'redirect',
    errors: [],
  },
  'GET /auth/callback/google': {
    id: 'googleCallback',
    summary:
      'The address to which Google redirects people. Signs in, asks for a code, connects the provider, or shows the reason of a failure.',
    query: ProviderReturn,
    answer: 'redirect',
    errors: [],
  },
  'GET /auth/callback/oidc': {
    id: 'oidcCallback',
    summary:
      'The address to which the OpenID Connect provider redirects people. Signs in, asks for a code, connects the provider, or shows the reason of a failure.',
    query: ProviderReturn,
    answer: 'redirect',
    errors: [],
  },
} as const satisfies Record<string, SignInRoute>

export type SignInRouteName = keyof typeof SIGN_IN_ROUTES
