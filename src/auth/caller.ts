// Authenticates a caller, a key or a session, from the Authorization header only. Missing, malformed, expired, revoked
// and foreign credentials all get the same refusal.
import type { Scope } from '../contract/route.ts'
import { AppError } from '../errors.ts'
import type { AccountId, ApiKeyId, DatasourceId, SessionId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { accessTokens } from './access-tokens.ts'
import { keyFinder } from './find-key.ts'
import { looksLikeKey } from './key-text.ts'

export type { Scope }

/** An API key: the reach of its account, restricted. */
export interface KeyCaller {
  readonly kind: 'key'
  readonly accountId: AccountId
  /** The account's name, for the audit. */
  readonly name: string
  readonly keyId: ApiKeyId
  readonly keyName: string
  readonly scopes: ReadonlySet<Scope>
  /** Null: every team of the account. */
  readonly teamIds: ReadonlySet<TeamId> | null
  /** Null: every datasource. */
  readonly datasourceIds: ReadonlySet<DatasourceId> | null
  /** Teams that a manager ended this key for, or that the account left. */
  readonly endedTeamIds: ReadonlySet<TeamId>
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

export type Caller = KeyCaller | SessionCaller

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
}

/** One call of an operation. */
export interface Call extends Omit<Arrival, 'knownAt'> {
  /** The operation id. */
  readonly action: string
}

export interface Authenticator {
  /** Re-authenticates an earlier caller. Throws UNAUTHENTICATED if the key or session has ended. */
  again(caller: Caller): Promise<Caller>
  /** Takes the Authorization header. Throws the same UNAUTHENTICATED for every failure. */
  authenticate(authorization: string | undefined): Promise<Caller>
}

export function authenticator(deps: { readonly store: Store; readonly now?: () => number }): Authenticator {
  const now = deps.now ?? Date.now
  const tokens = accessTokens({ store: deps.store, now })
  const keys = keyFinder({ store: deps.store, now })
  return {
    async again(caller) {
      const now = caller.kind === 'key' ? await keys.again(caller.keyId) : await tokens.again(caller)
      if (now === null) throw unauthenticated()
      return now
    },
    async authenticate(authorization) {
      const token = bearer(authorization)
      if (token === null) throw unauthenticated()
      const caller = looksLikeKey(token) ? await keys.find(token) : await tokens.verify(token)
      if (caller === null) throw unauthenticated()
      return caller
    },
  }
}

/** A session has every scope, a key only its own. */
export function holds(caller: Caller, scope: Scope): boolean {
  return caller.kind === 'session' || caller.scopes.has(scope)
}

/** Returns false if the key is restricted to other teams or ended for this team. Does not check membership. */
export function mayEnter(caller: Caller, teamId: TeamId): boolean {
  if (caller.kind === 'session') return true
  return (caller.teamIds === null || caller.teamIds.has(teamId)) && !caller.endedTeamIds.has(teamId)
}

/** The only authentication error. */
export function unauthenticated(): AppError {
  return new AppError('UNAUTHENTICATED', 'A valid API key or access token is needed: Authorization: Bearer <token>.')
}

/** No valid token is this long. Longer tokens are not even hashed. */
const TOKEN_MAX = 4096

function bearer(authorization: string | undefined): string | null {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1] ?? null
  return token === null || token.length > TOKEN_MAX ? null : token
}
