// The BigQuery project that the attacks run against. Each hidden table and column contains a sentinel.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DoubleDataset, WireTableResource } from '../../support/bigquery.ts'
import type { World } from '../../engines/bigquery/evaluate-query.ts'
import type { EngineTable, EngineTables } from '../../engines/bigquery/engine.ts'
import { readType, wireField } from '../../engines/bigquery/types.ts'

interface FixtureColumn {
  readonly name: string
  readonly type: string
  readonly mode?: 'REQUIRED'
  readonly primaryKey?: boolean
  /** In the form dataset.table.column. */
  readonly references?: string
}

interface FixtureTable {
  readonly columns: readonly FixtureColumn[]
  readonly rows: EngineTable['rows']
}

interface Fixture {
  readonly project: string
  readonly location: string
  readonly datasets: Readonly<Record<string, { readonly tables: Readonly<Record<string, FixtureTable>> }>>
  /** The keys are dataset.table. `*` means all columns. */
  readonly exposure: Readonly<Record<string, '*' | readonly string[]>> & {
    readonly wildcards: Readonly<Record<string, { readonly tables: readonly string[] }>>
  }
  readonly sentinels: readonly string[]
}

export interface Item {
  readonly id: string
  readonly sql: string
  readonly class: string
  readonly expect?: 'deny' | 'no-leak'
  readonly note?: string
}

const read = <T>(file: string): T => JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8')) as T

export const FIXTURE = read<Fixture>('fixture.json')
export const ATTACKS = read<readonly Item[]>('attacks.json')
export const LEGIT = read<readonly Item[]>('legit.json')

/**
 * A view over a table that is not exposed. The dry run of a query on the view reports that table. The query is allowed
 * only because introspection has stored that the view reads the table.
 */
const VIEW = { name: 'v_notes', over: 'customer_notes', columns: [{ name: 'customer_id', type: 'INT64' }] } as const

const { project, location } = FIXTURE
const stored = Object.entries(FIXTURE.datasets).flatMap(([dataset, { tables }]) =>
  Object.entries(tables).map(([table, each]) => ({ dataset, table, ...each })),
)
const view: EngineTable = { columns: VIEW.columns, rows: [{ customer_id: 1 }] }
const viewName = `${project}.shop.${VIEW.name}`

/** The whole project, with the hidden data. */
export const WORLD: World = {
  project,
  location,
  tables: {
    ...Object.fromEntries(stored.map(({ dataset, table, columns, rows }) => [nameOf(dataset, table), { columns, rows }])),
    [viewName]: { ...view, reads: [`${project}.shop.${VIEW.over}`] },
  },
}

/** The project as if hidden tables and columns had never existed. */
export const CUT: EngineTables = {
  ...Object.fromEntries(
    stored.flatMap(({ dataset, table, columns, rows }) => {
      const shown = FIXTURE.exposure[`${dataset}.${table}`]
      if (shown === undefined) return []
      return [[nameOf(dataset, table), { columns: columns.filter((each) => isShown(shown, each.name)), rows }]]
    }),
  ),
  [viewName]: view,
}

/** Has more hidden data than WORLD, and other values. Results must be the same on both. */
export const OTHER_WORLD: World = {
  ...WORLD,
  tables: Object.fromEntries(
    Object.entries(WORLD.tables).map(([name, table]) => {
      const names = shownOf(name) ?? []
      const other = (row: EngineTable['rows'][number], mark: string) =>
        Object.fromEntries(Object.entries(row).map(([column, value]) => {
          return [column, names.includes(column) || typeof value !== 'string' ? value : `${value}${mark}`]
        }))
      const rows = table.rows.map((row) => other(row, ' otherwise'))
      return [name, { ...table, rows: names.length > 0 ? rows : [...rows, ...table.rows.map((row) => other(row, ' more'))] }]
    }),
  ),
}

/** Returns the exposed columns in the order of the table, or null if the table is hidden. `name` is the full name. */
export function shownOf(name: string): readonly string[] | null {
  return CUT[name]?.columns.map((column) => column.name) ?? null
}

/** Shards with a date are one family (`events_*`), as introspection lists them. */
export const EXPOSED = [
  ...Object.entries(FIXTURE.exposure)
    .filter(([name]) => name !== 'wildcards' && !/_\d{8}$/.test(name))
    .map(([name, columns]) => ({ ...placeOf(name), columns: columns === '*' ? null : columns })),
  ...Object.keys(FIXTURE.exposure.wildcards).map((name) => ({ ...placeOf(name), columns: null })),
  { schema: 'shop', table: VIEW.name, columns: null },
]

export const DATASETS: Readonly<Record<string, DoubleDataset>> = Object.fromEntries(
  Object.entries(FIXTURE.datasets).map(([dataset, { tables }]) => {
    const listed = Object.entries(tables).map(([table, each]) => [table, resourceOf(each)] as const)
    const views = dataset === 'shop' ? [[VIEW.name, viewResource()] as const] : []
    return [dataset, { tables: Object.fromEntries([...listed, ...views]) }]
  }),
)

/**
 * True if a table (`p.d.t`) or column (`p.d.t.c`) is hidden. A wildcard of an exposed family counts as exposed, because
 * its rows are checked.
 */
export function isHidden(read: string): boolean {
  const [, dataset = '', table = '', column] = read.split('.')
  if (`${project}.${dataset}.${table}` === viewName) return false
  const family = Object.entries(FIXTURE.exposure.wildcards).find(([name]) => wildcardWithin(`${dataset}.${table}`, name))
  if (family !== undefined) return false
  const shown = FIXTURE.exposure[`${dataset}.${table}`]
  return shown === undefined || (column !== undefined && !isShown(shown, column))
}

function isShown(shown: '*' | readonly string[], column: string): boolean {
  return shown === '*' || shown.includes(column)
}

function wildcardWithin(name: string, family: string): boolean {
  return name.endsWith('*') && name.slice(0, -1).startsWith(family.slice(0, -1))
}

function nameOf(dataset: string, table: string): string {
  return `${project}.${dataset}.${table}`
}

function placeOf(name: string): { schema: string; table: string } {
  const [schema = '', table = ''] = name.split('.')
  return { schema, table }
}

function resourceOf({ columns, rows }: FixtureTable): WireTableResource {
  const keys = columns.filter((each) => each.primaryKey === true).map((each) => each.name)
  const foreignKeys = columns.flatMap(({ name, references }) => {
    const [datasetId, tableId, referencedColumn] = references?.split('.') ?? []
    if (datasetId === undefined) return []
    const referencedTable = { projectId: project, datasetId, tableId }
    return [{ name, referencedTable, columnReferences: [{ referencingColumn: name, referencedColumn }] }]
  })
  return {
    schema: { fields: columns.map(({ name, type, mode }) => wireField(name, readType(type), mode)) },
    numRows: String(rows.length),
    numBytes: '1024',
    creationTime: '1704067200000',
    ...(keys.length + foreignKeys.length > 0 && {
      tableConstraints: { ...(keys.length > 0 && { primaryKey: { columns: keys } }), foreignKeys },
    }),
  }
}

function viewResource(): WireTableResource {
  const query = `SELECT customer_id FROM \`${project}.shop.${VIEW.over}\``
  const fields = VIEW.columns.map(({ name, type }) => wireField(name, readType(type)))
  return { type: 'VIEW', schema: { fields }, view: { query, useLegacySql: false } }
}
