// The query that the guard passes to the runner: the printed SQL, and the tables that its dry run may report.
import type { ShardFamily } from './captured-facts.ts'
import type { Bound } from './params.ts'
import type { Families } from './shard-families.ts'

export interface ReadTable {
  readonly dataset: string
  /** As printed: a table, a view, or a wildcard such as `events_2024*`. */
  readonly table: string
  /** The columns in the order in which they are printed. */
  readonly columns: readonly string[]
}

/**
 * The shards that a printed wildcard may read. `prefix` includes project and dataset, for example `lake.web.events_`.
 */
export interface AllowedShards extends ShardFamily {
  readonly prefix: string
}

export interface BigQueryQuery {
  /**
   * The printed SQL: one line without comments, except for line breaks in strings. Every table has its project and
   * dataset.
   */
  readonly text: string
  /** Null if the SQL has no parameters. */
  readonly params: Bound | null
  readonly project: string
  /**
   * The location of the tables at introspection. Jobs run there, unless the settings of the datasource choose another
   * location.
   */
  readonly location: string
  /**
   * The maximum number of rows to return. The SQL has no LIMIT for it. The runner requests one row more (maxResults),
   * to see whether there are more rows.
   */
  readonly rowCap: number
  /** Each table occurs once. */
  readonly reads: readonly ReadTable[]
  /**
   * The tables that the dry run may report, as `project.dataset.table`: the printed tables, and the tables that views
   * read. The dry run may also report the tables that match `shards`.
   */
  readonly closure: ReadonlySet<string>
  readonly shards: Families<AllowedShards>
  /**
   * The guard renames pseudo columns, for example _TABLE_SUFFIX to _vt_suffix. This map has the caller's name for each
   * generated name, for result columns and messages.
   */
  readonly names: ReadonlyMap<string, string>
  /** True if the SQL has a star that stands for columns, unlike COUNT(*). It stands only for the exposed columns. */
  readonly hasStar: boolean
  /** Maps an offset in `text` to the position of the same token in the caller's SQL. Returns null if there is none. */
  readonly placeOf: (offset: number) => number | null
  /**
   * Returns a hint for the column `name`, which the caller wrote at the position `at`, but which does not exist. `at`
   * is -1 if the position is unknown.
   */
  readonly columnHint: (name: string, at: number) => string
  /** The alias of each table inside its sub-select, usually `_vt`. Messages must not contain it. */
  readonly alias: string
}

/** `table` is `project.dataset.table`. */
export function mayReport(query: BigQueryQuery, table: string): boolean {
  return query.closure.has(table) || query.shards.of(table) !== null
}
