// Indexes an exposed catalog by name: the tables and columns that a caller may read, and the types and extensions of
// the capture. Throws TypeError for a catalog of another kind of database, and AppError SCHEMA_STALE for a capture of
// another CAPTURE_VERSION.
import type { Catalog } from '../../driver.ts'
import { catalogLookup, checkVersion, hasField, listedTables } from '../../catalog-lookup.ts'
import type { ReadTable } from '../confined-query.ts'
import { tableTyped } from '../quote.ts'
import {
  CAPTURE_VERSION,
  type CapturedExtension,
  type CapturedType,
  type ColumnDetail,
  type PostgresCapture,
  type TableDetail,
  type TypeName,
} from '../captured-facts.ts'

export interface ExposedColumn {
  readonly name: string
  readonly number: number
  readonly typeOid: number
  /** The oid in RowDescription: for a domain, the oid of its base type. */
  readonly describedOid: number
  readonly type: TypeName
  readonly icu: ColumnDetail['icu'] | undefined
  /** True if PostgreSQL may compute the column at each use: for views, and virtual generated columns. */
  readonly isComputed: boolean
}

export interface ExposedTable {
  readonly schema: string
  readonly name: string
  readonly kind: TableDetail['kind']
  readonly oid: number
  /** How many tables PostgreSQL plans for this one (TableDetail.tables). */
  readonly tables: number
  /** The rows at introspection, including those of partitions and children. Negative if unknown. */
  readonly rows: number
  /** Ordered by attribute number. */
  readonly columns: readonly ExposedColumn[]
  /** Empty if a column of the key is not exposed. */
  readonly primaryKey: readonly string[]
}

export interface Exposed {
  readonly capture: PostgresCapture
  /** The server's major version: 14, 15 … */
  readonly major: number
  readonly tables: readonly ExposedTable[]
  /** Returns the table of this name in the schema. Without a schema, searches the login's search_path. */
  table(schema: string | undefined, name: string): ExposedTable | undefined
  /** Returns a type that is not built in. */
  type(schema: string, name: string): CapturedType | undefined
  extension(name: string): CapturedExtension | undefined
  /** The operators of trusted extensions that may be named without a schema. The server chooses one by the types. */
  readonly pathOperators: ReadonlySet<string>
  /** The most underscores before a column name like a generated alias (__t1: 2), or -1 without such a name. */
  readonly longestPrefix: number
  /** True if the database, or an exposed column, compares texts by ICU. */
  readonly comparesByIcu: boolean
  /** True if an exposed column has a nondeterministic collation: texts of different bytes may be equal. */
  readonly equatesByIcu: boolean
  /** A sentence that lists the exposed tables, for hints. */
  readonly listed: string
  /** The results of heldTables(), by tables and columns. */
  readonly held: Map<string, readonly ReadTable[]>
}

/** Returns the index of an exposed catalog. It is built once for each catalog object. */
export const exposedOf: (catalog: Catalog) => Exposed = catalogLookup('PostgreSQL', isCapture, build)

function build(catalog: Catalog, capture: PostgresCapture): Exposed {
  checkVersion(capture, CAPTURE_VERSION, 'database')
  const domains = new Map(
    capture.types.flatMap(({ oid, kind, ofOid }) => (kind === 'domain' ? [[oid, ofOid] as const] : [])),
  )
  const tables = catalog.tables.map((table) => tableOf(table, domains))
  const collations = new Set(tables.flatMap(({ columns }) => columns.flatMap(({ icu }) => icu ?? [])))
  const bySchema = new Map<string, Map<string, ExposedTable>>()
  for (const table of tables) {
    const names = bySchema.get(table.schema) ?? new Map<string, ExposedTable>()
    bySchema.set(table.schema, names.set(table.name, table))
  }
  const types = new Map(capture.types.map((type) => [`${type.schema}\0${type.name}`, type]))
  const extensions = new Map(capture.extensions.map((extension) => [extension.name, extension]))
  return {
    capture,
    major: Math.trunc(capture.serverVersion / 10_000),
    tables,
    table: (schema, name) => {
      if (schema !== undefined) return bySchema.get(schema)?.get(name)
      for (const place of capture.searchPath) {
        const found = bySchema.get(place)?.get(name)
        if (found) return found
      }
      return undefined
    },
    type: (schema, name) => types.get(`${schema}\0${name}`),
    extension: (name) => extensions.get(name),
    pathOperators: new Set(
      capture.extensions
        .filter((extension) => capture.trustedSchemas.includes(extension.schema))
        .flatMap((extension) => extension.operators),
    ),
    comparesByIcu: capture.comparesByIcu || collations.size > 0,
    equatesByIcu: collations.has('nondeterministic'),
    longestPrefix: Math.max(-1, ...columnsLikeAliases(tables)),
    listed: listedTables(tables, (table) => tableTyped(table, capture.searchPath)),
    held: new Map(),
  }
}

const icu = new WeakMap<Exposed, Exposed>()

/**
 * Returns the exposed catalog for a query that names an ICU collation. PostgreSQL applies the collation to other values
 * through functions, operators and sub-queries, so all values of the query count as compared by ICU.
 */
export function comparedByIcu(exposed: Exposed): Exposed {
  if (exposed.comparesByIcu) return exposed
  const known = icu.get(exposed) ?? { ...exposed, comparesByIcu: true }
  icu.set(exposed, known)
  return known
}

function tableOf(table: Catalog['tables'][number], domains: ReadonlyMap<number, number>): ExposedTable {
  const { detail } = table
  if (!isTableDetail(detail)) throw new TypeError('not a table of PostgreSQL')
  const columns = table.columns.map(({ name, detail: column }) => {
    if (!isColumnDetail(column)) throw new TypeError('not a column of PostgreSQL')
    const { number, typeOid, type, icu, computed } = column
    const isComputed = detail.kind === 'v' || computed === true
    return { name, number, typeOid, describedOid: belowDomains(typeOid, domains), type, icu, isComputed }
  })
  const shown = new Set(columns.map((column) => column.name))
  const primaryKey = detail.primaryKey.every((name) => shown.has(name)) ? detail.primaryKey : []
  const { kind, oid, tables = 1, tuples: rows } = detail
  return { schema: table.schema, name: table.table, kind, oid, tables, rows, columns, primaryKey }
}

function belowDomains(oid: number, domains: ReadonlyMap<number, number>): number {
  let below = oid
  // No type contains itself. The limit protects against a corrupt capture.
  for (let n = 0; n < 32; n++) below = domains.get(below) ?? below
  return below
}

/** For each table that a query reads, the names of the columns that it reads. */
type Used = ReadonlyMap<ExposedTable, ReadonlySet<string>>

const HELD_MAX = 256

/**
 * Returns the tables and columns that must not have changed. Queries that read the same columns get the same list
 * object, so that a session can reuse the descriptions of tables.
 */
export function heldTables({ held }: Exposed, used: Used): readonly ReadTable[] {
  let key = ''
  for (const [table, names] of used) {
    key += `${key === '' ? '' : ' '}${table.oid}`
    for (const { name, number } of table.columns) if (names.has(name)) key += `,${number}`
  }
  const known = held.get(key)
  if (known !== undefined) return known
  const tables = [...used].map(([table, names]) => readTable(table, (column) => names.has(column.name)))
  if (held.size >= HELD_MAX) held.clear()
  held.set(key, tables)
  return tables
}

/** Returns one table with the columns that must not have changed: its first column if none is read (`count(*)`). */
export function readTable(table: ExposedTable, isRead: (column: ExposedColumn) => boolean): ReadTable {
  const read = table.columns.filter(isRead)
  const held = read.length > 0 ? read : table.columns.slice(0, 1)
  const columns = held.map(({ name, number, describedOid }) => ({ name, number, typeOid: describedOid }))
  return { schema: table.schema, table: table.name, oid: table.oid, columns }
}

function columnsLikeAliases(tables: readonly ExposedTable[]): number[] {
  const names = tables.flatMap((table) => table.columns.map((column) => column.name))
  return names.filter((name) => /^_*[tc]\d+$/.test(name)).map((name) => name.search(/[tc]/))
}

function isCapture(value: unknown): value is PostgresCapture {
  return (
    hasField(value, 'serverVersion', 'number') &&
    hasField(value, 'database', 'string') &&
    hasField(value, 'types', 'object')
  )
}

function isTableDetail(value: unknown): value is TableDetail {
  return (
    hasField(value, 'kind', 'string') && hasField(value, 'oid', 'number') && hasField(value, 'primaryKey', 'object')
  )
}

function isColumnDetail(value: unknown): value is ColumnDetail {
  return (
    hasField(value, 'number', 'number') && hasField(value, 'typeOid', 'number') && hasField(value, 'type', 'object')
  )
}
