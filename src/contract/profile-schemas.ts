import { z } from 'zod'
import { listOf } from './long-lists.ts'

const TABLES_MAX = 10_000

export const ProfileOrder = z.strictObject({
  /** If absent, all exposed tables. */
  tables: listOf(z.strictObject({ schema: z.string(), table: z.string() }), TABLES_MAX, 1).exactOptional(),
  /** Only for BigQuery: the job may read rows, which costs money. bigqueryMaxBytes of the team is the limit. */
  sample: z.boolean().exactOptional(),
})
