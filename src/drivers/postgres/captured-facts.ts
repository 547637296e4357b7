// Defines the facts that introspection captures for the guard and the value writer. They are stored as JSON with the
// catalog. If CAPTURE_VERSION changes, datasources must be introspected again.

export const CAPTURE_VERSION = 6

export interface PostgresCapture {
  readonly version: number
  /** server_version_num, for example 180004. */
  readonly serverVersion: number
  readonly database: string
  /** The schemas of the login's search_path, in order, without pg_catalog and temporary schemas. */
  readonly searchPath: readonly string[]
  /** Schemas that may be on the session's search_path (trustedSchemas() in trusted-extensions.ts). */
  readonly trustedSchemas: readonly string[]
  readonly extensions: readonly CapturedExtension[]
  /** The user-defined types, without row types that no column or domain has. */
  readonly types: readonly CapturedType[]
  readonly implicit: ImplicitObjects
  /** True if ICU is the default of the database, or of a part of a range or composite type. */
  readonly comparesByIcu: boolean
}

/**
 * A digest of implicit objects, which a query can run without naming them (catalog/implicit-objects.ts). The other
 * fields say which objects it covers.
 */
export interface ImplicitObjects {
  /** The names of trusted extensions. */
  readonly extensions: readonly string[]
  readonly schemas: readonly string[]
  /** The highest oid of a type at capture. Domains that were created later are not in the digest. */
  readonly typesUpTo: number
  /** The oids of casts and operator classes that introspection judged. The digest does not change if one is dropped. */
  readonly judged: readonly number[]
  readonly digest: string
}

export interface CapturedExtension {
  readonly name: string
  readonly version: string
  readonly schema: string
  /** True if the guard knows this extension and version. */
  readonly trusted: boolean
  /** The functions in the extension's schema that belong to the extension (pg_depend), by name. */
  readonly functions: readonly string[]
  /** The operators of the extension in its schema, by symbol. */
  readonly operators: readonly string[]
  /**
   * Names of these functions and operators that another object in the schema also has, if that object belongs to no
   * trusted extension. The guard refuses the functions and operators of these names.
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
  /** The extension that the type belongs to (pg_depend), or null. */
  readonly extension: string | null
  /** The base type of a domain, or the element type of an array, or null. */
  readonly of: TypeName | null
  readonly ofOid: number
  /** The attributes of a composite type, in order. */
  readonly attributes: readonly CapturedAttribute[]
  /** What separates elements in the text of an array. */
  readonly delimiter: string
  /** Why a query may not name this type (a CHECK, a user's cast …), as a sentence. Null if a query may. */
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
  /** The sums of relpages and reltuples of the table and all its children. `tuples` is -1 before the first ANALYZE. */
  readonly pages: number
  readonly tuples: number
  /** How many tables PostgreSQL plans for this one: partitions, children, the tables of a view. Absent if it is 1. */
  readonly tables?: number
  /** The columns of the primary key in key order. Empty if GROUP BY cannot rely on the key, or if there is none. */
  readonly primaryKey: readonly string[]
}

/** CatalogColumn.detail of a Postgres column. */
export interface ColumnDetail {
  /** pg_attribute.attnum. It survives a rename, and is never reused after a drop. */
  readonly number: number
  readonly typeOid: number
  /** The names in pg_type: int4, not integer, and _int4 for an array of int4. */
  readonly type: TypeName
  readonly typmod: number
  /** Present for an ICU collation. If it is nondeterministic, texts of different bytes may be equal. */
  readonly icu?: 'deterministic' | 'nondeterministic'
  /** True for a virtual generated column (version 18), which PostgreSQL computes at each use. */
  readonly computed?: true
}
