// What the Postgres guard hands to the Postgres runner, behind the seal.
import type { ImplicitObjects } from './capture.ts'

/** A column that the printed text reads, as the server must describe it: as it was at introspection. */
interface ReadColumn {
  readonly name: string
  /** pg_attribute.attnum. */
  readonly number: number
  /** For a domain the type below it. */
  readonly typeOid: number
}

/** A table that the printed text reads. A query answers only while the database has these columns as they stand here. */
export interface ReadTable {
  readonly schema: string
  readonly table: string
  readonly oid: number
  /** Never empty: where the text reads none, one exposed column stands for the table. */
  readonly columns: readonly ReadColumn[]
}

/**
 * Where the cost of a plan is bounded by table sizes alone: one plain table, no join, no function that returns rows,
 * no sub-select, no recursion. `operations` counts the expression nodes evaluated a row; `sorts` whether rows are
 * sorted, grouped or made distinct.
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

/** What a printed text reads, as captured. */
export interface Captured {
  readonly reads: readonly ReadTable[]
  /** What must not have changed since introspection, beside the tables. */
  readonly implicit: ImplicitObjects
}

export interface PostgresQuery extends Captured {
  /**
   * Where in the caller's text (UTF-16 units) something is that stands at this place of the printed text (characters).
   * Null where that cannot be told. It parses and walks again: for errors only.
   */
  readonly locate?: (place: number) => Promise<number | null>
  /** The printed text; it asks for rowCap + 1 rows at most. */
  readonly text: string
  /** Which of the caller's parameters (from 0) each $n of the printed text is. */
  readonly slots: readonly number[]
  /** What is bound to each $n. */
  readonly params: readonly (string | null)[]
  /** Rows to answer at most. */
  readonly rowCap: number
  /** Our aliases and what the caller called them (t7 → orders), to map a database's message back. */
  readonly names: ReadonlyMap<string, string>
  /** By place (from 0), the output columns that the server answers as record or record[] though their columns are known. */
  readonly records?: ReadonlyMap<number, RecordShape>
  /** Null: only EXPLAIN can tell the cost. */
  readonly bound: CostBound | null
  /** Trusted extension schemas that the session's search_path must hold after pg_catalog, in order. */
  readonly searchPath: readonly string[]
  /** server_version_num at capture: another server than that is SCHEMA_STALE territory. */
  readonly serverVersion: number
}
