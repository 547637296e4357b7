// The one query of a profile: some rows of the exposed columns that hold plain values, texts cut, and the keys of JSON. Printed of the catalog's
// own names; what a caller wrote is no part of it.
import { z } from 'zod'
import type { CatalogColumn, ValueKind } from '../../driver.ts'
import { KEY_CHARS_MAX } from '../../key-sample.ts'
import type { BigQueryTableDetail, TableType } from '../capture.ts'
import type { BigQueryQuery } from '../query.ts'
import { Families } from '../shards.ts'

/** One column of a profile. */
export interface ReadColumn {
  readonly name: string
  readonly kind: ValueKind
  /** What is selected for it; null where its values are not looked at. */
  readonly sql: string | null
  /** Its cell lists the keys of a JSON object (keysIn), or is empty for another JSON value. */
  readonly hasKeys?: true
}

const ALIAS = '_vt'
/** Longer texts are not told apart beyond it. */
const CHARS_MAX = 257
/** No row of a table can be sampled by less of it. */
const PERCENT_DIGITS = 6
/** Where BigQuery does not say how many rows there are. */
const PERCENT_BLIND = 1

const KINDS: ReadonlyMap<string, ValueKind> = new Map<string, ValueKind>([
  ['BOOL', 'boolean'],
  ...['INT64', 'FLOAT64', 'NUMERIC', 'BIGNUMERIC'].map((name) => [name, 'number'] as const),
  ...['DATE', 'DATETIME', 'TIMESTAMP'].map((name) => [name, 'time'] as const),
  ...['STRING', 'TIME'].map((name) => [name, 'text'] as const),
])

const Detail = z.object({
  type: z.object({ name: z.string(), repeated: z.boolean() }),
  policyTagged: z.boolean(),
})

/** A policy tag makes every query fail that names its column. */
export function readColumn({ name, detail }: CatalogColumn): ReadColumn {
  const { type, policyTagged } = Detail.parse(detail)
  const kind = type.repeated ? undefined : KINDS.get(type.name)
  const hasKeys = type.name === 'JSON' && !type.repeated
  const isWritable = !/[`\\\p{Cc}]/u.test(name)
  if ((kind === undefined && !hasKeys) || policyTagged || !isWritable) return { name, kind: kind ?? 'other', sql: null }
  const sql = `${ALIAS}.\`${name}\``
  if (kind === undefined) return { name, kind: 'other', sql: keysSql(sql), hasKeys: true }
  return { name, kind, sql: type.name === 'STRING' ? `LEFT(${sql}, ${CHARS_MAX})` : sql }
}

/** Keys read of one value. */
const KEYS_MAX = 200

/** The top-level keys of an object with the types of their values, as JSON; never a value. */
function keysSql(sql: string): string {
  const pair = `LEFT(k, ${KEY_CHARS_MAX + 1}) AS k, JSON_TYPE(${sql}[k]) AS t`
  const keys = `TO_JSON_STRING(ARRAY(SELECT AS STRUCT ${pair} FROM UNNEST(JSON_KEYS(${sql}, 1)) AS k LIMIT ${KEYS_MAX}))`
  return `IF(${sql} IS NULL, NULL, IF(JSON_TYPE(${sql}) = 'object', ${keys}, ''))`
}

const Keys = z.array(z.object({ k: z.string(), t: z.string().nullable() }))

/**
 * The keys that a cell of keysSql() lists, those that may be names; null for a value that is no object. JSON_KEYS quotes a
 * key of other signs than a name's, and no value is found under it.
 */
export function keysIn(cell: string): ReadonlyMap<string, string> | null {
  if (cell === '') return null
  return new Map(
    Keys.parse(JSON.parse(cell)).flatMap(({ k, t }) =>
      t === null || k.length > KEY_CHARS_MAX ? [] : [[k, t] as const],
    ),
  )
}

/** TABLESAMPLE is for what is stored; a view may only be read as it is. */
const SAMPLED: ReadonlySet<TableType> = new Set<TableType>(['TABLE', 'SNAPSHOT'])

export interface SampledTable {
  readonly project: string
  readonly location: string
  readonly dataset: string
  /** Of a family, its newest shard's. */
  readonly id: string
  readonly detail: BigQueryTableDetail
  readonly rows: number | null
  readonly bytes: number | null
}

export interface Sample {
  readonly query: BigQueryQuery
  /** Nothing but the limit of rows cuts it. */
  readonly isWhole: boolean
}

/** At most `rows` rows of the columns, which have a text each, reading about `bytes` at most where that can be chosen. */
export function sampleOf(table: SampledTable, columns: readonly ReadColumn[], rows: number, bytes: number): Sample {
  const { project, dataset, id, detail } = table
  const percent = SAMPLED.has(detail.tableType) ? percentOf(table, rows, bytes) : null
  const list = columns.map(({ sql }, n) => `${sql} AS c${n}`).join(', ')
  const part = percent === null ? '' : ` TABLESAMPLE SYSTEM (${percent} PERCENT)`
  const name = `${project}.${dataset}.${id}`
  const query: BigQueryQuery = {
    text: `SELECT ${list} FROM \`${name}\` AS ${ALIAS}${part} LIMIT ${rows + 1}`,
    params: null,
    project,
    location: table.location,
    rowCap: rows,
    reads: [{ dataset, table: id, columns: columns.map((column) => column.name) }],
    closure: new Set([name, ...(detail.closure ?? [])]),
    shards: new Families([]),
    names: new Map(),
    hasStar: false,
    placeOf: () => null,
    columnHint: () => '',
    alias: ALIAS,
  }
  return { query, isWhole: percent === null }
}

/** Null: all of it, since there are few rows. */
function percentOf(table: SampledTable, rows: number, bytes: number): string | null {
  if (table.rows !== null && table.rows <= rows * 1.2) return null
  const wanted = table.rows === null ? PERCENT_BLIND : (100 * rows) / table.rows
  const paid = table.bytes === null || table.bytes === 0 ? wanted : (90 * bytes) / table.bytes
  return Math.max(Math.min(wanted, paid, 100), 10 ** -PERCENT_DIGITS).toFixed(PERCENT_DIGITS)
}
