// Writes the query of a profile, which samples the exposed columns: their values, with long texts cut, and the keys of
// JSON columns. The query contains only names of the catalog, and nothing that a caller wrote.
import { z } from 'zod'
import type { CatalogColumn, ValueKind } from '../../driver.ts'
import { KEY_CHARS_MAX } from '../../json-keys-from-sample.ts'
import type { BigQueryTableDetail, TableType } from '../captured-facts.ts'
import type { BigQueryQuery } from '../confined-query.ts'
import { Families } from '../shard-families.ts'

export interface ReadColumn {
  readonly name: string
  readonly kind: ValueKind
  /** The expression in the select list. Null if the column is not sampled. */
  readonly sql: string | null
  /** The cell of a JSON object lists its keys (see keysIn). The cell of any other JSON value is empty. */
  readonly hasKeys?: true
}

const ALIAS = '_vt'
/** A longer text is cut after this number of characters. So long texts with the same start count as equal. */
const CHARS_MAX = 257
const PERCENT_DIGITS = 6
/** The percentage of TABLESAMPLE if BigQuery does not report the number of rows. */
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

/** A column with a policy tag is not sampled, because every query that names it may fail. */
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

/** The number of keys of one JSON value that are sampled. */
const KEYS_MAX = 200

/**
 * Returns SQL for the top-level keys of a JSON object, with the type of each value. The values themselves are never
 * selected.
 */
function keysSql(sql: string): string {
  const pair = `LEFT(k, ${KEY_CHARS_MAX + 1}) AS k, JSON_TYPE(${sql}[k]) AS t`
  const keys = `TO_JSON_STRING(ARRAY(SELECT AS STRUCT ${pair} FROM UNNEST(JSON_KEYS(${sql}, 1)) AS k LIMIT ${KEYS_MAX}))`
  return `IF(${sql} IS NULL, NULL, IF(JSON_TYPE(${sql}) = 'object', ${keys}, ''))`
}

const Keys = z.array(z.object({ k: z.string(), t: z.string().nullable() }))

/**
 * Reads a cell of keysSql(): each key with the JSON type of its value. Returns null if the value was no object. Leaves
 * out keys that are longer than KEY_CHARS_MAX, and keys with special characters: JSON_KEYS quotes such a key, and
 * BigQuery then finds no value for the quoted key.
 */
export function keysIn(cell: string): ReadonlyMap<string, string> | null {
  if (cell === '') return null
  return new Map(
    Keys.parse(JSON.parse(cell)).flatMap(({ k, t }) =>
      t === null || k.length > KEY_CHARS_MAX ? [] : [[k, t] as const],
    ),
  )
}

/** BigQuery refuses TABLESAMPLE of a view. */
const SAMPLED: ReadonlySet<TableType> = new Set<TableType>(['TABLE', 'SNAPSHOT'])

export interface SampledTable {
  readonly project: string
  readonly location: string
  readonly dataset: string
  /** For a family, the id of its newest shard. */
  readonly id: string
  readonly detail: BigQueryTableDetail
  readonly rows: number | null
  readonly bytes: number | null
}

export interface Sample {
  readonly query: BigQueryQuery
  /** True if the sample may contain every row, because TABLESAMPLE is not used. */
  readonly isWhole: boolean
}

/**
 * Returns a query for at most `rows` rows. Each column must have `sql`. If possible, the query reads at most about
 * `bytes` bytes.
 */
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

/** Returns null if the table has so few rows that the query reads all of it. */
function percentOf(table: SampledTable, rows: number, bytes: number): string | null {
  if (table.rows !== null && table.rows <= rows * 1.2) return null
  const wanted = table.rows === null ? PERCENT_BLIND : (100 * rows) / table.rows
  const paid = table.bytes === null || table.bytes === 0 ? wanted : (90 * bytes) / table.bytes
  return Math.max(Math.min(wanted, paid, 100), 10 ** -PERCENT_DIGITS).toFixed(PERCENT_DIGITS)
}
