// The type of a REST route's declaration. The tables in key-routes.ts and signed-in-routes.ts have one entry per
// operation. The router and openapi.json are derived from these tables. The access matrix in the tests must have a row
// for each entry.
import type { ZodType } from 'zod'
import type { z } from 'zod'
import type { Code } from '../errors.ts'
import type { Scope as ScopeSchema } from './schemas.ts'

export type Scope = z.infer<typeof ScopeSchema>

/**
 * The maximum number of JSON values in a body. Each value costs up to 3 µs of the event loop, even if the schema
 * refuses the value. `many` is for lists of tables, texts and parameters. `exposure` fits 40,000 columns of 2,000
 * tables, which are 48,000 values.
 */
export const VALUES = { few: 3_000, many: 30_000, exposure: 60_000 } as const

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** For example '/teams/{teamId}/datasources/{id}/schema'. */
  readonly path: string
  readonly summary: string
  /**
   * The scope that an API key needs. If absent, the route needs a session and refuses every API key.
   */
  readonly scope?: Scope
  /** The resource in the path. Existence and access (404) and role (403) are checked before query and body are read. */
  readonly place?: 'team' | 'datasource'
  readonly role?: 'ADMIN' | 'OWNER'
  /** Set if an INVITED member may call the route. */
  readonly invited?: true
  /** Set if a member without the second factor that the team requires may call the route. */
  readonly withoutSecondFactor?: true
  /** The error code for callers outside the team, instead of the 404. */
  readonly stranger?: 'TEAM_FORBIDDEN'
  /** Query parameters. If absent, any parameter is refused. */
  readonly query?: ZodType
  readonly body?: ZodType
  /** Set if a missing body counts as {}. */
  readonly bodyOptional?: true
  /** Set if keys in the body are database names, which may be `__proto__`. The schema reads such keys with byName. */
  readonly namesAsKeys?: true
  /** Set if the handler checks access and reads the body itself. `body` is then for documentation only. */
  readonly rawBody?: true
  /** The maximum length of the body in bytes. Default: 1 MiB. */
  readonly bodyLimit?: number
  /** The maximum number of JSON values in a body. Default: VALUES.few. */
  readonly valuesMax?: number
  /** The schema of the answer. Null means that the answer has no body. */
  readonly answer: ZodType | null
  /** The status of the answer. Default: 200. */
  readonly status?: 200 | 201 | 202 | 204
  /** Set if the route starts a job only for long work. An answer with a jobId then has the status 202. */
  readonly startsJob?: true
  /**
   * Set if the handler returns serialized JSON and headers. `answer` documents the JSON, and contract tests check it.
   */
  readonly prebuilt?: true
  /** Set if the handler streams a file of one of these media types. `answer` is the schema of one row of the file. */
  readonly streams?: readonly string[]
  /** Error codes in addition to the codes that follow from the other fields. */
  readonly errors: readonly Code[]
}
