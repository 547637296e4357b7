// What a handler gets and must give, typed by the route tables: a handler that is missing, or answers another shape
// than its route declares, does not compile. A handler reads what it got, calls one room and returns.
import type { z } from 'zod'
import type { Call } from '../auth/caller.ts'
import type { Route } from '../contract/route.ts'
import type { ROUTES } from '../contract/routes.ts'
import type { SESSION_ROUTES } from '../contract/session-routes.ts'
import type { Reached } from '../datasources/reach.ts'
import type { AccountId, ApiKeyId, AuditId, DatasourceId, InvitationId, JobId, TeamId } from '../ids.ts'
import type { Membership } from '../teams/belong.ts'

type Routes = typeof ROUTES & typeof SESSION_ROUTES
/** The operation ids. */
export type RouteName = keyof Routes

/** What a name in a path stands for. */
interface ParamTypes {
  readonly teamId: TeamId
  /** Of a datasource. */
  readonly id: DatasourceId
  readonly keyId: ApiKeyId
  readonly accountId: AccountId
  readonly invitationId: InvitationId
  readonly jobId: JobId
  readonly auditId: AuditId
  readonly inviteToken: string
  /** Of a table in a datasource, as the database calls it. */
  readonly schema: string
  readonly table: string
}
type ParamName<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamName<Rest> : never
type Params<Path> = { readonly [N in ParamName<Path>]: N extends keyof ParamTypes ? ParamTypes[N] : never }

type Output<S> = S extends z.ZodType ? z.output<S> : Record<string, never>
type Body<R extends Route> = R extends { rawBody: true } ? unknown : R extends { body: infer S } ? Output<S> : undefined
/** Found and permitted before the handler is called; a route with a raw body leaves that to its room. */
type Placed<R extends Route> = R extends { rawBody: true }
  ? unknown
  : R extends { place: 'datasource' }
    ? { readonly membership: Membership; readonly reached: Reached }
    : R extends { place: 'team' }
      ? { readonly membership: Membership }
      : unknown

/** One request on its way to a room: `createKey` gets an `At<'createKey'>`. */
type At<N extends RouteName> = AtRoute<Routes[N]>
type AtRoute<R extends Route> = Placed<R> & {
  readonly call: Call
  readonly params: Params<R['path']>
  readonly query: R extends { query: infer S } ? Output<S> : Record<string, never>
  readonly body: Body<R>
  readonly ifNoneMatch: string | undefined
}

/** Rooms give readonly things. */
type Frozen<T> = T extends readonly (infer U)[]
  ? readonly Frozen<U>[]
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, Frozen<V>>
    : T extends object
      ? { readonly [K in keyof T]: Frozen<T[K]> }
      : T

/** JSON already written. With an `etag` that the caller holds, the answer is 304 without a body. */
export interface Prebuilt {
  readonly json: string | Buffer
  readonly etag?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A file, written while it is read. */
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
type Answer<N extends RouteName> = AnswerOf<Routes[N]>

/** What is asked before query and body are read, of the operations that need it; throws what refuses the request. */
export type Preconditions = {
  readonly [N in RouteName]?: (at: Omit<At<N>, 'query' | 'body'>) => Promise<void>
}

/** One handler an operation id. */
export type Handlers = { readonly [N in RouteName]: (at: At<N>) => Promise<Answer<N>> }
