// The JSON of a datasource's whole catalog, for managers who choose what to expose.
import { z } from 'zod'
import { at, count } from './schemas.ts'

const Reference = z.object({ schema: z.string(), table: z.string(), column: z.string() })

const ChoiceColumn = z.object({
  name: z.string(),
  type: z.string(),
  nullable: z.boolean(),
  primaryKey: z.boolean(),
  /** Set even if the referenced column is not exposed. */
  references: Reference.optional(),
  comment: z.string().optional(),
  /** The column that contains this path of a document. If that column is exposed, this one is too. */
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
  /** For example table, view, foreign table or collection. */
  kind: z.string(),
  estimatedRows: count.nullable(),
  comment: z.string().optional(),
  /** Full sentences that help to decide about the table. */
  warnings: z.array(z.string()),
  exposed: z.boolean(),
  refusals7d: count,
  lastReadAt: at.optional(),
  columns: z.array(ChoiceColumn),
})

export const Catalog = z.object({
  schemaCapturedAt: at,
  exposureVersion: count,
  /**
   * Since when the audit was evaluated for refusals and for reads. `complete` is false while the audit is still being
   * read.
   */
  evidence: z.object({ refusalsSince: at.nullable(), readsSince: at.nullable(), complete: z.boolean() }),
  tables: z.array(ChoiceTable),
})
