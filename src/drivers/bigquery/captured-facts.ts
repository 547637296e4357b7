// What introspection captures about a BigQuery project in addition to tables and columns, for the guard, the runner and
// the description. It is stored as JSON with the catalog, so it consists of plain data. If CAPTURE_VERSION has changed,
// the datasource must be introspected again.

export const CAPTURE_VERSION = 2

export interface BigQueryCapture {
  readonly version: number
  /** The project id of every table. A domain-scoped project id contains a colon (example.com:lake). */
  readonly project: string
  /** Where jobs run: EU, US, europe-west1 … */
  readonly location: string
  /** Datasets with is_case_insensitive: their table names ignore case. */
  readonly caseInsensitiveDatasets: readonly string[]
  /**
   * By dataset: the ids of all its tables and views, exposed or not, including each shard of a family. A wildcard could
   * match any of them.
   */
  readonly tableIds: Readonly<Record<string, readonly string[]>>
}

export type TableType = 'TABLE' | 'VIEW' | 'EXTERNAL' | 'MATERIALIZED_VIEW' | 'SNAPSHOT'

/**
 * Dated shards listed as one table (`events_*`): every table whose id is `prefix` followed by exactly `digits` digits,
 * except the ids in `apart`, which are listed separately (for example, a view named events_20240101).
 */
export interface ShardFamily {
  readonly prefix: string
  readonly digits: number
  readonly apart: readonly string[]
}

export type PseudoColumn = '_PARTITIONTIME' | '_PARTITIONDATE'

/** CatalogTable.detail of a table, a view, or a family of shards. */
export interface BigQueryTableDetail {
  readonly tableType: TableType
  /** Set if CatalogTable.table is the name of a family, `<prefix>*`; the columns are those of its newest shard. */
  readonly family: ShardFamily | null
  /** The names of all top-level columns, exposed or not. */
  readonly columns: readonly string[]
  /**
   * The pseudo columns of a table partitioned by ingestion time: _PARTITIONTIME, and if partitioned by day also
   * _PARTITIONDATE. CatalogTable.columns lists them, so that an exposure shows or hides them. `*` does not include
   * them.
   */
  readonly pseudoColumns: readonly PseudoColumn[]
  /**
   * VIEW and MATERIALIZED_VIEW: the tables that a dry run of the view reported, as `project.dataset.table`; null if
   * they are unknown, and the guard then refuses the view. Empty for the other types.
   */
  readonly closure: readonly string[] | null
  /** Milliseconds since 1970. For a family: of its newest shard, whose columns the wildcard table has. */
  readonly createdAt: number | null
  /** True if BigQuery refuses a query without a filter on the partition. */
  readonly requirePartitionFilter: boolean
  /** Stored bytes; for a family, of all shards. Null if unknown, as for views. */
  readonly bytes: number | null
}

/** A type as a tree. `name` is GoogleSQL's (INT64, NUMERIC, STRUCT …) without ARRAY, which `repeated` states. */
export interface ColumnType {
  readonly name: string
  readonly repeated: boolean
  /** The fields of a STRUCT in order; otherwise empty. */
  readonly fields: readonly (ColumnType & { readonly field: string })[]
}

/** CatalogColumn.detail of a top-level column. */
export interface BigQueryColumnDetail {
  readonly type: ColumnType
  /** True if a policy tag guards the column: a query that names it fails for a login without the right to read it. */
  readonly policyTagged: boolean
}
