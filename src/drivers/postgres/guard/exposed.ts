// What a caller may read, as the guard looks it up: tables and columns of the exposed catalog by name, and the types and
// extensions of its capture. Built once for a catalog; a catalog that is not one of PostgreSQL is a TypeError.
import type { Catalog } from '../../driver.ts'
import { catalogLookup, checkVersion, hasField, listedTables } from '../../catalog-lookup.ts'
import type { ReadTable } from '../query.ts'
import { tableTyped } from './hints.ts'
import {
  CAPTURE_VERSION,
  type CapturedExtension,
  type CapturedType,
  type ColumnDetail,
  type PostgresCapture,
  type TableDetail,
  type TypeName,
} from '../capture.ts'

export interface ExposedColumn {
  readonly name: string
  readonly number: number
  readonly typeOid: number
  /** As RowDescription tells it: for a domain the type below it. */
  readonly describedOid: number
  readonly type: TypeName
}

export interface ExposedTable {
  readonly schema: string
  readonly name: string
  readonly kind: TableDetail['kind']
  readonly oid: number
  /** By number, as the server keeps them. */
  readonly columns: readonly ExposedColumn[]
  /** Empty where the key is not shown whole. */
  readonly primaryKey: readonly string[]
}

export interface Exposed {
  readonly capture: PostgresCapture
  /** 14, 15 … */
  readonly major: number
  readonly tables: readonly ExposedTable[]
  /** The table of this name: in this schema, or without one the first on the login's path. */
  table(schema: string | undefined, name: string): ExposedTable | undefined
  /** A type that is not built in. */
  type(schema: string, name: string): CapturedType | undefined
  extension(name: string): CapturedExtension | undefined
  /** Symbols that an extension on the session's path has: unqualified, the server chooses by type. */
  readonly pathOperators: ReadonlySet<string>
  /** Underscores of the column named most like one of our aliases (__t1: 2); -1 without any. */
  readonly longestPrefix: number
  /** What is exposed, for a hint. */
  readonly listed: string
}

/** The look-up of an exposed catalog; made once for the object. */
export const exposedOf: (catalog: Catalog) => Exposed = catalogLookup('PostgreSQL', isCapture, build)

function build(catalog: Catalog, capture: PostgresCapture): Exposed {
  checkVersion(capture, CAPTURE_VERSION, 'database')
  const domains = new Map(
    capture.types.flatMap(({ oid, kind, ofOid }) => (kind === 'domain' ? [[oid, ofOid] as const] : [])),
  )
  const tables = catalog.tables.map((table) => tableOf(table, domains))
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
    longestPrefix: Math.max(-1, ...columnsLikeAliases(tables)),
    listed: listedTables(tables, (table) => tableTyped(table, capture.searchPath)),
  }
}

function tableOf(table: Catalog['tables'][number], domains: ReadonlyMap<number, number>): ExposedTable {
  const { detail } = table
  if (!isTableDetail(detail)) throw new TypeError('not a table of PostgreSQL')
  const columns = table.columns.map(({ name, detail: column }) => {
    if (!isColumnDetail(column)) throw new TypeError('not a column of PostgreSQL')
    const { number, typeOid, type } = column
    return { name, number, typeOid, describedOid: belowDomains(typeOid, domains), type }
  })
  const shown = new Set(columns.map((column) => column.name))
  const primaryKey = detail.primaryKey.every((name) => shown.has(name)) ? detail.primaryKey : []
  return { schema: table.schema, name: table.table, kind: detail.kind, oid: detail.oid, columns, primaryKey }
}

function belowDomains(oid: number, domains: ReadonlyMap<number, number>): number {
  let below = oid
  // Types do not hold themselves; the count is against a capture that says so.
  for (let n = 0; n < 32; n++) below = domains.get(below) ?? below
  return below
}

/** A table to be held to. One of which no column is read (count(*), say) is held to its first. */
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
