// The sealed query that the PostgreSQL guard passes to the runner.
import type { ImplicitObjects } from './captured-facts.ts'

/** A column that the printed text reads. The server must describe it as introspection found it. */
interface ReadColumn {
  readonly name: string
  /** pg_attribute.attnum. */
  readonly number: number
  /** For a domain, its base type. */
  readonly typeOid: number
}

/** A table that the printed text reads. The query runs only while the database has these columns unchanged. */
export interface ReadTable {
  readonly schema: string
  readonly table: string
  readonly oid: number
  /** Never empty: if the text reads no column, one exposed column stands for the table. */
  readonly columns: readonly ReadColumn[]
}

/**
 * Present if the table's size bounds the plan cost: one plain table, no join, no set-returning function, no sub-select, no
 * recursion. `operations` counts the expression nodes evaluated per row. `sorts` tells whether rows are sorted, grouped or
 * made distinct.
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

/** What a printed text reads, as introspection captured it. */
export interface Captured {
  readonly reads: readonly ReadTable[]
  /** Objects besides tables that must not have changed since introspection. */
  readonly implicit: ImplicitObjects
}

/**
 * A printed text with parameters instead of the values that vary. A session may prepare it under a name. The object itself
 * identifies it: queries of one shape share it.
 */
export interface Preparable {
  /** The caller’s parameters come first, $1…, then the values. */
  readonly text: string
  /** The type oid of each parameter; 0 where the server infers it. */
  readonly types: readonly number[]
  /** One plan is as good as any for all values. */
  readonly hasOnePlan: boolean
  /** The exposure that it was confined for. */
  readonly exposure: object
}

export interface PostgresQuery extends Captured {
  /**
   * Maps a position in the printed text (characters) to the caller's text (UTF-16 units); null if that is not possible.
   * Parses and walks again, so it is used for errors only.
   */
  readonly locate?: (place: number) => Promise<number | null>
  /** The printed text, which returns at most rowCap + 1 rows. */
  readonly text: string
  /** For each $n of the printed text, the index of the caller's parameter. */
  readonly slots: readonly number[]
  /** The text bound to each $n. */
  readonly params: readonly (string | null)[]
  /** The most rows in the answer. */
  readonly rowCap: number
  /** Generated aliases and the caller's names (t7 → orders), to translate database messages. */
  readonly names: ReadonlyMap<string, string>
  /** By index, the output columns that the server describes as record or record[] though their columns are known. */
  readonly records?: ReadonlyMap<number, RecordShape>
  /** Null: the cost needs EXPLAIN. */
  readonly bound: CostBound | null
  /** The query finds at most one row, by the whole primary key of its only table. */
  readonly isLookup?: boolean
  /** The same query for a session that prepares it, and the values of this one. */
  readonly prepared?: { readonly shared: Preparable; readonly values: readonly string[] }
  /** Schemas of trusted extensions that search_path must hold after pg_catalog, in order. */
  readonly searchPath: readonly string[]
  /** server_version_num at capture. Another major version of the server means SCHEMA_STALE. */
  readonly serverVersion: number
}
