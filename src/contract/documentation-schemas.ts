// What is said of a datasource's tables, as its managers read and write it: shapes alone.
import { z } from 'zod'
import { listOf } from './list-of.ts'
import { byName, toNames } from './by-name.ts'
import { at, count, text } from './schemas.ts'

const Origin = z.enum(['GENERATED', 'HUMAN'])
const Status = z.enum(['PROPOSED', 'ACCEPTED', 'CONFIRMED', 'REJECTED'])
const identifier = text(1024).min(1)

const Said = z.object({
  text: z.string(),
  origin: Origin,
  status: Status,
  restsOn: z.array(z.string()),
  /** A column it rests on has gone, or is of another type than when it was written. */
  stale: z.boolean(),
})
const SaidOfColumn = Said.partial().extend({
  /** Set by hand: the column's values are a person's, or are not; null: the rules decide. */
  personal: z.boolean().nullable(),
})
const TableDocumentation = z.object({
  schema: z.string(),
  table: z.string(),
  summary: Said.nullable(),
  examples: Said.nullable(),
  statements: z.array(Said),
  columns: toNames(SaidOfColumn),
  /** The database has no such table any more. */
  gone: z.literal(true).optional(),
})
export const Documentation = z.object({
  tables: z.array(TableDocumentation),
  version: count,
  publishedAt: at.nullable(),
})

/** Beside a text that is sent: HUMAN, ACCEPTED and resting on nothing where that is left out. */
const beside = {
  origin: Origin.exactOptional(),
  status: Status.exactOptional(),
  restsOn: listOf(identifier, 100).exactOptional(),
  /** As it was read; it is reckoned anew. */
  stale: z.boolean().exactOptional(),
}
const asked = (max: number) => z.strictObject({ text: text(max).min(1), ...beside })
const AskedColumn = z.strictObject({
  text: text(500).min(1).exactOptional(),
  ...beside,
  personal: z.boolean().nullable().exactOptional(),
})
export const DocumentationPut = z.strictObject({
  summary: asked(2_000).nullable().exactOptional(),
  examples: asked(4_000).nullable().exactOptional(),
  statements: listOf(asked(500), 50).exactOptional(),
  columns: byName(AskedColumn, identifier).exactOptional(),
  /** The version it was read at; left out: the last writer wins. */
  version: z.int().min(0).exactOptional(),
})
export const DocumentationSaved = TableDocumentation.extend({
  version: count,
  /** What whoever saved it should know, whole sentences. */
  warnings: z.array(z.string()).optional(),
})

const Chosen = listOf(z.strictObject({ schema: identifier, table: identifier }), 10_000, 1)
export const GenerateOrder = z.strictObject({
  /** Left out: every exposed table. */
  tables: Chosen.exactOptional(),
  /** By the language model of the operator; left out: where there is one. */
  model: z.boolean().exactOptional(),
})
export const PublishOrder = z.strictObject({ version: z.int().min(0).exactOptional() })
export const Published = z.object({ publishedAt: at, version: count })
