// What introspection captures of a BigQuery project for the guard, the runner and the description, beyond tables and
// columns. It is stored as JSON with the catalog, so plain data only; another CAPTURE_VERSION must be made anew.

export const CAPTURE_VERSION = 2

export interface BigQueryCapture {
  readonly version: number
  /** The project id that every table belongs to; a domain-scoped one holds a colon (example.com:lake). */
  readonly project: string
  /** Where jobs run: EU, US, europe-west1 … */
  readonly location: string
  /** Datasets made with is_case_insensitive: their tables answer to any spelling. */
  readonly caseInsensitiveDatasets: readonly string[]
  /**
   * By dataset, the id of everything in it, each shard of a family by its own name, exposed or not, of any kind: what a
   * wildcard could match.
   */
  readonly tableIds: Readonly<Record<string, readonly string[]>>
}

export type TableType = 'TABLE' | 'VIEW' | 'EXTERNAL' | 'MATERIALIZED_VIEW' | 'SNAPSHOT'

/**
 * Dated shards listed as one table (`events_*`): every table whose id is `prefix` and then exactly `digits` digits, but for
 * those `apart`, which are listed by themselves (a view called events_20240101, say).
 */
export interface ShardFamily {
  readonly prefix: string
  readonly digits: number
  readonly apart: readonly string[]
}

export type PseudoColumn = '_PARTITIONTIME' | '_PARTITIONDATE'

/** CatalogTable.detail of a table, view, or family of shards. */
export interface BigQueryTableDetail {
  readonly tableType: TableType
  /** Where CatalogTable.table is a family's name, `<prefix>*`; the columns are its newest shard's. */
  readonly family: ShardFamily | null
  /** Names of all top-level columns, whether or not they are exposed. */
  readonly columns: readonly string[]
  /**
   * What a table partitioned by ingestion time has beside its columns: _PARTITIONTIME; by day _PARTITIONDATE too. They are
   * listed among CatalogTable.columns, so that an exposure shows or hides them, and are no part of a star.
   */
  readonly pseudoColumns: readonly PseudoColumn[]
  /**
   * VIEW and MATERIALIZED_VIEW: the tables that a dry run of it reported, as `project.dataset.table`; null where that is
   * not known, and the guard refuses it. Empty for the other types.
   */
  readonly closure: readonly string[] | null
  /** Milliseconds since 1970, of a family its newest shard's: a wildcard has the columns of its newest table. */
  readonly createdAt: number | null
  /** True where BigQuery refuses a query that does not filter by partition. */
  readonly requirePartitionFilter: boolean
  /** Stored bytes, a family's all together; null where not known, as for views. */
  readonly bytes: number | null
}

/** A type as a tree; `name` is GoogleSQL's (INT64, NUMERIC, STRUCT …), without ARRAY: `repeated` says that. */
export interface ColumnType {
  readonly name: string
  readonly repeated: boolean
  /** STRUCT: its fields in order; else empty. */
  readonly fields: readonly (ColumnType & { readonly field: string })[]
}

/** CatalogColumn.detail of a top-level column. */
export interface BigQueryColumnDetail {
  readonly type: ColumnType
  /** True where a policy tag guards it: a login without that right fails on every query that names it. */
  readonly policyTagged: boolean
}
