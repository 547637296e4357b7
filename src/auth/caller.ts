// Authenticates a caller, a key, a session or an agent's grant, from the Authorization header only. Missing, malformed, expired, revoked
// and foreign credentials all get the same refusal.
import type { Scope } from '../contract/route.ts'
import { AppError } from '../errors.ts'
import type { AccountId, ApiKeyId, DatasourceId, GrantId, SessionId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { BoundedMap } from '../bounded-map.ts'
import { accessTokens } from './access-tokens.ts'
import { connectorTokens } from './connector-tokens.ts'
import { keyFinder } from './find-key.ts'
import { looksLikeKey } from './key-text.ts'

export type { Scope }

/** The reach of an account, restricted. */
interface Restricted {
  readonly accountId: AccountId
  /** The account's name, for the audit. */
  readonly name: string
  readonly scopes: ReadonlySet<Scope>
  /** Null: every team of the account. */
  readonly teamIds: ReadonlySet<TeamId> | null
  /** Null: every datasource. */
  readonly datasourceIds: ReadonlySet<DatasourceId> | null
  /** Teams that a manager ended this key or grant for, or that the account left. */
  readonly endedTeamIds: ReadonlySet<TeamId>
  /** ISO 8601. Null: the key does not expire. */
  readonly expiresAt: string | null
}

/** An API key. */
export interface KeyCaller extends Restricted {
  readonly kind: 'key'
  readonly keyId: ApiKeyId
  readonly keyName: string
}

/** An agent, with what a person allowed it on the consent page. */
export interface GrantCaller extends Restricted {
  readonly kind: 'grant'
  readonly grantId: GrantId
  /** The OAuth client. */
  readonly clientId: string
  /** The client's name for itself, when the grant was made. For the audit. */
  readonly clientName: string
}

/** A signed-in person, identified by a session's access token. */
export interface SessionCaller {
  readonly kind: 'session'
  readonly accountId: AccountId
  /** The account's name, for the audit. */
  readonly name: string
  readonly sessionId: SessionId
  /** ISO 8601. The time the password was last entered. */
  readonly signedInAt: string
}

export type Caller = KeyCaller | SessionCaller | GrantCaller

/** The interfaces of the service. */
type Door = 'REST' | 'CONNECTOR'

/** What an interface knows about a call. */
export interface Arrival {
  readonly caller: Caller
  /** When the caller was authenticated, by performance.now(). */
  readonly knownAt: number
  readonly via: Door
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  /** The client's name for itself, `name/version` (client.ts). For the audit only. */
  readonly client?: string | undefined
  /** The client's network address, if known. For security mails only. */
  readonly address?: string | undefined
  /** The most bytes of rows that the client takes. Absent: as many as the team allows. */
  readonly rowBytesMax?: number | undefined
}

/** One call of an operation. */
export interface Call extends Omit<Arrival, 'knownAt'> {
  /** The operation id. */
  readonly action: string
}

export interface Authenticator {
  /** Re-authenticates an earlier caller. Throws UNAUTHENTICATED if the key, session or grant has ended. */
  again(caller: Caller): Promise<Caller>
  /** For REST: an API key, or a session's token. Throws the same UNAUTHENTICATED for every failure. */
  authenticate(authorization: string | undefined, userAgent?: string): Promise<Caller>
  /**
   * The caller of an API key that authenticate() accepted before, without waiting. Null in doubt: authenticate() decides.
   */
  known(authorization: string, userAgent?: string): KeyCaller | null
  /** For the connector: an API key, or an OAuth token. Throws the same UNAUTHENTICATED for every failure. */
  authenticateConnector(authorization: string | undefined, userAgent?: string): Promise<KeyCaller | GrantCaller>
}

export function authenticator(deps: {
  readonly store: Store
  /** The public origin, which issues the tokens of grants. */
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
  /** Header to key, for keys that were found. They spare the hash of each request, and prove nothing: see keys.known(). */
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

/** A session has every scope, a key or grant only its own. */
export function holds(caller: Caller, scope: Scope): boolean {
  return caller.kind === 'session' || caller.scopes.has(scope)
}

/** Returns false if the key or grant is restricted to other teams or ended for this team. Does not check membership. */
export function mayEnter(caller: Caller, teamId: TeamId): boolean {
  if (caller.kind === 'session') return true
  return (caller.teamIds === null || caller.teamIds.has(teamId)) && !caller.endedTeamIds.has(teamId)
}

/** The only authentication error. */
export function unauthenticated(): AppError {
  return new AppError('UNAUTHENTICATED', 'A valid API key or access token is needed: Authorization: Bearer <token>.')
}

const HEADERS_MAX = 1_000
/** No valid token is this long. Longer tokens are not even hashed. */
const TOKEN_MAX = 4096

function bearer(authorization: string | undefined): string | null {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1] ?? null
  return token === null || token.length > TOKEN_MAX ? null : token
}
