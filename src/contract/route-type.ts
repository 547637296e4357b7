// The router and openapi.json are made from the routes in key-routes.ts and signed-in-routes.ts.
import type { ZodType } from 'zod'
import type { z } from 'zod'
import type { Code } from '../errors.ts'
import type { Scope as ScopeSchema } from './schemas.ts'

export type Scope = z.infer<typeof ScopeSchema>

/**
 * The maximum number of JSON values in a body. Each costs up to 3 µs of the event loop, even if the schema refuses it.
 * `exposure` is enough for 40,000 columns in 2,000 tables, which are 48,000 values.
 */
export const VALUES = { few: 3_000, many: 30_000, exposure: 60_000 } as const

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly summary: string
  /** The scope that an API key needs. If absent, the route needs a session. */
  readonly scope?: Scope
  /**
   * The service checks that this object exists and that the caller has access (404), then the role (403), before it
   * reads the query string and the body.
   */
  readonly place?: 'team' | 'datasource'
  readonly role?: 'ADMIN' | 'OWNER'
  readonly invited?: true
  /** A member may call the route without the second factor that the team requires. */
  readonly withoutSecondFactor?: true
  /** Callers outside the team get this code instead of NOT_FOUND. */
  readonly stranger?: 'TEAM_FORBIDDEN'
  /** Query parameters. If absent, none is allowed. */
  readonly query?: ZodType
  readonly body?: ZodType
  /** A missing body counts as {}. */
  readonly bodyOptional?: true
  /** Keys in the body are database names, such as `__proto__`. The schema must read them with byName(). */
  readonly namesAsKeys?: true
  /** The handler checks access and reads the body itself. `body` is only documentation. */
  readonly rawBody?: true
  /** In bytes. Default: 1 MiB. */
  readonly bodyLimit?: number
  /** Default: VALUES.few. */
  readonly valuesMax?: number
  /** Null if the answer has no body. */
  readonly answer: ZodType | null
  /** Default: 200. */
  readonly status?: 200 | 201 | 202 | 204
  /** If the work takes long, the answer has a jobId and the status 202. */
  readonly startsJob?: true
  /** The handler returns JSON text and headers. `answer` documents the JSON for openapi.json and tests. */
  readonly prebuilt?: true
  /** The handler streams a file of one of these media types. `answer` describes one row of the file. */
  readonly streams?: readonly string[]
  readonly errors: readonly Code[]
}
