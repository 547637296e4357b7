// Wire schemas of the whole catalog of a datasource, as managers see it to choose what to expose.
import { z } from 'zod'
import { at, count } from './schemas.ts'

const Reference = z.object({ schema: z.string(), table: z.string(), column: z.string() })

const ChoiceColumn = z.object({
  name: z.string(),
  type: z.string(),
  nullable: z.boolean(),
  primaryKey: z.boolean(),
  /** The referenced column, even if it is not exposed. */
  references: Reference.optional(),
  /** The database's comment. */
  comment: z.string().optional(),
  /** The column that contains this path of a document. If the containing column is exposed, so is this path. */
  partOf: z.string().optional(),
  unexposable: z.string().optional().meta({ description: 'Why the column cannot be exposed.' }),
  personal: z.object({ guess: z.boolean(), why: z.string().nullable() }).meta({
    description: 'A guess from a person’s mark, the profile, the name and the type. No rows are read for it.',
  }),
  exposed: z.boolean(),
  refusals7d: count.meta({ description: 'Queries of the last seven days that were refused because of this column.' }),
  lastReadAt: at
    .optional()
    .meta({ description: 'When an answered query last named the column or read all columns. Absent if unknown.' }),
})

const ChoiceTable = z.object({
  schema: z.string(),
  table: z.string(),
  /** table, view, materialized view, partitioned table, foreign table, collection … */
  kind: z.string(),
  estimatedRows: count.nullable(),
  comment: z.string().optional(),
  /** Facts that a person should know before exposing the table, as whole sentences. */
  warnings: z.array(z.string()),
  /** True if at least one column is exposed. */
  exposed: z.boolean(),
  refusals7d: count,
  lastReadAt: at.optional(),
  columns: z.array(ChoiceColumn),
})

export const Catalog = z.object({
  schemaCapturedAt: at,
  exposureVersion: count,
  /**
   * The part of the audit that refusals and reads were taken from. `complete` is false while the audit is still being
   * read.
   */
  evidence: z.object({ refusalsSince: at.nullable(), readsSince: at.nullable(), complete: z.boolean() }),
  tables: z.array(ChoiceTable),
})
