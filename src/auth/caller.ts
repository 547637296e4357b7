// The types of a caller (an API key, a signed-in person, or an agent with a grant) and of one call.
import type { Scope } from '../contract/route-type.ts'
import type { AccountId, ApiKeyId, DatasourceId, GrantId, SessionId, TeamId } from '../ids.ts'

export type { Scope }

/** The access of an account, restricted to some of its teams and datasources. */
export interface Restricted {
  readonly accountId: AccountId
  /** The account's name, for the audit. */
  readonly name: string
  readonly scopes: ReadonlySet<Scope>
  /** Null means every team of the account. */
  readonly teamIds: ReadonlySet<TeamId> | null
  /** Null means every datasource. */
  readonly datasourceIds: ReadonlySet<DatasourceId> | null
  /** Teams that the account left, or from which a manager removed this key or grant. */
  readonly endedTeamIds: ReadonlySet<TeamId>
  /** ISO 8601. Null means that the key or grant does not expire. */
  readonly expiresAt: string | null
}

/** An API key. */
export interface KeyCaller extends Restricted {
  readonly kind: 'key'
  readonly keyId: ApiKeyId
  readonly keyName: string
}

/** An agent, with the access that a person allowed it on the consent page. */
export interface GrantCaller extends Restricted {
  readonly kind: 'grant'
  readonly grantId: GrantId
  /** The OAuth client. */
  readonly clientId: string
  /** The name that the client gave itself when the grant was made. For the audit. */
  readonly clientName: string
}

/** A signed-in person, identified by a session's access token. */
export interface SessionCaller {
  readonly kind: 'session'
  readonly accountId: AccountId
  /** The account's name, for the audit. */
  readonly name: string
  readonly sessionId: SessionId
  /** ISO 8601. The time of the sign-in that began the session. */
  readonly signedInAt: string
}

export type Caller = KeyCaller | SessionCaller | GrantCaller

/** The interfaces of the service. */
type Door = 'REST' | 'CONNECTOR'

/**
 * The times of a query's steps, for the spans of its request. Each is a time of performance.now(), or 0 if the query
 * did not reach the step.
 */
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

/** What an interface knows about a call. */
export interface Arrival {
  readonly caller: Caller
  /** When the caller was authenticated, by performance.now(). */
  readonly knownAt: number
  readonly via: Door
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  /** The `X-Request-Id` of the answer. */
  readonly requestId?: string | undefined
  /** Only if the request is traced. */
  readonly trace?: Trace | undefined
  /** The name that the client gives itself (client-name-and-address.ts). For the audit and security mails. */
  readonly client?: string | undefined
  /** The client's network address, if known. For security mails only. */
  readonly address?: string | undefined
  /** The maximum number of bytes of rows that the client accepts. If absent, the limit of the team applies. */
  readonly rowBytesMax?: number | undefined
}

/** One call of an operation. */
export interface Call extends Omit<Arrival, 'knownAt'> {
  /** The operation id. */
  readonly action: string
}

/** Returns true if the caller has the scope. A session has every scope. A key or grant has only its own scopes. */
export function holds(caller: Caller, scope: Scope): boolean {
  return caller.kind === 'session' || caller.scopes.has(scope)
}

/** Returns false if the key or grant is restricted to other teams or ended for this team. Does not check membership. */
export function mayEnter(caller: Caller, teamId: TeamId): boolean {
  if (caller.kind === 'session') return true
  return (caller.teamIds === null || caller.teamIds.has(teamId)) && !caller.endedTeamIds.has(teamId)
}
