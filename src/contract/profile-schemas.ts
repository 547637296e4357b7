import { z } from 'zod'
import { listOf } from './long-lists.ts'

const TABLES_MAX = 10_000

export const ProfileOrder = z.strictObject({
  /** Default: all exposed tables. */
  tables: listOf(z.strictObject({ schema: z.string(), table: z.string() }), TABLES_MAX, 1).exactOptional(),
  /** Only for BigQuery: whether the job may read rows, which costs money, up to bigqueryMaxBytes of the team. */
  sample: z.boolean().exactOptional(),
})
