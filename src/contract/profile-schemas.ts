// Wire schemas of profiles (docs/session.md#operations).
import { z } from 'zod'
import { listOf } from './long-lists.ts'

const TABLES_MAX = 10_000

export const ProfileOrder = z.strictObject({
  /** If absent, all exposed tables. */
  tables: listOf(z.strictObject({ schema: z.string(), table: z.string() }), TABLES_MAX, 1).exactOptional(),
  /** BigQuery: rows may be sampled, within the team's bigqueryMaxBytes. */
  sample: z.boolean().exactOptional(),
})
