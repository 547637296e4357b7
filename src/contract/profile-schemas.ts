// Shapes of profiles (session-interface.md §6).
import { z } from 'zod'

const TABLES_MAX = 10_000

export const ProfileOrder = z.strictObject({
  /** All exposed ones where it is left out. */
  tables: z
    .array(z.strictObject({ schema: z.string(), table: z.string() }))
    .min(1)
    .max(TABLES_MAX)
    .exactOptional(),
  /** BigQuery: rows may be sampled, within the team's bigqueryMaxBytes. */
  sample: z.boolean().exactOptional(),
})
