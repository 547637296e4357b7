// What a route of the REST door declares. The tables of routes.ts and session-routes.ts hold one entry an operation;
// the door, the access matrix and openapi.json are all driven by them.
import type { ZodType } from 'zod'
import type { z } from 'zod'
import type { Code } from '../errors.ts'
import type { Scope as ScopeSchema } from './schemas.ts'

export type Scope = z.infer<typeof ScopeSchema>

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** '/teams/{teamId}/datasources/{id}/schema' */
  readonly path: string
  readonly summary: string
  /** The scope an API key needs. Absent: session-only, an API key is refused whatever it holds. */
  readonly scope?: Scope
  /** What the path names: found and reached (404), and the role checked (403), before query and body are read. */
  readonly place?: 'team' | 'datasource'
  readonly role?: 'ADMIN' | 'OWNER'
  /** An INVITED member may call it. */
  readonly invited?: true
  /** A member without the second factor that the team requires may call it. */
  readonly withoutSecondFactor?: true
  /** What a stranger to the team is told instead of the 404. */
  readonly stranger?: 'TEAM_FORBIDDEN'
  /** Parameters after the question mark; absent: none, and any is refused. */
  readonly query?: ZodType
  readonly body?: ZodType
  /** No body at all stands for {}. */
  readonly bodyOptional?: true
  /** Keys of the body are names that a database gave, `__proto__` too; its shape reads them by byName. */
  readonly namesAsKeys?: true
  /** The room reaches the datasource and reads the body itself; `body` only documents it. */
  readonly rawBody?: true
  /** Bytes; 1 MiB where absent. */
  readonly bodyLimit?: number
  /** null: no body in the answer. */
  readonly answer: ZodType | null
  /** 200 where absent. */
  readonly status?: 200 | 201 | 202 | 204
  /** An answer that holds a jobId is 202: the work goes on. */
  readonly startsJob?: true
  /** The handler gives JSON already written, and headers; `answer` documents it and the contract tests hold it. */
  readonly prebuilt?: true
  /** The handler gives a file that is written while it is read, of one of these media types; `answer` is one row of it. */
  readonly streams?: readonly string[]
  /** Codes beyond those that follow from the entries above. */
  readonly errors: readonly Code[]
}
