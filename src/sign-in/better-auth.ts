// Configures better-auth for sign-in. Loaded after the start, because loading it takes longer than the start.
import type { Library } from './sign-in-library.ts'
import { randomBytes } from 'node:crypto'
import type { createAuthEndpoint as CreateEndpoint } from 'better-auth/api'
import type {
  deleteSessionCookie as DeleteSessionCookie,
  setSessionCookie as SetSessionCookie,
} from 'better-auth/cookies'
import type { parseUserOutput as ParseUserOutput } from 'better-auth/db'
import { z } from 'zod'
import type { ClockDoubt } from '../clock-doubt.ts'
import type { Config } from '../config.ts'
import { PASSWORD } from '../contract/sign-in-routes.ts'
import { asId, type AccountId, type SessionId } from '../ids.ts'
import { resetLetter, signedUpAgainLetter, verificationLetter } from '../mail/mail-texts.ts'
import type { Mail } from '../mail/send-mail.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import { addressOf } from '../auth/client-name-and-address.ts'
import { networkOf } from '../auth/client-network.ts'
import { ACCESS_TOKEN } from '../auth/session-tokens.ts'
import type { AccountLinks } from './verification-links.ts'
import { sharedOptions } from './better-auth-options.ts'
import { notSignedIn } from './better-auth-errors.ts'

/** The default is the library's scrypt. */
export interface PasswordHash {
  hash(password: string): Promise<string>
  verify(given: { readonly hash: string; readonly password: string }): Promise<boolean>
}

export interface LibraryDeps {
  readonly store: Store
  readonly secrets: Pick<Secrets, 'derive'>
  readonly config: Pick<Config, 'publicUrl'>
  readonly mail: Mail
  readonly links: Pick<AccountLinks, 'bound'>
  /** The e-mail address of the demo account, which needs no verification. Null if there is no demo. */
  readonly demoEmail: string | null
  /** Returns the origin for links. It must not come from a request header. */
  readonly origin: () => string
  readonly now?: () => number
  /** For tests in which many people sign up. No setting of the service changes the hash. */
  readonly passwords?: PasswordHash
  /** If missing, the clock is trusted. */
  readonly clock?: ClockDoubt
  readonly log?: { error(detail: object, message: string): void }
}

/** The lifetime of a link that verifies an e-mail address or resets a password. */
const LINK_SECONDS = 3_600
/** After a correct password, a sign-in waits this long for a code of the second factor. */
const WAIT_SECONDS = 600
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
    ...sharedOptions(deps, origin),
    ...mailing(deps),
    databaseHooks: {
      session: {
        delete: {
          // The library deletes expired sessions. Keep them while the clock may be wrong.
          before: async ({ expiresAt }, ctx) =>
            mayDelete(ctx?.path ?? '') || expiresAt.getTime() > Date.now() || (deps.clock?.reason() ?? null) === null,
        },
      },
      user: {
        create: {
          before: async (user) =>
            user.email === deps.demoEmail ? { data: { ...user, emailVerified: true } } : undefined,
        },
      },
    },
    plugins: [
      // The library checks a code before it counts it. second-factor-lock.ts counts codes first, and replaces the
      // library's lock.
      twoFactor({ issuer: 'Vitrine', twoFactorTable: 'second_factors', accountLockout: { enabled: false } }),
      {
        id: 'ours',
        endpoints: {
          identify: identify(api),
          signedIn: signedIn({ ...api, ...cookies, ...db }),
          awaitCode: awaitCode({ ...api, ...cookies }),
        },
      },
      jwt({
        // Only GET /auth/token returns the token.
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
  })
  const { password, secretConfig: key } = await auth.$context
  return {
    origin,
    handle: (request) => auth.handler(request),
    async identify({ headers }) {
      const { session, waiting } = await auth.api.identify({ headers })
      return {
        signedIn: accountIdOf(session?.userId ?? null),
        sessionId: session === null ? null : asId<SessionId>(session.id),
        waiting: accountIdOf(waiting),
      }
    },
    signedIn: ({ headers }, accountId, { anew, remember = true }) =>
      auth.api.signedIn({ headers, body: { accountId, anew, remember }, asResponse: true }),
    awaitCode: ({ headers }, accountId, { remember }) =>
      auth.api.awaitCode({ headers, body: { accountId, remember }, asResponse: true }),
    async isPassword(accountId, sent) {
      const stored = await passwordOf(deps.store, accountId)
      if (stored !== null) return await password.verify({ hash: stored, password: sent })
      await password.hash(sent)
      return false
    },
    hashPassword: (sent) => password.hash(sent),
    isCode: async (secret, code) => await createOTP(await crypto.symmetricDecrypt({ key, data: secret })).verify(code),
    openBackupCodes: async (stored) =>
      BackupCodes.parse(JSON.parse(await crypto.symmetricDecrypt({ key, data: stored }))),
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

/** Uses the library's own parser, so that both find the same account. Renews no session and consumes no code. */
function identify({ createAuthEndpoint }: { readonly createAuthEndpoint: typeof CreateEndpoint }) {
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

/** Returns the library's answer to a sign-in of an account that our code chooses. With `anew`, creates a session. */
function signedIn(lib: {
  readonly createAuthEndpoint: typeof CreateEndpoint
  readonly setSessionCookie: typeof SetSessionCookie
  readonly parseUserOutput: typeof ParseUserOutput
}) {
  const body = z.object({ accountId: z.string(), anew: z.boolean(), remember: z.boolean() })
  return lib.createAuthEndpoint.serverOnly({ method: 'POST', requireHeaders: true, body }, async (ctx) => {
    const { internalAdapter, options } = ctx.context
    const user = await internalAdapter.findUserById(ctx.body.accountId)
    if (user === null) throw notSignedIn()
    const { anew, remember } = ctx.body
    const session = anew ? await internalAdapter.createSession(user.id, !remember) : null
    if (session !== null) await lib.setSessionCookie(ctx, { session, user }, !remember)
    return ctx.json({ token: session?.token ?? null, user: lib.parseUserOutput(options, user) })
  })
}

/** Does what the library does after the correct password of an account with a second factor. */
function awaitCode(lib: {
  readonly createAuthEndpoint: typeof CreateEndpoint
  readonly deleteSessionCookie: typeof DeleteSessionCookie
}) {
  const body = z.object({ accountId: z.string(), remember: z.boolean() })
  return lib.createAuthEndpoint.serverOnly({ method: 'POST', requireHeaders: true, body }, async (ctx) => {
    const { secret, authCookies, createAuthCookie, internalAdapter } = ctx.context
    const { accountId, remember } = ctx.body
    const cookie = createAuthCookie('two_factor', { maxAge: WAIT_SECONDS })
    const identifier = `2fa-${randomBytes(15).toString('base64url')}`
    const expiresAt = new Date(Date.now() + WAIT_SECONDS * 1000)
    await internalAdapter.createVerificationValue({ value: accountId, identifier, expiresAt })
    await internalAdapter.createVerificationValue({ value: '0', identifier: `2fa-attempts-${identifier}`, expiresAt })
    // With the session cookie, the library would take the code for the session.
    lib.deleteSessionCookie(ctx, !remember)
    const { name, attributes } = authCookies.dontRememberToken
    if (!remember) await ctx.setSignedCookie(name, 'true', secret, attributes)
    await ctx.setSignedCookie(cookie.name, identifier, secret, cookie.attributes)
    return ctx.json({})
  })
}

function accountIdOf(id: string | null): AccountId | null {
  return id === null ? null : asId<AccountId>(id)
}

/** The library calls these functions within its transaction, so they must not use the store. */
function mailing(deps: LibraryDeps) {
  const { mail, links, origin } = deps
  const link = (path: string, token: string) => {
    const url = new URL(path, origin())
    // The caller may have added a `token` to the URL. set() replaces it, because the page reads the first one.
    url.searchParams.set('token', token)
    return url.href
  }
  return {
    emailAndPassword: {
      enabled: true,
      minPasswordLength: PASSWORD.min,
      maxPasswordLength: PASSWORD.max,
      ...(deps.passwords !== undefined && { password: deps.passwords }),
      requireEmailVerification: mail.isOn,
      resetPasswordTokenExpiresIn: LINK_SECONDS,
      sendResetPassword: async ({ user, url, token }: MailedLink, request?: Request) =>
        mail.send(resetLetter(user.email, link(targetOf(url) ?? '/auth/reset-password', token)), sourceOf(request)),
      onExistingUserSignUp: async ({ user }: { user: Person }, request?: Request) =>
        mail.send(signedUpAgainLetter(user.email, origin()), sourceOf(request)),
    },
    emailVerification: {
      sendOnSignUp: true,
      expiresIn: LINK_SECONDS,
      sendVerificationEmail: async ({ user, url, token }: MailedLink, request?: Request) => {
        if (user.emailVerified) return
        const target = targetOf(url)
        // After a sign-up in the console, open the console.
        const page = target?.startsWith('/app/') === true ? '/app/verify' : '/auth/verify-email'
        const address = link(page, links.bound(token, user.id))
        const whole = target === null ? address : `${address}&callbackURL=${encodeURIComponent(target)}`
        mail.send(verificationLetter(user.email, whole), sourceOf(request))
      },
    },
  }
}

function sourceOf(request: Request | undefined): string {
  return `network ${request === undefined ? '' : networkOf(addressOf(request))}`
}

interface Person {
  readonly id: string
  readonly email: string
  readonly emailVerified: boolean
}
interface MailedLink {
  readonly user: Person
  readonly url: string
  readonly token: string
}

/** Returns the target path in the library's link. The library writes `/` if there is no target. */
function targetOf(url: string): string | null {
  const path = new URL(url).searchParams.get('callbackURL') ?? ''
  return path === '' || path === '/' ? null : path
}

function mayDelete(path: string): boolean {
  return /^\/(?:sign-out|revoke-)/.test(path)
}
