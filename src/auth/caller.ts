// The types of a caller and of one call. A caller is an API key, a signed-in person, or an agent with a grant.
import type { Scope } from '../contract/route-type.ts'
import type { AccountId, ApiKeyId, DatasourceId, GrantId, SessionId, TeamId } from '../ids.ts'

export type { Scope }

/** The limits of a key or a grant. It never reaches more than its account. */
export interface Restricted {
  readonly accountId: AccountId
  /** For the audit. */
  readonly name: string
  readonly scopes: ReadonlySet<Scope>
  /** Null means all teams of the account. */
  readonly teamIds: ReadonlySet<TeamId> | null
  /** Null means all datasources. */
  readonly datasourceIds: ReadonlySet<DatasourceId> | null
  /** Teams in which the key or grant does not work, because the account left the team or a manager ended it there. */
  readonly endedTeamIds: ReadonlySet<TeamId>
  /** ISO 8601. Null means that the key or grant does not expire. */
  readonly expiresAt: string | null
}

export interface KeyCaller extends Restricted {
  readonly kind: 'key'
  readonly keyId: ApiKeyId
  readonly keyName: string
}

export interface GrantCaller extends Restricted {
  readonly kind: 'grant'
  readonly grantId: GrantId
  readonly clientId: string
  readonly clientName: string
}

export interface SessionCaller {
  readonly kind: 'session'
  readonly accountId: AccountId
  readonly name: string
  readonly sessionId: SessionId
  /** ISO 8601. */
  readonly signedInAt: string
}

export type Caller = KeyCaller | SessionCaller | GrantCaller

type Door = 'REST' | 'CONNECTOR'

/** The times of a query's steps, by performance.now(), or 0 if the query did not reach the step. */
export interface Trace {
  query: {
    readonly kind: string
    readonly began: number
    readonly guardedAt: number
    readonly leasedAt: number
    readonly ranAt: number
    readonly endedAt: number
  } | null
}

export interface Arrival {
  readonly caller: Caller
  /** By performance.now(). */
  readonly knownAt: number
  readonly via: Door
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  readonly requestId?: string | undefined
  readonly trace?: Trace | undefined
  /** The client's own name, for the audit and security mails. */
  readonly client?: string | undefined
  /** The client's network address, for security mails and concurrency limits. */
  readonly address?: string | undefined
  /** The maximum bytes of rows that the client accepts. */
  readonly rowBytesMax?: number | undefined
}

export interface Call extends Omit<Arrival, 'knownAt'> {
  readonly action: string
}

/** A session has every scope. */
export function holds(caller: Caller, scope: Scope): boolean {
  return caller.kind === 'session' || caller.scopes.has(scope)
}

/** Checks the restrictions of the key or grant. Does not check whether the account is a member. */
export function mayEnter(caller: Caller, teamId: TeamId): boolean {
  if (caller.kind === 'session') return true
  return (caller.teamIds === null || caller.teamIds.has(teamId)) && !caller.endedTeamIds.has(teamId)
}
