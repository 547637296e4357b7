// The JSON of exposures, drift and previews.
import { z } from 'zod'
import { listOf } from './long-lists.ts'
import { at, count, identifier, Page, text } from './schemas.ts'

const RequestedTables = listOf(
  z.strictObject({
    schema: identifier,
    table: identifier,
    /** Null means all columns that are known now and may be exposed. */
    columns: listOf(identifier, 100_000).nullable(),
  }),
  100_000,
)
export const ExposurePut = z.strictObject({
  tables: RequestedTables,
  /** The version that the client has read. If absent, the save overwrites changes by other people. */
  version: z.int().min(0).exactOptional(),
  note: text(200).exactOptional(),
})
const Author = z.object({ accountId: z.string(), name: z.string().nullable() })
const ExposureTable = z.object({ schema: z.string(), table: z.string(), columns: z.array(z.string()) })
export const Exposure = z.object({
  tables: z.array(ExposureTable),
  version: count,
  /** Exposed names that the database no longer has. */
  gone: z.array(z.object({ schema: z.string(), table: z.string(), column: z.string().optional() })),
  /** Null before the first save. */
  author: Author.nullable(),
  savedAt: at.nullable(),
  note: z.string().nullable(),
  /** Only in the answer to a PUT. */
  warnings: z.array(z.string()).optional(),
})
const about = { version: count, author: Author, savedAt: at, note: z.string().nullable() }
export const ExposureVersion = z.object({ ...about, tables: z.array(ExposureTable), createdAt: at })
/** A version without its tables. `added` and `removed` count columns. Old versions have no counts. */
const BriefVersion = z.object({
  ...about,
  tables: count.nullable(),
  columns: count.nullable(),
  added: count.nullable(),
  removed: count.nullable(),
})
export const VersionPage = Page.extend({
  brief: z.literal('1').exactOptional().meta({ description: 'Lists counts in place of the tables.' }),
})
export const ExposureVersions = z.object({
  items: z.union([z.array(ExposureVersion), z.array(BriefVersion)]),
  nextCursor: z.string().nullable(),
})

const DriftItem = z.object({
  schema: z.string(),
  table: z.string(),
  /** Absent if the whole table drifted. */
  column: z.string().optional(),
  type: z.string().optional(),
  was: z.string().optional(),
})
export const Drift = z.object({
  added: z.array(DriftItem),
  removed: z.array(DriftItem),
  retyped: z.array(DriftItem),
  /** The time of the catalog with which the newest catalog is compared. Null if there is none. */
  since: at.nullable(),
  schemaCapturedAt: at.nullable(),
})

export const PreviewOrder = z.strictObject({
  tables: RequestedTables,
  days: z.int().min(1).max(3650),
})
const ReplayResult = z.object({
  count,
  /** At most 100, the newest. */
  auditIds: z.array(z.string()),
})
/** Queries that only the current exposure allows, that only the proposed one allows, and whose verdict is unknown. */
export const Preview = z.object({ nowRefused: ReplayResult, nowAllowed: ReplayResult, cannotTell: ReplayResult })

/** Commands that make the database itself refuse hidden tables and columns. `notes` says what they cannot do. */
export const ExposureGrants = z.object({
  kind: z.enum(['SQL', 'MONGO', 'GCLOUD']),
  text: z.string(),
  notes: z.array(z.string()),
})

/** A body for putExposure. `added` has the tables and columns that it adds to the exposure. */
export const Widened = z.object({
  tables: z.array(ExposureTable),
  version: count,
  added: z.array(ExposureTable),
})
