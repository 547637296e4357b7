// Authenticates a call from its Authorization header only. Missing, malformed, expired, revoked and unknown credentials
// all get the same refusal.
import { BoundedMap } from '../bounded-map.ts'
import { AppError } from '../errors.ts'
import type { Store } from '../store/open.ts'
import { accessTokens } from './session-tokens.ts'
import type { Caller, GrantCaller, KeyCaller } from './caller.ts'
import { connectorTokens } from './oauth-access-tokens.ts'
import { keyFinder } from './find-caller-by-key.ts'
import { looksLikeKey } from './key-format.ts'

/** The maximum number of Authorization headers that are cached. */
const HEADERS_MAX = 1_000
/** The maximum length of a token. Every valid token is shorter. Longer tokens are not hashed, which saves time. */
const TOKEN_MAX = 4096

export interface Authenticator {
  /** Re-authenticates an earlier caller. Throws UNAUTHENTICATED if the key, session or grant has ended. */
  again(caller: Caller): Promise<Caller>
  /**
   * Authenticates REST calls, by an API key or a session's token. Throws the same UNAUTHENTICATED for all invalid
   * credentials.
   */
  authenticate(authorization: string | undefined, userAgent?: string): Promise<Caller>
  /**
   * Returns the caller of an API key that authenticate() accepted before, without waiting. If it returns null,
   * authenticate() must decide.
   */
  known(authorization: string, userAgent?: string): KeyCaller | null
  /**
   * Authenticates calls of the connector, by an API key or an OAuth token. Throws UNAUTHENTICATED like authenticate().
   */
  authenticateConnector(authorization: string | undefined, userAgent?: string): Promise<KeyCaller | GrantCaller>
}

export function authenticator(deps: {
  readonly store: Store
  /** Returns the public origin, which issues the tokens of grants. */
  readonly origin: () => string
  readonly now?: () => number
}): Authenticator {
  const { store, origin, now = Date.now } = deps
  const tokens = accessTokens({ store, now })
  const grants = connectorTokens({ store, now, origin })
  const keys = keyFinder({ store, now })
  const again = async (caller: Caller): Promise<Caller | null> => {
    switch (caller.kind) {
      case 'key':
        return await keys.again(caller.keyId)
      case 'session':
        return await tokens.again(caller)
      case 'grant':
        return await grants.again(caller)
      default:
        return caller satisfies never
    }
  }
  /**
   * Maps headers to cache keys, so that a known header need not be hashed. An entry grants no access: see keys.known().
   */
  const headers = new BoundedMap<string, string>(HEADERS_MAX)
  return {
    again: async (caller) => required(await again(caller)),
    async authenticate(authorization, userAgent) {
      const token = required(bearer(authorization))
      if (!looksLikeKey(token)) return required(await tokens.verify(token))
      const caller = required(await keys.find(token, userAgent))
      if (authorization !== undefined) headers.set(authorization, keys.cacheKey(token))
      return caller
    },
    known(authorization, userAgent) {
      const cacheKey = headers.get(authorization)
      return cacheKey === undefined ? null : keys.known(cacheKey, userAgent)
    },
    async authenticateConnector(authorization, userAgent) {
      const token = required(bearer(authorization))
      return required(looksLikeKey(token) ? await keys.find(token, userAgent) : await grants.verify(token))
    },
  }
}

function required<T>(found: T | null): T {
  if (found === null) throw unauthenticated()
  return found
}

/** Returns the only authentication error. */
export function unauthenticated(): AppError {
  return new AppError('UNAUTHENTICATED', 'A valid API key or access token is needed: Authorization: Bearer <token>.')
}

function bearer(authorization: string | undefined): string | null {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1] ?? null
  return token === null || token.length > TOKEN_MAX ? null : token
}
