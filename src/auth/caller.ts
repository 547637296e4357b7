// Who is calling: a key or a session, from the Authorization header and nothing else. What is missing, malformed,
// expired, revoked or of another kind is one and the same refusal.
import type { Scope } from '../contract/route.ts'
import { AppError } from '../errors.ts'
import type { AccountId, ApiKeyId, DatasourceId, SessionId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { accessTokens } from './access-tokens.ts'
import { keyFinder } from './find-key.ts'
import { looksLikeKey } from './key-text.ts'

export type { Scope }

/** An API key: what its account reaches, narrowed. */
export interface KeyCaller {
  readonly kind: 'key'
  readonly accountId: AccountId
  /** Of the account, for the audit. */
  readonly name: string
  readonly keyId: ApiKeyId
  readonly keyName: string
  readonly scopes: ReadonlySet<Scope>
  /** null: every team of the account. */
  readonly teamIds: ReadonlySet<TeamId> | null
  /** null: every datasource. */
  readonly datasourceIds: ReadonlySet<DatasourceId> | null
  /** Teams that their managers ended this key for, or that its account left. */
  readonly endedTeamIds: ReadonlySet<TeamId>
}

/** A signed-in person, by the access token of a session. */
export interface SessionCaller {
  readonly kind: 'session'
  readonly accountId: AccountId
  /** Of the account, for the audit. */
  readonly name: string
  readonly sessionId: SessionId
  /** ISO 8601; when the password was last given. */
  readonly signedInAt: string
}

export type Caller = KeyCaller | SessionCaller

/** The doors of the service. */
type Door = 'REST' | 'CONNECTOR'

/** What a door knows about one call. */
export interface Arrival {
  readonly caller: Caller
  /** When the door authenticated the caller, by performance.now(). */
  readonly knownAt: number
  readonly via: Door
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal
  /** The calling program, `name/version` as it describes itself (client.ts); for the audit only. */
  readonly client?: string | undefined
  /** The caller's network address, where the door knows it; for security mails only. */
  readonly address?: string | undefined
}

/** One call of an operation on its way through the rooms. */
export interface Call extends Omit<Arrival, 'knownAt'> {
  /** The operation id. */
  readonly action: string
}

export interface Authenticator {
  /** A caller of before as of now. Throws UNAUTHENTICATED where the key or session has ended since. */
  again(caller: Caller): Promise<Caller>
  /** Takes the Authorization header. Throws AppError UNAUTHENTICATED, always the same. */
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

/** A session holds every scope; a key those it was given. */
export function holds(caller: Caller, scope: Scope): boolean {
  return caller.kind === 'session' || caller.scopes.has(scope)
}

/** False where a key is narrowed away from the team, or ended for it; says nothing of membership. */
export function mayEnter(caller: Caller, teamId: TeamId): boolean {
  if (caller.kind === 'session') return true
  return (caller.teamIds === null || caller.teamIds.has(teamId)) && !caller.endedTeamIds.has(teamId)
}

/** The one refusal of whoever is not known. */
export function unauthenticated(): AppError {
  return new AppError('UNAUTHENTICATED', 'A valid API key or access token is needed: Authorization: Bearer <token>.')
}

/** The longest token there is has far fewer letters; what is longer is not even hashed. */
const TOKEN_MAX = 4096

function bearer(authorization: string | undefined): string | null {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1] ?? null
  return token === null || token.length > TOKEN_MAX ? null : token
}
