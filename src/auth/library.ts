// better-auth, configured: the only file that knows it. Loaded when it is first needed, since loading it takes longer
// than all the rest of a start.
import { randomUUID } from 'node:crypto'
import type { Config } from '../config.ts'
import { asId, type AccountId } from '../ids.ts'
import { resetLetter, signedUpAgainLetter, verificationLetter } from '../mail/letters.ts'
import type { Mail } from '../mail/mail.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import { ACCESS_TOKEN } from './access-tokens.ts'
import type { AccountLinks } from './account-links.ts'
import { afterReset } from './new-password.ts'

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
}

/** Where the door says the caller is (http/sign-in-bridge.ts); kept with the session. */
const CLIENT_ADDRESS = 'x-vitrine-client'

const SESSION_SECONDS = 7 * 86_400
const SESSION_RENEWED_SECONDS = 86_400
const LINK_SECONDS = 3_600
/** Characters. */
export const PASSWORD = { min: 8, max: 128 } as const

export async function openLibrary(deps: LibraryDeps): Promise<Library> {
  const [{ betterAuth }, { jwt }, { twoFactor }] = await Promise.all([
    import('better-auth'),
    import('better-auth/plugins/jwt'),
    import('better-auth/plugins/two-factor'),
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
      // Its lock after ten wrong codes is the library's own: 15 minutes.
      twoFactor({ issuer: 'Vitrine', twoFactorTable: 'second_factors' }),
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
    // Ours (attempts.ts) counts an account and an address together.
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
  return { origin, handle: (request) => auth.handler(request) }
}

/** Passwords and addresses, as far as a mail belongs to them. Within a transaction of the library nothing asks the store. */
function mailing(deps: LibraryDeps) {
  const { mail, links, origin } = deps
  const link = (path: string, token: string) => `${origin()}${path}${path.includes('?') ? '&' : '?'}token=${token}`
  return {
    emailAndPassword: {
      enabled: true,
      minPasswordLength: PASSWORD.min,
      maxPasswordLength: PASSWORD.max,
      requireEmailVerification: mail.isOn,
      resetPasswordTokenExpiresIn: LINK_SECONDS,
      revokeSessionsOnPasswordReset: true,
      sendResetPassword: async ({ user, url, token }: Linked) =>
        mail.send(resetLetter(user.email, link(leadsTo(url) ?? '/auth/reset-password', token))),
      onPasswordReset: ({ user }: { user: Person }) =>
        afterReset(deps.store, asId<AccountId>(user.id), {
          provesAddress: mail.isOn && !user.emailVerified,
          now: (deps.now ?? Date.now)(),
        }),
      onExistingUserSignUp: async ({ user }: { user: Person }) => mail.send(signedUpAgainLetter(user.email, origin())),
    },
    emailVerification: {
      sendOnSignUp: true,
      // A link proves an address; it signs nobody in, or it would pass by the second factor.
      autoSignInAfterVerification: false,
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
