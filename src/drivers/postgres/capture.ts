// What introspection captures of a PostgreSQL server for the guard and the value writer, beyond tables and columns.
// It is stored as JSON with the catalog, so plain data only; a capture of another CAPTURE_VERSION must be made anew.

export const CAPTURE_VERSION = 4

export interface PostgresCapture {
  readonly version: number
  /** server_version_num, 180004 say. */
  readonly serverVersion: number
  readonly database: string
  /** The login's effective schemas in order, without pg_catalog and temporary ones: where an unqualified name looks. */
  readonly searchPath: readonly string[]
  /**
   * Schemas that may go on the session's search_path: every function, operator, cast and type in them belongs to a
   * trusted extension, and PUBLIC may not create there (docs/guard/postgres.md).
   */
  readonly trustedSchemas: readonly string[]
  readonly extensions: readonly CapturedExtension[]
  /** Every type that is not built in, and that is not the row type of a relation nobody could expose. */
  readonly types: readonly CapturedType[]
  readonly implicit: ImplicitObjects
}

/** What can run in a query without being named there (catalog/implicit.ts): where it is looked for, and what was found. */
export interface ImplicitObjects {
  /** Trusted extensions, by name. */
  readonly extensions: readonly string[]
  /** The trusted schemas. */
  readonly schemas: readonly string[]
  /** The highest oid of a type: the CHECKs of later domains are not counted. */
  readonly typesUpTo: number
  /** Casts and operator classes that introspection has judged, by oid: dropping one changes nothing. */
  readonly judged: readonly number[]
  readonly digest: string
}

export interface CapturedExtension {
  readonly name: string
  readonly version: string
  readonly schema: string
  /** On the list of extensions this guard knows, at a version it knows. */
  readonly trusted: boolean
  /** Functions (names) and operators (symbols) in its schema that pg_depend says are the extension's. */
  readonly functions: readonly string[]
  readonly operators: readonly string[]
  /** Those of both that something in the same schema bears too, which no trusted extension made: never to be called. */
  readonly shadowed: readonly string[]
}

export interface TypeName {
  readonly schema: string
  readonly name: string
}

export interface CapturedType {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly kind: 'base' | 'enum' | 'domain' | 'composite' | 'range' | 'multirange' | 'array'
  /** The extension it belongs to, by pg_depend. */
  readonly extension: string | null
  /** domain: the type right below; array: the element. */
  readonly of: TypeName | null
  /** The oid of `of`; 0 without. */
  readonly ofOid: number
  /** composite: its attributes in order. */
  readonly attributes: readonly CapturedAttribute[]
  /** array: the delimiter between elements. */
  readonly delimiter: string
  /** Why a query may not name or read this type (a CHECK below, a user's cast …), as a sentence; null when it may. */
  readonly refused: string | null
}

export interface CapturedAttribute {
  readonly name: string
  readonly type: TypeName
  readonly typeOid: number
}

/** CatalogTable.detail of a Postgres table. */
export interface TableDetail {
  readonly kind: 'r' | 'p' | 'v' | 'm' | 'f'
  readonly oid: number
  /** pg_class.relpages and reltuples at capture; reltuples -1 where never analysed. */
  readonly pages: number
  readonly tuples: number
  /** Columns of the primary key, in key order; empty without one (or where it does not hold for GROUP BY). */
  readonly primaryKey: readonly string[]
}

/** CatalogColumn.detail of a Postgres column. */
export interface ColumnDetail {
  /** pg_attribute.attnum. A rename keeps the number; a dropped number is never given again. */
  readonly number: number
  readonly typeOid: number
  /** pg_type's schema and name (int4, not integer; _int4 for an array). */
  readonly type: TypeName
  readonly typmod: number
}
