// The data that introspection captures for the guard and the value writer, besides tables and columns. It is stored as JSON with the
// catalog, so it contains only plain data. If CAPTURE_VERSION has changed, the datasource must be introspected again.

export const CAPTURE_VERSION = 4

export interface PostgresCapture {
  readonly version: number
  /** server_version_num, for example 180004. */
  readonly serverVersion: number
  readonly database: string
  /** The schemas of the login's search_path in order, without pg_catalog and temporary schemas. */
  readonly searchPath: readonly string[]
  /**
   * Schemas that may be added to the session's search_path: every function, operator, cast and type in them belongs to
   * a trusted extension, and PUBLIC may not create there (docs/guard/postgres.md).
   */
  readonly trustedSchemas: readonly string[]
  readonly extensions: readonly CapturedExtension[]
  /** Every type that is not built in, except row types of relations that cannot be exposed. */
  readonly types: readonly CapturedType[]
  readonly implicit: ImplicitObjects
}

/**
 * Objects that can run in a query without being named (catalog/implicit-objects.ts), as a digest. All other fields say what the digest
 * covers.
 */
export interface ImplicitObjects {
  /** Trusted extensions, by name. */
  readonly extensions: readonly string[]
  /** The trusted schemas. */
  readonly schemas: readonly string[]
  /** The highest oid of a type: CHECKs of later domains are not included. */
  readonly typesUpTo: number
  /** Oids of casts and operator classes that introspection judged. Dropping one of them does not change the digest. */
  readonly judged: readonly number[]
  readonly digest: string
}

export interface CapturedExtension {
  readonly name: string
  readonly version: string
  readonly schema: string
  /** True if the guard knows this extension at this version. */
  readonly trusted: boolean
  /** Functions (names) and operators (symbols) in its schema that belong to the extension by pg_depend. */
  readonly functions: readonly string[]
  readonly operators: readonly string[]
  /** Names and symbols that an object of no trusted extension in the schema also has. The guard never allows a call by such a name. */
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
  /** The extension to which the type belongs, by pg_depend. */
  readonly extension: string | null
  /** The base type of a domain, or the element type of an array. Otherwise null. */
  readonly of: TypeName | null
  /** The oid of `of`, or 0. */
  readonly ofOid: number
  /** The attributes of a composite type, in order. */
  readonly attributes: readonly CapturedAttribute[]
  /** The delimiter between the elements of an array type. */
  readonly delimiter: string
  /** A sentence that says why a query may not name or read this type (a CHECK, a user's cast …). Null if a query may. */
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
  /** pg_class.relpages and reltuples at capture. reltuples is -1 if the table was never analysed. */
  readonly pages: number
  readonly tuples: number
  /** Columns of the primary key in key order. Empty without a key that GROUP BY can rely on. */
  readonly primaryKey: readonly string[]
}

/** CatalogColumn.detail of a Postgres column. */
export interface ColumnDetail {
  /** pg_attribute.attnum. A rename keeps the number. The number of a dropped column is never reused. */
  readonly number: number
  readonly typeOid: number
  /** pg_type's schema and name (int4, not integer; _int4 for an array). */
  readonly type: TypeName
  readonly typmod: number
}
