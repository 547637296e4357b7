// Derives types from the routes of the contract, so the compiler reports a missing operation or a wrong answer.
import type { z } from 'zod'
import type { Call } from '../auth/caller.ts'
import type { Route } from '../contract/route-type.ts'
import type { ROUTES } from '../contract/key-routes.ts'
import type { SESSION_ROUTES } from '../contract/signed-in-routes.ts'
import type { Reached } from '../datasources/require-reach.ts'
import type {
  AccountId,
  ApiKeyId,
  AuditId,
  DatasourceId,
  ExposureRequestId,
  GrantId,
  InvitationId,
  JobId,
  TeamId,
  WebhookId,
} from '../ids.ts'
import type { Membership } from '../teams/require-membership.ts'

type Routes = typeof ROUTES & typeof SESSION_ROUTES
export type OperationId = keyof Routes

/** The unchecked input: strings from the path, the parsed query string and the parsed body. */
export interface Input {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: unknown
  readonly body?: unknown
}

interface ParamTypes {
  readonly teamId: TeamId
  readonly id: DatasourceId
  readonly keyId: ApiKeyId
  readonly grantId: GrantId
  readonly accountId: AccountId
  readonly invitationId: InvitationId
  readonly jobId: JobId
  readonly auditId: AuditId
  readonly requestId: ExposureRequestId
  readonly webhookId: WebhookId
  readonly inviteToken: string
  /** As in the database. */
  readonly schema: string
  readonly table: string
  readonly version: string
}
type ParamName<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamName<Rest> : never
type Params<Path> = { readonly [N in ParamName<Path>]: N extends keyof ParamTypes ? ParamTypes[N] : never }

type Output<S> = S extends z.ZodType ? z.output<S> : Record<string, never>
type Body<R extends Route> = R extends { rawBody: true } ? unknown : R extends { body: infer S } ? Output<S> : undefined
/** The object that the path names, after the caller's access to it was checked. */
type Placed<R extends Route> = R extends { place: 'datasource' }
  ? { readonly membership: Membership; readonly reached: Reached }
  : R extends { place: 'team' }
    ? { readonly membership: Membership }
    : unknown

/** The input of one call after all checks, for example `At<'createKey'>`. */
type At<N extends OperationId> = AtRoute<Routes[N]>
type AtRoute<R extends Route> = Placed<R> & {
  readonly call: Call
  readonly params: Params<R['path']>
  readonly query: R extends { query: infer S } ? Output<S> : Record<string, never>
  readonly body: Body<R>
}

/** Makes properties readonly at every depth, because operations return readonly values. */
type Frozen<T> = T extends readonly (infer U)[]
  ? readonly Frozen<U>[]
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, Frozen<V>>
    : T extends object
      ? { readonly [K in keyof T]: Frozen<T[K]> }
      : T

/**
 * A long JSON text in parts, in borrowed memory. The sender calls release() when neither code nor a socket needs a part
 * any longer. Otherwise the memory is garbage-collected later.
 */
export interface LentJson {
  readonly parts: readonly (string | Buffer)[]
  readonly byteLength: number
  release(): void
  toString(): string
}

/** An answer that is already JSON text. A caller that already has the version `etag` may get "304 Not Modified". */
export interface Prebuilt {
  readonly json: string | Buffer | LentJson
  readonly etag?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The byte offset of each table in `json`, so that the connector can read single tables of a description. */
  readonly starts?: readonly number[]
  /** How many rows the answer has, and which limit was reached. Only if the answer lacks rows of its query. */
  readonly cut?: { readonly rowCount: number; readonly by: 'rows' | 'bytes' }
}

/** A file that is sent while it is being written. */
export interface Streamed {
  readonly contentType: string
  readonly filename: string
  readonly parts: AsyncIterable<string>
}

type AnswerOf<R extends Route> = R extends { prebuilt: true }
  ? Prebuilt
  : R extends { streams: readonly string[] }
    ? Streamed
    : R extends { answer: infer S extends z.ZodType }
      ? Frozen<z.input<S>>
      : void
export type Answer<N extends OperationId> = AnswerOf<Routes[N]>

type Run<N extends OperationId> = (at: At<N>) => Promise<Answer<N>>

/**
 * `require` runs after the checks of access and role, and before the query string and the body are validated. It throws
 * 404 if another object in the path does not exist, and 409 if the datasource is not in a suitable state.
 */
type Definition<N extends OperationId> =
  Run<N> | { require(at: Omit<At<N>, 'query' | 'body'>): Promise<void>; readonly run: Run<N> }

export type Definitions = { readonly [N in OperationId]: Definition<N> }
