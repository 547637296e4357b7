// The options of better-auth that sign-in and the OAuth provider (oauth/provider.ts) share. With other options, the
// OAuth provider would not find the sessions.
import { randomUUID } from 'node:crypto'
import type { BetterAuthOptions } from 'better-auth'
import { CLIENT_ADDRESS } from '../auth/client-name-and-address.ts'
import { AppError } from '../errors.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import { contended, isContended } from '../store/postgres.ts'
import { requestInHand } from './current-request-id.ts'

export interface SharedDeps {
  readonly store: Store
  readonly secrets: Pick<Secrets, 'derive'>
  readonly log?: { error(detail: object, message: string): void }
}

/** A session that is used is renewed once a day. */
const SESSION_SECONDS = 7 * 86_400
const SESSION_RENEWED_SECONDS = 86_400

export function sharedOptions(deps: SharedDeps, origin: string) {
  return {
    appName: 'Vitrine',
    baseURL: origin,
    basePath: '/auth',
    trustedOrigins: [origin],
    // After a rotation of the root key, derive() returns the same bytes, so sessions stay valid.
    secrets: [{ version: 1, value: Buffer.from(deps.secrets.derive('sign-in')).toString('base64') }],
    database: { db: deps.store.db, type: deps.store.dialect, transaction: true },
    // The library would answer contention with 500. This rethrows it as OVERLOADED (503).
    onAPIError: { onError: rethrowContention },
    user: { modelName: 'accounts' },
    session: { modelName: 'sessions', expiresIn: SESSION_SECONDS, updateAge: SESSION_RENEWED_SECONDS },
    account: { modelName: 'sign_in_methods' },
    // Only a hash of each link and code is stored, so reading the store does not help an attacker.
    verification: { modelName: 'verifications', storeIdentifier: 'hashed' },
    advanced: {
      cookiePrefix: 'vitrine',
      useSecureCookies: origin.startsWith('https:'),
      defaultCookieAttributes: { path: '/auth', httpOnly: true, sameSite: 'lax' },
      database: { generateId: () => randomUUID(), validateSchema: false },
      // The library stores the client's address with the session.
      ipAddress: { ipAddressHeaders: [CLIENT_ADDRESS] },
      // By default, both checks depend on NODE_ENV, and would be off under a test runner.
      disableCSRFCheck: false,
      disableOriginCheck: false,
    },
    // sign-in-limits.ts and second-factor-limits.ts limit attempts.
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    logger: {
      level: 'error',
      // Messages without an Error may be about failed sign-ins, which are private.
      log: (_level, message, ...details: unknown[]) => {
        const err = details.find((detail) => detail instanceof Error)
        // The message of a database error may contain the rejected row, but the stack does not.
        if (err !== undefined)
          deps.log?.error({ requestId: requestInHand.getStore(), stack: err.stack }, `sign-in: ${message}`)
      },
    },
  } satisfies BetterAuthOptions
}

function rethrowContention(error: unknown): void {
  if (error instanceof AppError) throw error
  if (isContended(error)) throw contended(error)
}
