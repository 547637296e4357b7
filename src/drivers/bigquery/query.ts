// What the BigQuery guard hands to the runner, behind the seal: the printed text, and all that its dry run may report.
import type { ShardFamily } from './capture.ts'
import type { Bound } from './params.ts'
import type { Families } from './shards.ts'

/** A table that the printed text names. */
export interface ReadTable {
  readonly dataset: string
  /** As printed: a table, a view, or a wildcard (`events_2024*`). */
  readonly table: string
  /** The names printed of it, in their order. */
  readonly columns: readonly string[]
}

/** Shards that a printed wildcard may read: every name holds project and dataset too (`lake.web.events_`). */
export interface AllowedShards extends ShardFamily {
  readonly prefix: string
}

export interface BigQueryQuery {
  /** One query, on one line but for line breaks in strings; no comment, every table fully qualified. */
  readonly text: string
  /** The values of its parameters; null where it has none. */
  readonly params: Bound | null
  readonly project: string
  /** The capture's: where its jobs run, unless the datasource names another location. */
  readonly location: string
  /** Rows to answer at most; the text has no LIMIT of ours, so ask for one row more (maxResults). */
  readonly rowCap: number
  /** Each once. */
  readonly reads: readonly ReadTable[]
  /** What the dry run may report as referenced, as `project.dataset.table`: printed names, shards, what views stand on. */
  readonly closure: ReadonlySet<string>
  readonly shards: Families<AllowedShards>
  /** Our names of pseudo columns and what the caller called them (_vt_suffix → _TABLE_SUFFIX): result columns, messages. */
  readonly names: ReadonlyMap<string, string>
  /** A star of the text shows rows of its tables: the exposed columns only. */
  readonly hasStar: boolean
  /** Where the part at an offset of `text` begins in the caller's text; null where nothing of the caller's is before it. */
  readonly placeOf: (offset: number) => number | null
  /** A hint for a name that is no column at a place of the caller's text (-1: anywhere). */
  readonly columnHint: (name: string, at: number) => string
  /** The name that stands for each table inside its sub-select, `_vt` but for clashes: to be taken out of messages. */
  readonly alias: string
}

/** Whether a dry run of the query may report this table: `project.dataset.table`. */
export function mayReport(query: BigQueryQuery, table: string): boolean {
  return query.closure.has(table) || query.shards.of(table) !== null
}
