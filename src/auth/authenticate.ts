// Finds out who is calling, from the header Authorization only. Every refusal is the same, whether the credential is
// missing, malformed, expired, revoked or unknown.
import { BoundedMap } from '../bounded-map.ts'
import { AppError } from '../errors.ts'
import type { Store } from '../store/open.ts'
import { accessTokens } from './session-tokens.ts'
import type { Caller, GrantCaller, KeyCaller } from './caller.ts'
import { connectorTokens } from './oauth-access-tokens.ts'
import { keyFinder } from './find-caller-by-key.ts'
import { looksLikeKey } from './key-format.ts'

const HEADERS_MAX = 1_000
/** Every valid token is shorter. */
const TOKEN_MAX = 4096

export interface Authenticator {
  again(caller: Caller): Promise<Caller>
  /** Accepts an API key, or the token of a session. Throws UNAUTHENTICATED. */
  authenticate(authorization: string | undefined, userAgent?: string): Promise<Caller>
  /**
   * Returns the caller of a cached API key without waiting. Null if the key is not cached. Then call authenticate().
   */
  known(authorization: string, userAgent?: string): KeyCaller | null
  /** Accepts an API key or an OAuth token. Throws UNAUTHENTICATED. */
  authenticateConnector(authorization: string | undefined, userAgent?: string): Promise<KeyCaller | GrantCaller>
}

export function authenticator(deps: {
  readonly store: Store
  /** The public origin is the issuer of OAuth tokens. */
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
  /** Saves hashing a known header. An entry grants no access, because keys.known() checks the key. */
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

export function unauthenticated(): AppError {
  return new AppError('UNAUTHENTICATED', 'A valid API key or access token is needed: Authorization: Bearer <token>.')
}

function bearer(authorization: string | undefined): string | null {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1] ?? null
  return token === null || token.length > TOKEN_MAX ? null : token
}
