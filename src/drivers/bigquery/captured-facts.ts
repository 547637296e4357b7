// The facts that introspection stores about a BigQuery project besides tables and columns. They are stored as JSON, so
// they are plain data. If the stored facts have another CAPTURE_VERSION, the datasource must be introspected again.

export const CAPTURE_VERSION = 2

export interface BigQueryCapture {
  readonly version: number
  /**
   * The id of the project that contains every table. The id of a project in a domain has a colon (`example.com:lake`).
   */
  readonly project: string
  /** The location of the jobs, for example EU or europe-west1. */
  readonly location: string
  /** The datasets with is_case_insensitive. Their table names ignore case. */
  readonly caseInsensitiveDatasets: readonly string[]
  /**
   * For each introspected dataset, the ids of all tables, views and shards, also of hidden ones. A wildcard such as
   * `events_*` could match any of them.
   */
  readonly tableIds: Readonly<Record<string, readonly string[]>>
}

export type TableType = 'TABLE' | 'VIEW' | 'EXTERNAL' | 'MATERIALIZED_VIEW' | 'SNAPSHOT'

/**
 * Tables such as events_20240101 and events_20240102 are shown as one table `events_*`, a family of dated shards. The
 * id of a shard is `prefix`, followed by exactly `digits` digits. An id in `apart` looks like a shard but is none, for
 * example a view named events_20240103.
 */
export interface ShardFamily {
  readonly prefix: string
  readonly digits: number
  readonly apart: readonly string[]
}

export type PseudoColumn = '_PARTITIONTIME' | '_PARTITIONDATE'

/** The field `detail` of a CatalogTable, which may be a table, a view, or a family of shards. */
export interface BigQueryTableDetail {
  readonly tableType: TableType
  /**
   * Set for a family of shards. The name of the CatalogTable is then `<prefix>*`, and its columns are those of the
   * newest shard.
   */
  readonly family: ShardFamily | null
  /** The id of the shard of a family that was created last. Absent in older catalogs. */
  readonly newestShard?: string
  /** The names of all top-level columns, also of hidden ones. */
  readonly columns: readonly string[]
  /**
   * A table that is partitioned by ingestion time has _PARTITIONTIME, and also _PARTITIONDATE if it is partitioned by
   * day. They are in CatalogTable.columns too, so that an exposure can show or hide them. `SELECT *` does not return
   * them.
   */
  readonly pseudoColumns: readonly PseudoColumn[]
  /**
   * The tables that a VIEW or MATERIALIZED_VIEW reads, as `project.dataset.table`. A dry run of the view reported them.
   * If null, these tables are unknown, and the guard refuses the view. Empty for other types of table.
   */
  readonly closure: readonly string[] | null
  /** In milliseconds since 1970. For a family, the time of its newest shard. */
  readonly createdAt: number | null
  /** True if BigQuery refuses a query without a filter on the partition. */
  readonly requirePartitionFilter: boolean
  /** Null for a family of shards, for a view, or if BigQuery does not report the stored bytes. */
  readonly bytes: number | null
}

/**
 * A type as a tree. `name` is the GoogleSQL name, such as INT64, NUMERIC or STRUCT. For an ARRAY, `repeated` is true,
 * and `name` is the type of the elements.
 */
export interface ColumnType {
  readonly name: string
  readonly repeated: boolean
  /** The fields of a STRUCT, in order. Empty for other types. */
  readonly fields: readonly (ColumnType & { readonly field: string })[]
}

/** The field `detail` of a CatalogColumn that is a top-level column. */
export interface BigQueryColumnDetail {
  readonly type: ColumnType
  /**
   * True if a policy tag guards the column or a part of it. A query that names the column may then fail, because the
   * login may not read it.
   */
  readonly policyTagged: boolean
}
