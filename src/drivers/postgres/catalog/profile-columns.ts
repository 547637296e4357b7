// Decides how a profile reads each column. Short values are read whole, and long ones are cut. Of a JSON object, only
// the keys are read. For other types, the profile reads only whether the value is null. Values have the same form as in
// an answer.
import { z } from 'zod'
import { KEY_CHARS_MAX } from '../../json-keys-from-sample.ts'
import { JsonBytes, writeText, type WriteValue } from '../../json-bytes.ts'
import type { CatalogTable, Scalar, ValueKind } from '../../driver.ts'
import { exposedOf, readTable, type Exposed, type ExposedTable } from '../guard/exposed.ts'
import type { Catalog } from '../../driver.ts'
import type { Captured } from '../confined-query.ts'
import { identifier, literal } from '../quote.ts'
import { TypeBook } from '../session/result-types.ts'
import type { TypeName } from '../captured-facts.ts'

export interface ReadColumn {
  readonly name: string
  readonly kind: ValueKind
  readonly sql: string
  /** Writes the values as an answer shows them. Null if the cell only says whether the value is null, or lists keys. */
  readonly write: WriteValue | null
  /** True if the cell lists the keys of a JSON object, for keysIn(). The cell is empty for other JSON values. */
  readonly hasKeys?: true
}

/** Longer values are cut to this many characters, because a value may be too large for memory. */
const CHARS_MAX = 257

/** For each built-in type, by its oid, the kind of its values. Except for numeric, all are short as text. */
const KINDS: ReadonlyMap<number, ValueKind> = new Map<number, ValueKind>([
  [16, 'boolean'],
  ...[20, 21, 23, 26, 700, 701, 1700].map((oid) => [oid, 'number'] as const),
  ...[1082, 1114, 1184].map((oid) => [oid, 'time'] as const),
  // "char", name, time, timetz, interval, money, uuid, inet, cidr, macaddr, macaddr8
  ...[18, 19, 1083, 1266, 1186, 790, 2950, 869, 650, 829, 774].map((oid) => [oid, 'text'] as const),
])
const [TEXT, VARCHAR, BPCHAR, NUMERIC] = [25, 1043, 1042, 1700]
const types = new TypeBook()

/** Returns how each column of the table is read. Throws TypeError if the catalog has no such table. */
export function readColumns(table: CatalogTable, catalog: Catalog): readonly ReadColumn[] {
  const exposed = exposedOf(catalog)
  const found = exposedTable(table, catalog)
  const shown = new Map(table.columns.map((column) => [column.name, column.type]))
  return found.columns.flatMap((column) => {
    const type = shown.get(column.name)
    return type === undefined ? [] : [readColumn(column, type, exposed)]
  })
}

/** Returns the table and its columns as introspected. Throws TypeError if the catalog has no such table. */
export function profiledTable(table: CatalogTable, catalog: Catalog): Captured {
  const shown = new Set(table.columns.map((column) => column.name))
  const read = readTable(exposedTable(table, catalog), (column) => shown.has(column.name))
  return { reads: [read], implicit: exposedOf(catalog).capture.implicit }
}

function exposedTable({ schema, table }: CatalogTable, catalog: Catalog): ExposedTable {
  const found = exposedOf(catalog).table(schema, table)
  if (found === undefined) throw new TypeError('a profile of a table that is not exposed')
  return found
}

function readColumn(
  column: { readonly name: string; readonly typeOid: number; readonly type: TypeName },
  shownType: string,
  exposed: Exposed,
): ReadColumn {
  const { name } = column
  const sql = identifier(name)
  const base = baseOf(column, exposed)
  if (base === 'enum') return { name, kind: 'label', sql, write: writeText }
  if (base === 'citext') return { name, kind: 'text', sql: cut(`${sql}::pg_catalog.text`), write: writeText }
  if (base === TEXT || base === VARCHAR) return { name, kind: 'text', sql: cut(sql), write: writeText }
  // A short char(n) keeps its padding, as in an answer. Cutting removes it.
  if (base === BPCHAR) return { name, kind: 'text', sql: isShort(shownType) ? sql : cut(sql), write: writeText }
  if (base === JSON_TYPE || base === JSONB)
    return { name, kind: 'other', sql: keysSql(sql, base), write: null, hasKeys: true }
  const kind = KINDS.get(base)
  const write = types.find(base)?.write
  if (kind === undefined || write === undefined) return { name, kind: 'other', sql: `${sql} IS NULL`, write: null }
  const isLong = base === NUMERIC && !/^numeric\(\d{1,2},/.test(shownType)
  return { name, kind, sql: isLong ? cut(`${sql}::pg_catalog.text`) : sql, write }
}

const [JSON_TYPE, JSONB] = [114, 3802]
const KEYS_MAX = 200

/**
 * Returns SQL for the top-level keys of an object, as a JSON list of pairs: the key, and the type of its value. A
 * `json` text with a \\u escape is skipped, because json_each fails for \\u0000 and half a surrogate pair.
 */
function keysSql(sql: string, base: number): string {
  const [of, each, value] =
    base === JSONB
      ? (['jsonb_typeof', 'jsonb_each', 'jsonb'] as const)
      : (['json_typeof', 'json_each', 'json'] as const)
  const column = `${sql}::pg_catalog.${value}`
  const isReadable = base === JSONB ? '' : ` AND pg_catalog.strpos(${sql}::pg_catalog.text, ${literal('\\u')}) = 0`
  const pair = `pg_catalog.json_build_array(pg_catalog.left(e.k, ${KEY_CHARS_MAX + 1}), pg_catalog.${of}(e.v))`
  const keys = `SELECT pg_catalog.json_agg(${pair})::pg_catalog.text FROM (SELECT k, v FROM pg_catalog.${each}(${column}) AS o(k, v) LIMIT ${KEYS_MAX}) e`
  return `CASE WHEN ${sql} IS NULL THEN NULL WHEN pg_catalog.${of}(${column}) = 'object'${isReadable} THEN coalesce((${keys}), '[]') ELSE '' END`
}

const Pairs = z.array(z.tuple([z.string(), z.string()]))

/** Reads a cell of keysSql(), without keys that are too long for a name. Returns null if the value is no object. */
export function keysIn(cell: string): ReadonlyMap<string, string> | null {
  if (cell === '') return null
  return new Map(Pairs.parse(JSON.parse(cell)).filter(([key]) => key.length <= KEY_CHARS_MAX))
}

function cut(sql: string): string {
  return `pg_catalog.left(${sql}, ${CHARS_MAX})`
}

function isShort(type: string): boolean {
  const length = /^character\((\d{1,3})\)$/.exec(type)?.[1]
  return length !== undefined && Number(length) < CHARS_MAX
}

const DOMAINS_MAX = 32

/** Returns 'enum', 'citext', or the oid of a column's built-in type (for a domain, of its base type). Otherwise 0. */
function baseOf(column: { readonly typeOid: number; readonly type: TypeName }, exposed: Exposed) {
  let { typeOid: oid, type: name } = column
  for (let depth = 0; depth < DOMAINS_MAX; depth++) {
    if (name.schema === 'pg_catalog') return oid
    const type = exposed.type(name.schema, name.name)
    if (type?.kind === 'enum') return 'enum'
    if (type?.extension === 'citext' && type.name === 'citext') return 'citext'
    if (type?.kind !== 'domain' || type.of === null) return 0
    oid = type.ofOid
    name = type.of
  }
  return 0
}

const sheet = new JsonBytes(1024)

/** Returns the value as an answer shows it. If it was cut, only a text is returned, and undefined for other types. */
export function scalarAt(write: WriteValue, from: Buffer, start: number, end: number): Scalar | undefined {
  if (write === writeText) return from.toString('utf8', start, end)
  if (end - start >= CHARS_MAX) return undefined
  sheet.length = 0
  write(from, start, end, sheet)
  const value: unknown = JSON.parse(sheet.bytes.toString('utf8', 0, sheet.length))
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}
