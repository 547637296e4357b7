// Defines the query that the PostgreSQL guard seals and the runner runs.
import type { ImplicitObjects } from './captured-facts.ts'

/** A column that the printed text reads. The server's description must equal that of introspection. */
interface ReadColumn {
  readonly name: string
  /** pg_attribute.attnum. */
  readonly number: number
  /** The oid of the column's type. For a domain, the oid of its base type. */
  readonly typeOid: number
}

/** A table that the printed text reads. The query fails if these columns have changed. */
export interface ReadTable {
  readonly schema: string
  readonly table: string
  readonly oid: number
  /** Never empty: if the text reads no column, the list has one exposed column. */
  readonly columns: readonly ReadColumn[]
}

/**
 * Present if the size of a table bounds the plan cost: the query reads one plain table, and has no join, set-returning
 * function, sub-select or recursion. `operations` counts the expression nodes for each row. `sorts` is true if rows are
 * sorted, grouped or made distinct.
 */
export interface CostBound {
  readonly schema: string
  readonly table: string
  readonly operations: number
  readonly sorts: boolean
}

/** A row of a table, or a list of such rows, in an answer. */
export interface RecordShape {
  readonly columns: readonly { readonly name: string; readonly typeOid: number }[]
  readonly isList: boolean
}

/** The tables and columns that a printed text reads, as introspection captured them. */
export interface Captured {
  readonly reads: readonly ReadTable[]
  /** The other objects that must not have changed since introspection. */
  readonly implicit: ImplicitObjects
}

/**
 * A printed text with parameters for the values that vary. A session may prepare it under a name. Queries of one shape
 * share the object, which identifies the text.
 */
export interface Preparable {
  /** The text, with the caller's parameters first ($1 …), then the values that vary. */
  readonly text: string
  /** The type oid of each parameter, or 0 if the server infers the type. */
  readonly types: readonly number[]
  /** True for a lookup by primary key: one plan is equally good for all values. */
  readonly hasOnePlan: boolean
  /** True if the query reads one table and calls no function, except the functions of operators. */
  readonly callsNothing: boolean
  /** The exposure that the text was confined for. */
  readonly exposure: object
}

/** Parameters that are lists, as in `x = ANY ($1)`. */
export interface ListParams {
  readonly lists: readonly ListParam[]
  /** The maximum number of list elements, counting each copy of a list. */
  readonly most: number
}

export interface ListParam {
  /** The number of the parameter in the printed text, from 1. */
  readonly number: number
  /** The number of tables that PostgreSQL plans with a copy of the list. */
  readonly tables: number
  /** False if a function makes the list from the parameter. */
  readonly isDirect: boolean
}

/** The settings to switch off, such as enable_hashjoin, separated by spaces. */
export type SwitchedOff = string

/** How a text is read as a regular expression. Null means that only the database knows it. */
export interface RegexSyntax {
  /** The letters of the flags, such as 'i'. */
  readonly flags?: string | null
  /** The escape character of a SIMILAR TO pattern. */
  readonly similar?: string | null
}

/** A parameter that is a regular expression. */
export interface PatternUse {
  /** The index of the caller's parameter. */
  readonly at: number
  readonly syntax: RegexSyntax
}

export interface PostgresQuery extends Captured {
  /**
   * Maps a position in the printed text (characters) to the caller's text (UTF-16 units), or to null. It parses and
   * walks the text again, so it is called for errors only.
   */
  readonly locate?: (place: number) => Promise<number | null>
  /** The printed text, which returns at most rowCap + 1 rows. */
  readonly text: string
  /** For each $n of the printed text, the index of the caller's parameter. */
  readonly slots: readonly number[]
  /** The caller's parameters that are regular expressions. */
  readonly patterns: readonly PatternUse[]
  /** The text of the value for each $n. */
  readonly params: readonly (string | null)[]
  readonly rowCap: number
  /** The caller's name for each generated alias (t7 → orders), to translate error messages of the database. */
  readonly names: ReadonlyMap<string, string>
  /** Output columns, by index, that the server describes as record or record[], and whose columns are known. */
  readonly records?: ReadonlyMap<number, RecordShape>
  /** Null if the cost needs EXPLAIN. */
  readonly bound: CostBound | null
  /** True for a lookup by primary key: the query finds at most one row. */
  readonly isLookup?: boolean
  /** True if the query reads one table and calls no function, except the functions of operators. */
  readonly callsNothing?: boolean
  /** The form that a session may prepare, and the values of its parameters. */
  readonly prepared?: { readonly shared: Preparable; readonly values: readonly string[] }
  /** The parameters that are lists. Absent if their lengths do not matter. */
  readonly lists?: ListParams
  /** The schemas of trusted extensions that search_path must contain after pg_catalog, in order. */
  readonly searchPath: readonly string[]
  readonly switchedOff: SwitchedOff
  /** server_version_num at capture. If the server has another major version, the query fails with SCHEMA_STALE. */
  readonly serverVersion: number
}
