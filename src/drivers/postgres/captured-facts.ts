// Defines the facts that introspection captures for the guard and the value writer. They are stored as JSON with the
// catalog, so they are plain data. If CAPTURE_VERSION has changed, the datasource must be introspected again.

export const CAPTURE_VERSION = 6

export interface PostgresCapture {
  readonly version: number
  /** server_version_num, for example 180004. */
  readonly serverVersion: number
  readonly database: string
  /** The schemas of the login's search_path in order, without pg_catalog and temporary schemas. */
  readonly searchPath: readonly string[]
  /**
   * Schemas that may be added to the session's search_path: see trustedSchemas() in trusted-extensions.ts.
   */
  readonly trustedSchemas: readonly string[]
  readonly extensions: readonly CapturedExtension[]
  /** The user-defined types. Row types that no column and no domain uses are left out. */
  readonly types: readonly CapturedType[]
  readonly implicit: ImplicitObjects
  /** True if ICU is the default of the database, or the collation of a part of a range or composite type. */
  readonly comparesByIcu: boolean
}

/**
 * A digest of the objects that can run in a query that does not name them (catalog/implicit-objects.ts). The other
 * fields say what the digest covers.
 */
export interface ImplicitObjects {
  /** Trusted extensions, by name. */
  readonly extensions: readonly string[]
  /** The trusted schemas. */
  readonly schemas: readonly string[]
  /** The highest oid of a type at capture. The digest leaves out the CHECKs of domains that were created later. */
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
  /**
   * The names of the functions, and the symbols of the operators, that belong to the extension (pg_depend) and are in
   * its schema.
   */
  readonly functions: readonly string[]
  readonly operators: readonly string[]
  /**
   * The names in `functions` and `operators` that another object in the schema also has, if that object belongs to no
   * trusted extension. The guard refuses the extension's functions and operators of these names.
   */
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
  /**
   * A sentence that says why a query may not name this type (a CHECK, a user's cast …). Null if a query may name it.
   */
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
  /**
   * pg_class.relpages and reltuples at capture, of the table and all its children. `tuples` is -1 if none of them was
   * analysed.
   */
  readonly pages: number
  readonly tuples: number
  /**
   * The number of tables that PostgreSQL plans for a query of this table: itself, its partitions and children, and the
   * tables of a view. Absent if it is 1.
   */
  readonly tables?: number
  /** The columns of the primary key in key order. Empty if the table has no primary key on which GROUP BY can rely. */
  readonly primaryKey: readonly string[]
}

/** CatalogColumn.detail of a Postgres column. */
export interface ColumnDetail {
  /** pg_attribute.attnum. A renamed column keeps its number. The number of a dropped column is never reused. */
  readonly number: number
  readonly typeOid: number
  /** pg_type's schema and name. The name is int4, not integer, and _int4 for an array of int4. */
  readonly type: TypeName
  readonly typmod: number
  /**
   * Present if the column, or its domain, has a collation of ICU. By a nondeterministic one, texts of different bytes
   * may be equal.
   */
  readonly icu?: 'deterministic' | 'nondeterministic'
}
