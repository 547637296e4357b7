// Defines the sealed query that the PostgreSQL guard passes to the runner.
import type { ImplicitObjects } from './captured-facts.ts'

/**
 * A column that the printed text reads. The server's description of the column must equal the description from
 * introspection.
 */
interface ReadColumn {
  readonly name: string
  /** pg_attribute.attnum. */
  readonly number: number
  /** The oid of the column's type, or of the base type if the column's type is a domain. */
  readonly typeOid: number
}

/** A table that the printed text reads. The query runs only while the database has these columns unchanged. */
export interface ReadTable {
  readonly schema: string
  readonly table: string
  readonly oid: number
  /** Never empty: if the text reads no column, the list has one exposed column. */
  readonly columns: readonly ReadColumn[]
}

/**
 * Present if the table's size bounds the plan cost. Such a query reads one plain table and has no join, set-returning
 * function, sub-select or recursion. `operations` counts the expression nodes evaluated per row. `sorts` says whether
 * rows are sorted, grouped or made distinct.
 */
export interface CostBound {
  readonly schema: string
  readonly table: string
  readonly operations: number
  readonly sorts: boolean
}

/** A row of a table in an answer, or a list of such rows. */
export interface RecordShape {
  readonly columns: readonly { readonly name: string; readonly typeOid: number }[]
  readonly isList: boolean
}

/** The tables and columns that a printed text reads, as introspection captured them. */
export interface Captured {
  readonly reads: readonly ReadTable[]
  /** Objects besides tables that must not have changed since introspection. */
  readonly implicit: ImplicitObjects
}

/**
 * A printed text with parameters instead of the values that vary. A session may prepare it under a name. Queries of one
 * shape share the object, which identifies the text.
 */
export interface Preparable {
  /** The caller's parameters come first ($1 …). The values that vary follow. */
  readonly text: string
  /** The type oid of each parameter. 0 if the server infers the type. */
  readonly types: readonly number[]
  /** True if one plan is equally good for all values: the query is a look-up by primary key. */
  readonly hasOnePlan: boolean
  /** True if the query reads one table and calls no function, except the functions of operators. */
  readonly callsNothing: boolean
  /** The exposure for which the text was confined. */
  readonly exposure: object
}

/** The parameters of a query that are lists, as in `x = ANY ($1)`. */
export interface ListParams {
  readonly lists: readonly ListParam[]
  /** The maximum number of their elements in all copies. */
  readonly most: number
}

export interface ListParam {
  /** The number of the printed parameter, from 1. */
  readonly number: number
  /** The number of tables that PostgreSQL plans with a copy of the list. */
  readonly tables: number
  /** False if a function makes a list of the parameter. */
  readonly isDirect: boolean
}

/** The settings of the planner that are off, such as enable_hashjoin, separated by a space. */
export type SwitchedOff = string

export interface PostgresQuery extends Captured {
  /**
   * Maps a position in the printed text (characters) to the caller's text (UTF-16 units), or returns null if that is
   * not possible. The text is parsed and walked again, so this function is called for errors only.
   */
  readonly locate?: (place: number) => Promise<number | null>
  /** The printed text, which returns at most rowCap + 1 rows. */
  readonly text: string
  /** For each $n of the printed text, the index of the caller's parameter. */
  readonly slots: readonly number[]
  /** The indexes of the caller's parameters that are regular expressions. */
  readonly patterns: readonly number[]
  /** The text bound to each $n. */
  readonly params: readonly (string | null)[]
  /** The maximum number of rows in the answer. */
  readonly rowCap: number
  /** Generated aliases and the caller's names (t7 → orders), to translate database messages. */
  readonly names: ReadonlyMap<string, string>
  /** Output columns, by index, whose columns are known although the server describes them as record or record[]. */
  readonly records?: ReadonlyMap<number, RecordShape>
  /** Null if only EXPLAIN can estimate the cost. */
  readonly bound: CostBound | null
  /** True if the query finds at most one row, because it compares the whole primary key of its only table. */
  readonly isLookup?: boolean
  /** True if the query reads one table and calls no function, except the functions of operators. */
  readonly callsNothing?: boolean
  /** The query in the form that a session may prepare, and the values of its parameters. */
  readonly prepared?: { readonly shared: Preparable; readonly values: readonly string[] }
  /** The parameters that are lists. Absent if their lengths do not matter. */
  readonly lists?: ListParams
  /** Schemas of trusted extensions that search_path must contain after pg_catalog, in order. */
  readonly searchPath: readonly string[]
  /** The settings of the planner that must be off. */
  readonly switchedOff: SwitchedOff
  /** server_version_num at capture. If the server has another major version, the query fails with SCHEMA_STALE. */
  readonly serverVersion: number
}
