// Defines the sealed query that the BigQuery guard gives to the runner: the printed text, and the tables that its dry
// run may report.
import type { ShardFamily } from './captured-facts.ts'
import type { Bound } from './params.ts'
import type { Families } from './shard-families.ts'

/** A table that the printed text reads. */
export interface ReadTable {
  readonly dataset: string
  /** The printed name: a table, a view, or a wildcard (`events_2024*`). */
  readonly table: string
  /** The printed columns of the table, in order. */
  readonly columns: readonly string[]
}

/** The shards that a printed wildcard may read. Every name includes project and dataset (`lake.web.events_`). */
export interface AllowedShards extends ShardFamily {
  readonly prefix: string
}

export interface BigQueryQuery {
  /**
   * One query on one line, except for line breaks in strings. It has no comments, and every table is fully qualified.
   */
  readonly text: string
  /** The values of the text's parameters. Null if the text has none. */
  readonly params: Bound | null
  readonly project: string
  /** The location in the capture. Jobs run there, unless the datasource sets another location. */
  readonly location: string
  /**
   * The maximum number of rows to return. The guard adds no LIMIT to the text. The runner requests one row more
   * (maxResults) to notice that rows are left.
   */
  readonly rowCap: number
  /** The tables that the text reads. Each table occurs once. */
  readonly reads: readonly ReadTable[]
  /**
   * The tables that the dry run may report as referenced, as `project.dataset.table`: printed tables, and the tables
   * under views. The dry run may also report the tables that `shards` matches.
   */
  readonly closure: ReadonlySet<string>
  readonly shards: Families<AllowedShards>
  /**
   * The caller's name of each renamed pseudo column (_vt_suffix → _TABLE_SUFFIX), for result columns and messages.
   */
  readonly names: ReadonlyMap<string, string>
  /**
   * True if the text has a * that stands for columns of FROM (unlike count(*)). It expands to the exposed columns only.
   */
  readonly hasStar: boolean
  /**
   * Maps an offset in `text` to the position of the same part in the caller's text. Returns null if there is no such
   * position.
   */
  readonly placeOf: (offset: number) => number | null
  /**
   * Returns a hint for a name that is no column at position `at` of the caller's text. If `at` is -1, the position is
   * unknown.
   */
  readonly columnHint: (name: string, at: number) => string
  /** The alias of each table inside its sub-select, usually `_vt`. Messages must not show it. */
  readonly alias: string
}

/** Returns whether a dry run of the query may report this table, as `project.dataset.table`. */
export function mayReport(query: BigQueryQuery, table: string): boolean {
  return query.closure.has(table) || query.shards.of(table) !== null
}
