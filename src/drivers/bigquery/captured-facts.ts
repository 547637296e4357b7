// The facts that introspection captures about a BigQuery project in addition to tables and columns. Only this driver
// reads them. They are stored as JSON with the catalog, so they are plain data. If CAPTURE_VERSION has changed, the
// datasource must be introspected again.

export const CAPTURE_VERSION = 2

export interface BigQueryCapture {
  readonly version: number
  /**
   * The id of the project that contains every table. A domain-scoped project id contains a colon (example.com:lake).
   */
  readonly project: string
  /** The location of the jobs: EU, US, europe-west1 … */
  readonly location: string
  /** The datasets with is_case_insensitive, whose table names ignore case. */
  readonly caseInsensitiveDatasets: readonly string[]
  /**
   * The ids of all tables and views of each introspected dataset, exposed or not, including each shard of a family. A
   * wildcard could match any of them.
   */
  readonly tableIds: Readonly<Record<string, readonly string[]>>
}

export type TableType = 'TABLE' | 'VIEW' | 'EXTERNAL' | 'MATERIALIZED_VIEW' | 'SNAPSHOT'

/**
 * Dated shards listed as one table (`events_*`). A shard is a table whose id is `prefix` followed by exactly `digits`
 * digits. The ids in `apart` have this form but are no shards (for example, a view named events_20240101).
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
  /**
   * Set if CatalogTable.table is the name of a family, `<prefix>*`. The columns are then the columns of the newest
   * shard.
   */
  readonly family: ShardFamily | null
  /** The id of the newest shard of a family: the shard that was created last. Absent in older catalogs. */
  readonly newestShard?: string
  /** The names of all top-level columns, exposed or not. */
  readonly columns: readonly string[]
  /**
   * The pseudo columns of a table partitioned by ingestion time: _PARTITIONTIME, and if partitioned by day also
   * _PARTITIONDATE. CatalogTable.columns lists them, so that an exposure shows or hides them. `*` does not include
   * them.
   */
  readonly pseudoColumns: readonly PseudoColumn[]
  /**
   * For VIEW and MATERIALIZED_VIEW, the tables that a dry run of the view reported, as `project.dataset.table`. Null if
   * these tables are unknown: the guard then refuses the view. Empty for other types of table.
   */
  readonly closure: readonly string[] | null
  /**
   * The time of creation, in milliseconds since 1970. For a family, the time of its newest shard, whose columns the
   * wildcard table has.
   */
  readonly createdAt: number | null
  /** True if BigQuery refuses a query without a filter on the partition. */
  readonly requirePartitionFilter: boolean
  /** The stored bytes. Null for a family of shards, for a view, or if BigQuery does not report them. */
  readonly bytes: number | null
}

/**
 * A type as a tree. `name` is the name of GoogleSQL (INT64, NUMERIC, STRUCT …). For an ARRAY, `name` is the name of its
 * element type, and `repeated` is true.
 */
export interface ColumnType {
  readonly name: string
  readonly repeated: boolean
  /** The fields of a STRUCT, in order. Empty for other types. */
  readonly fields: readonly (ColumnType & { readonly field: string })[]
}

/** CatalogColumn.detail of a top-level column. */
export interface BigQueryColumnDetail {
  readonly type: ColumnType
  /**
   * True if a policy tag guards the column or a part of it. A query that names the column may then fail for a login
   * without the right to read it.
   */
  readonly policyTagged: boolean
}
