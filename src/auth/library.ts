// better-auth, configured: the only file that knows it. Loaded when it is first needed, since loading it takes longer
// than all the rest of a start.
import { randomUUID } from 'node:crypto'
import type { Config } from '../config.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import { ACCESS_TOKEN } from './access-tokens.ts'

export interface LibraryDeps {
  readonly store: Store
  readonly secrets: Pick<Secrets, 'derive'>
  readonly config: Pick<Config, 'publicUrl' | 'host' | 'port'>
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
/** Characters. */
export const PASSWORD = { min: 8, max: 128 } as const

export async function openLibrary(deps: LibraryDeps): Promise<Library> {
  const [{ betterAuth }, { jwt }] = await Promise.all([import('better-auth'), import('better-auth/plugins/jwt')])
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
    verification: { modelName: 'verifications' },
    emailAndPassword: { enabled: true, minPasswordLength: PASSWORD.min, maxPasswordLength: PASSWORD.max },
    plugins: [
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
