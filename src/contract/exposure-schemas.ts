// What is shown of a datasource, how the database has moved away from it, and what a change of it would do: shapes alone.
import { z } from 'zod'
import { listOf } from './list-of.ts'
import { at, count, text } from './schemas.ts'

const identifier = text(1024).min(1)
const AskedTables = listOf(
  z.strictObject({
    schema: identifier,
    table: identifier,
    /** null: the columns known now that may be exposed. */
    columns: listOf(identifier, 100_000).nullable(),
  }),
  100_000,
)
export const ExposurePut = z.strictObject({
  tables: AskedTables,
  /** The version it was read at; left out: the last writer wins. */
  version: z.int().min(0).exactOptional(),
})
const ShownTable = z.object({ schema: z.string(), table: z.string(), columns: z.array(z.string()) })
export const Exposure = z.object({
  tables: z.array(ShownTable),
  version: count,
  /** Saved names that introspection no longer knows. */
  gone: z.array(z.object({ schema: z.string(), table: z.string(), column: z.string().optional() })),
  /** Of a PUT only: what whoever saved it should know, whole sentences. */
  warnings: z.array(z.string()).optional(),
})
export const ExposureVersions = z.object({
  items: z.array(
    z.object({
      version: count,
      tables: z.array(ShownTable),
      author: z.object({ accountId: z.string(), name: z.string().nullable() }),
      createdAt: at,
    }),
  ),
  nextCursor: z.string().nullable(),
})

const Drifted = z.object({
  schema: z.string(),
  table: z.string(),
  /** Left out where it is the table as a whole. */
  column: z.string().optional(),
  type: z.string().optional(),
  was: z.string().optional(),
})
export const Drift = z.object({
  added: z.array(Drifted),
  removed: z.array(Drifted),
  retyped: z.array(Drifted),
  /** When what is compared with was introspected; null where there is nothing to compare with. */
  since: at.nullable(),
  /** When the database was last introspected. */
  schemaCapturedAt: at.nullable(),
})

export const PreviewOrder = z.strictObject({
  tables: AskedTables,
  /** How far back the audited queries go. */
  days: z.int().min(1).max(3650),
})
const Replayed = z.object({
  count,
  /** Of the newest, up to 100. */
  auditIds: z.array(z.string()),
})
/** The `result` of a preview's job. */
export const Preview = z.object({ nowRefused: Replayed, nowAllowed: Replayed, cannotTell: Replayed })

/** A body for PUT, and what it adds. */
export const Widened = z.object({
  tables: z.array(ShownTable),
  version: count,
  added: z.array(ShownTable),
})
