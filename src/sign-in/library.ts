// better-auth, configured: the only file that knows it. Loaded when it is first needed, since loading it takes longer
// than all the rest of a start.
import { randomUUID } from 'node:crypto'
import type { createAuthEndpoint as CreateEndpoint } from 'better-auth/api'
import type { setSessionCookie as SetSessionCookie } from 'better-auth/cookies'
import type { parseUserOutput as ParseUserOutput } from 'better-auth/db'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { PASSWORD } from '../contract/sign-in-routes.ts'
import { AppError } from '../errors.ts'
import { asId, type AccountId, type SessionId } from '../ids.ts'
import { resetLetter, signedUpAgainLetter, verificationLetter } from '../mail/letters.ts'
import type { Mail } from '../mail/mail.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import { contended, isContended } from '../store/postgres.ts'
import { ACCESS_TOKEN } from '../auth/access-tokens.ts'
import type { AccountLinks } from './account-links.ts'
import { notSignedIn } from './library-refusal.ts'

export interface LibraryDeps {
  readonly store: Store
  readonly secrets: Pick<Secrets, 'derive'>
  readonly config: Pick<Config, 'publicUrl'>
  readonly mail: Mail
  readonly links: Pick<AccountLinks, 'bound'>
  /** The address of the service's own demo, which nobody has to prove; null where there is none. */
  readonly demoEmail: string | null
  /** Where people reach the service: what links begin with. Never what a caller claims to have asked. */
  readonly origin: () => string
  readonly now?: () => number
  readonly log?: { error(detail: object, message: string): void }
}

export interface Library {
  /** The origin that the library trusts; requests are handed to it as from there. */
  readonly origin: string
  handle(request: Request): Promise<Response>
  asking(request: Pick<Request, 'headers'>): Promise<Asking>
  /** As the library answers a sign-in; with a session and its cookie, if `anew`. */
  signedIn(request: Pick<Request, 'headers'>, accountId: AccountId, made: { readonly anew: boolean }): Promise<Response>
  /** Takes as long for an account without a password as for a wrong one. */
  isPassword(accountId: AccountId, password: string): Promise<boolean>
  /** As it is kept in sign_in_methods. */
  hashPassword(password: string): Promise<string>
  /** Whether a code is one of this moment. `secret`: as it is kept in second_factors. */
  isCode(secret: string, code: string): Promise<boolean>
  /** Backup codes as they are kept in second_factors, in the clear; and back. */
  openBackupCodes(kept: string): Promise<readonly string[]>
  sealBackupCodes(codes: readonly string[]): Promise<string>
}

/** Who sends a request under /auth, as far as its cookies prove that. */
export interface Asking {
  readonly signedIn: AccountId | null
  readonly sessionId: SessionId | null
  /** Their password was right, and a code is waited for. */
  readonly waiting: AccountId | null
}

/** Where the door says the caller is (http/sign-in-bridge.ts); kept with the session. */
const CLIENT_ADDRESS = 'x-vitrine-client'

const SESSION_SECONDS = 7 * 86_400
const SESSION_RENEWED_SECONDS = 86_400
const LINK_SECONDS = 3_600
const BackupCodes = z.array(z.string())

export async function openLibrary(deps: LibraryDeps): Promise<Library> {
  const [{ betterAuth }, api, cookies, db, { jwt }, { twoFactor }, crypto, { createOTP }] = await Promise.all([
    import('better-auth'),
    import('better-auth/api'),
    import('better-auth/cookies'),
    import('better-auth/db'),
    import('better-auth/plugins/jwt'),
    import('better-auth/plugins/two-factor'),
    import('better-auth/crypto'),
    import('@better-auth/utils/otp'),
  ])
  const origin = deps.config.publicUrl ?? 'http://localhost'
  const auth = betterAuth({
    appName: 'Vitrine',
    baseURL: origin,
    basePath: '/auth',
    trustedOrigins: [origin],
    // Named with a version, so that the root key can change without signing everybody out.
    secrets: [{ version: 1, value: Buffer.from(deps.secrets.derive('sign-in')).toString('base64') }],
    database: { db: deps.store.db, type: deps.store.dialect, transaction: true },
    // The library would answer these as a defect (500): a store that is too busy is OVERLOADED (503) here too.
    onAPIError: { onError: rethrowContention },
    user: { modelName: 'accounts' },
    session: { modelName: 'sessions', expiresIn: SESSION_SECONDS, updateAge: SESSION_RENEWED_SECONDS },
    account: { modelName: 'sign_in_methods' },
    // A link that was read in the store opens nothing.
    verification: { modelName: 'verifications', storeIdentifier: 'hashed' },
    ...mailing(deps),
    databaseHooks: {
      user: {
        create: {
          before: async (user) =>
            user.email === deps.demoEmail ? { data: { ...user, emailVerified: true } } : undefined,
        },
      },
    },
    plugins: [
      // Wrong codes are counted before they are checked (second-factor.ts).
      twoFactor({ issuer: 'Vitrine', twoFactorTable: 'second_factors', accountLockout: { enabled: false } }),
      { id: 'ours', endpoints: { asking: asking(api), signedIn: signedIn({ ...api, ...cookies, ...db }) } },
      jwt({
        // The token goes where it is asked for, and into no header of another answer.
        disableSettingJwtHeader: true,
        schema: { jwks: { modelName: 'signing_keys' } },
        jwks: { keyPairConfig: { alg: 'EdDSA', crv: 'Ed25519' } },
        jwt: {
          issuer: ACCESS_TOKEN.issuer,
          audience: ACCESS_TOKEN.audience,
          expirationTime: `${ACCESS_TOKEN.lifeSeconds}s`,
          definePayload: ({ session }) => ({ typ: ACCESS_TOKEN.type, sid: session.id }),
        },
      }),
    ],
    advanced: {
      cookiePrefix: 'vitrine',
      useSecureCookies: origin.startsWith('https:'),
      defaultCookieAttributes: { path: '/auth', httpOnly: true, sameSite: 'lax' },
      database: { generateId: () => randomUUID(), validateSchema: false },
      ipAddress: { ipAddressHeaders: [CLIENT_ADDRESS] },
      // Said here and not left to NODE_ENV, which would switch both off under a test runner.
      disableCSRFCheck: false,
      disableOriginCheck: false,
    },
    // Ours (attempt-counter.ts) counts an account and an address together.
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    logger: {
      level: 'error',
      // Only what failed inside; who could not sign in is nobody's to read.
      log: (_level, message, ...details: unknown[]) => {
        const err = details.find((detail) => detail instanceof Error)
        // A database's error carries the row it refused: its message and stack do not.
        if (err !== undefined) deps.log?.error({ stack: err.stack }, `sign-in: ${message}`)
      },
    },
  })
  const { password, secretConfig: key } = await auth.$context
  return {
    origin,
    handle: (request) => auth.handler(request),
    async asking({ headers }) {
      const { session, waiting } = await auth.api.asking({ headers })
      return {
        signedIn: accountIdOf(session?.userId ?? null),
        sessionId: session === null ? null : asId<SessionId>(session.id),
        waiting: accountIdOf(waiting),
      }
    },
    signedIn: ({ headers }, accountId, { anew }) =>
      auth.api.signedIn({ headers, body: { accountId, anew }, asResponse: true }),
    async isPassword(accountId, sent) {
      const kept = await passwordOf(deps.store, accountId)
      if (kept !== null) return await password.verify({ hash: kept, password: sent })
      await password.hash(sent)
      return false
    },
    hashPassword: (sent) => password.hash(sent),
    isCode: async (secret, code) => await createOTP(await crypto.symmetricDecrypt({ key, data: secret })).verify(code),
    openBackupCodes: async (kept) => BackupCodes.parse(JSON.parse(await crypto.symmetricDecrypt({ key, data: kept }))),
    sealBackupCodes: (codes) => crypto.symmetricEncrypt({ key, data: JSON.stringify(codes) }),
  }
}

async function passwordOf(store: Pick<Store, 'db'>, accountId: AccountId): Promise<string | null> {
  const method = await store.db
    .selectFrom('sign_in_methods')
    .select('password')
    .where('userId', '=', accountId)
    .where('providerId', '=', 'credential')
    .executeTakeFirst()
  return method?.password ?? null
}

/**
 * Who the cookies of a request stand for. Read by the library's own hands, so that no spelling of a cookie is one account
 * here and another one there; nothing is renewed or used up.
 */
function asking({ createAuthEndpoint }: { readonly createAuthEndpoint: typeof CreateEndpoint }) {
  return createAuthEndpoint.serverOnly({ method: 'GET', requireHeaders: true }, async (ctx) => {
    const { secret, authCookies, createAuthCookie, internalAdapter } = ctx.context
    const cookie = async (name: string) => (await ctx.getSignedCookie(name, secret)) || null
    const token = await cookie(authCookies.sessionToken.name)
    const found = token === null ? null : await internalAdapter.findSession(token)
    const challenge = await cookie(createAuthCookie('two_factor').name)
    const waiting = challenge === null ? null : await internalAdapter.findVerificationValue(challenge)
    const isAlive = found !== null && new Date(found.session.expiresAt) > new Date()
    return { session: isAlive ? found.session : null, waiting: waiting?.value ?? null }
  })
}

/** A session as the library makes and answers one; the account is whoever we say. */
function signedIn(lib: {
  readonly createAuthEndpoint: typeof CreateEndpoint
  readonly setSessionCookie: typeof SetSessionCookie
  readonly parseUserOutput: typeof ParseUserOutput
}) {
  const body = z.object({ accountId: z.string(), anew: z.boolean() })
  return lib.createAuthEndpoint.serverOnly({ method: 'POST', requireHeaders: true, body }, async (ctx) => {
    const { internalAdapter, options } = ctx.context
    const user = await internalAdapter.findUserById(ctx.body.accountId)
    if (user === null) throw notSignedIn()
    const session = ctx.body.anew ? await internalAdapter.createSession(user.id) : null
    if (session !== null) await lib.setSessionCookie(ctx, { session, user })
    return ctx.json({ token: session?.token ?? null, user: lib.parseUserOutput(options, user) })
  })
}

function accountIdOf(id: string | null): AccountId | null {
  return id === null ? null : asId<AccountId>(id)
}

/** Passwords and addresses, as far as a mail belongs to them. Within a transaction of the library nothing asks the store. */
function mailing(deps: LibraryDeps) {
  const { mail, links, origin } = deps
  const link = (path: string, token: string) => {
    const url = new URL(path, origin())
    // Never beside another one: of two the page reads the first, which whoever asked for the mail may have written.
    url.searchParams.set('token', token)
    return url.href
  }
  return {
    emailAndPassword: {
      enabled: true,
      minPasswordLength: PASSWORD.min,
      maxPasswordLength: PASSWORD.max,
      requireEmailVerification: mail.isOn,
      resetPasswordTokenExpiresIn: LINK_SECONDS,
      sendResetPassword: async ({ user, url, token }: Linked) =>
        mail.send(resetLetter(user.email, link(leadsTo(url) ?? '/auth/reset-password', token))),
      onExistingUserSignUp: async ({ user }: { user: Person }) => mail.send(signedUpAgainLetter(user.email, origin())),
    },
    emailVerification: {
      sendOnSignUp: true,
      expiresIn: LINK_SECONDS,
      sendVerificationEmail: async ({ user, url, token }: Linked) => {
        if (user.emailVerified) return
        const onward = leadsTo(url)
        const address = link('/auth/verify-email', links.bound(token, user.id))
        const whole = onward === null ? address : `${address}&callbackURL=${encodeURIComponent(onward)}`
        mail.send(verificationLetter(user.email, whole))
      },
    },
  }
}

interface Person {
  readonly id: string
  readonly email: string
  readonly emailVerified: boolean
}
interface Linked {
  readonly user: Person
  readonly url: string
  readonly token: string
}

/** Of a link as the library makes it, the path it is to lead on to; null for none, which it writes as `/` or nothing. */
function leadsTo(url: string): string | null {
  const path = new URL(url).searchParams.get('callbackURL') ?? ''
  return path === '' || path === '/' ? null : path
}

function rethrowContention(error: unknown): void {
  if (error instanceof AppError) throw error
  if (isContended(error)) throw contended(error)
}
