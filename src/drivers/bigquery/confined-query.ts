// The query that the guard passes to the runner: the printed text, and the tables that its dry run may report.
import type { ShardFamily } from './captured-facts.ts'
import type { Bound } from './params.ts'
import type { Families } from './shard-families.ts'

/** A table that the printed text reads. */
export interface ReadTable {
  readonly dataset: string
  /** As printed: a table, a view, or a wildcard such as `events_2024*`. */
  readonly table: string
  /** As printed, in this order. */
  readonly columns: readonly string[]
}

/**
 * The shards that a printed wildcard may read. `prefix` includes project and dataset, for example `lake.web.events_`.
 */
export interface AllowedShards extends ShardFamily {
  readonly prefix: string
}

export interface BigQueryQuery {
  /** One line, except for line breaks in strings, without comments. Every table has its project and dataset. */
  readonly text: string
  /** Null if the text has no parameters. */
  readonly params: Bound | null
  readonly project: string
  /**
   * Where introspection found the data. Jobs run there, unless the settings of the datasource choose another location.
   */
  readonly location: string
  /**
   * The maximum number of rows to return. The text has no LIMIT for it. The runner requests one row more (maxResults),
   * to see whether there are more.
   */
  readonly rowCap: number
  /** Each table occurs once. */
  readonly reads: readonly ReadTable[]
  /**
   * The tables that the dry run may report, as `project.dataset.table`: the printed tables, and the tables that views
   * read. It may also report the tables that match `shards`.
   */
  readonly closure: ReadonlySet<string>
  readonly shards: Families<AllowedShards>
  /**
   * The guard renames pseudo columns, for example _TABLE_SUFFIX to _vt_suffix. This map has the caller's name for each
   * such name, for result columns and messages.
   */
  readonly names: ReadonlyMap<string, string>
  /** True if the text has a star that stands for columns, unlike COUNT(*). It stands only for the exposed columns. */
  readonly hasStar: boolean
  /** Maps an offset in `text` to the position of the same token in the caller's text. Returns null if there is none. */
  readonly placeOf: (offset: number) => number | null
  /**
   * The caller wrote `name` at the position `at`, but there is no such column. Returns a hint. `at` is -1 if the
   * position is unknown.
   */
  readonly columnHint: (name: string, at: number) => string
  /** Each table has this alias inside its sub-select, usually `_vt`. Messages must not contain it. */
  readonly alias: string
}

/** `table` is `project.dataset.table`. */
export function mayReport(query: BigQueryQuery, table: string): boolean {
  return query.closure.has(table) || query.shards.of(table) !== null
}
