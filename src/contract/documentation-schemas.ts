// The JSON of a datasource's documentation, which only managers read and write.
import { z } from 'zod'
import { listOf } from './long-lists.ts'
import { byName, toNames } from './name-keyed-objects.ts'
import { at, count, identifier, text } from './schemas.ts'

const Origin = z.enum(['GENERATED', 'HUMAN'])
const Status = z.enum(['PROPOSED', 'ACCEPTED', 'CONFIRMED', 'REJECTED'])
const COLUMNS_MAX = 5_000

const Text = z.object({
  text: z.string(),
  origin: Origin,
  status: Status,
  restsOn: z.array(z.string()),
  /** True if a column that the text depends on was removed or changed its type since the text was written. */
  stale: z.boolean(),
})
const ColumnText = Text.partial().extend({
  /** A person's mark: true if the values are personal, false if not, null if the rules decide. */
  personal: z.boolean().nullable(),
})
const TableDocumentation = z.object({
  schema: z.string(),
  table: z.string(),
  summary: Text.nullable(),
  examples: Text.nullable(),
  statements: z.array(Text),
  columns: toNames(ColumnText),
  gone: z.literal(true).optional(),
})
export const Documentation = z.object({
  tables: z.array(TableDocumentation),
  version: count,
  publishedAt: at.nullable(),
})

/** Default of `status`: ACCEPTED. */
const optionalFields = {
  /** Ignored, because the service knows it. */
  origin: Origin.exactOptional(),
  status: Status.exactOptional(),
  restsOn: listOf(identifier, 100).exactOptional(),
  /** Ignored, but accepted, so that a client can send an answer back. */
  stale: z.boolean().exactOptional(),
}
const submittedText = (max: number) => z.strictObject({ text: text(max).min(1), ...optionalFields })
const SubmittedColumn = z.strictObject({
  text: text(500).min(1).exactOptional(),
  ...optionalFields,
  personal: z.boolean().nullable().exactOptional(),
})
export const DocumentationPut = z.strictObject({
  summary: submittedText(2_000).nullable().exactOptional(),
  examples: submittedText(4_000).nullable().exactOptional(),
  statements: listOf(submittedText(500), 50).exactOptional(),
  columns: byName(SubmittedColumn, { name: identifier, most: COLUMNS_MAX }).exactOptional(),
  /** The version that the client has read. If absent, the save overwrites changes by other people. */
  version: z.int().min(0).exactOptional(),
})
export const DocumentationSaved = TableDocumentation.extend({
  version: count,
  warnings: z.array(z.string()).optional(),
})

const Chosen = listOf(z.strictObject({ schema: identifier, table: identifier }), 10_000, 1)
export const GenerateOrder = z.strictObject({
  /** Default: every exposed table. */
  tables: Chosen.exactOptional(),
  /** Whether to use the operator's language model. Default: true if there is one. */
  model: z.boolean().exactOptional(),
})
export const PublishOrder = z.strictObject({ version: z.int().min(0).exactOptional() })
/** `publishedAt` is null before the first publication. `nothing` is set if there was nothing new to publish. */
export const Published = z.object({ publishedAt: at.nullable(), version: count, nothing: z.literal(true).optional() })

const Kind = z.enum(['summary', 'examples', 'statements', 'columns'])
export const AcceptOrder = z.strictObject({
  /** Default: every documented table. */
  tables: Chosen.exactOptional(),
  kinds: listOf(Kind, 4, 1).exactOptional(),
  version: z.int().min(0).exactOptional(),
})
export const Accepted = z.object({
  accepted: z.object({ summary: count, examples: count, statements: count, columns: count }),
  stale: count.meta({
    description: 'The number of texts that stay PROPOSED, because a column that they depend on has changed.',
  }),
  version: count,
})
/** The fields count texts. `added`, `changed` and `removed` compare a publication with the previous one. */
export const Publications = z.object({
  items: z.array(
    z.object({
      version: count,
      publishedAt: at,
      author: z.object({ accountId: z.string(), name: z.string().nullable() }),
      tables: count,
      texts: count,
      added: count,
      changed: count,
      removed: count,
    }),
  ),
  nextCursor: z.string().nullable(),
})
