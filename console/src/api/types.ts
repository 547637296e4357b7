// The types of the API, derived from the contract. Only types are imported, so the bundle contains no contract code.
import type { z } from 'zod'
import type { OPEN_ROUTES } from '../../../src/contract/routes-without-token.ts'
import type { ROUTES } from '../../../src/contract/key-routes.ts'
import type { Route } from '../../../src/contract/route-type.ts'
import type { SESSION_ROUTES } from '../../../src/contract/signed-in-routes.ts'
import type { ProviderFailure, SIGN_IN_ROUTES } from '../../../src/contract/sign-in-routes.ts'

type Table = typeof ROUTES & typeof SESSION_ROUTES

export type OperationName = keyof Table
export type ReadName = { [N in OperationName]: Table[N]['method'] extends 'GET' ? N : never }[OperationName]

/** The type of an answer after JSON parsing: a Map of names becomes an object. */
type Wire<T> =
  T extends ReadonlyMap<string, infer V>
    ? { readonly [name: string]: Wire<V> }
    : T extends readonly (infer E)[]
      ? readonly Wire<E>[]
      : T extends object
        ? { readonly [K in keyof T]: Wire<T[K]> }
        : T

type AnswerOf<R extends Route> = R['answer'] extends z.ZodType ? Wire<z.output<R['answer']>> : null
type ParamNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamNames<Rest> : never
type ParamsOf<P extends string> = [ParamNames<P>] extends [never]
  ? { readonly params?: never }
  : { readonly params: { readonly [Name in ParamNames<P>]: string } }
type BodyOf<R> = R extends { readonly body: infer B extends z.ZodType }
  ? R extends { readonly bodyOptional: true }
    ? { readonly body?: Wire<z.input<B>> }
    : { readonly body: Wire<z.input<B>> }
  : { readonly body?: never }
type QueryOf<R> = R extends { readonly query: infer Q extends z.ZodType }
  ? { readonly query?: Readonly<Partial<Record<keyof z.input<Q>, string | number | undefined>>> }
  : { readonly query?: never }

export type Answer<N extends OperationName> = AnswerOf<Table[N]>
export type Input<N extends OperationName> = ParamsOf<Table[N]['path']> & BodyOf<Table[N]> & QueryOf<Table[N]>

/** The method and path of a route under /auth, like `POST /auth/sign-in/email`. */
export type AuthName = keyof typeof SIGN_IN_ROUTES
type AuthTable = typeof SIGN_IN_ROUTES
export type AuthBody<N extends AuthName> = AuthTable[N] extends { readonly body: infer B extends z.ZodType }
  ? z.input<B>
  : undefined
export type AuthAnswer<N extends AuthName> = AuthTable[N]['answer'] extends z.ZodType
  ? Wire<z.output<AuthTable[N]['answer']>>
  : string

export type { ProviderFailure }

export type Account = Answer<'getAccount'>
export type Team = Answer<'listTeams'>[number]
export type TeamDetail = Answer<'getTeam'>
export type Role = Team['role']
export type Member = Answer<'listMembers'>[number]
export type Datasource = Answer<'listDatasources'>[number]
export type ApiKey = Answer<'listKeys'>[number]
export type Scope = ApiKey['scopes'][number]
export type Usage = Answer<'getUsage'>
export type AuditItem = Answer<'getAuditItem'>
/** An invitation as the holder of its link sees it. */
export type Invitation = Wire<z.output<(typeof OPEN_ROUTES)['getInvitation']['answer']>>
