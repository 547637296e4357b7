// Builds the catalog that the guard gets for a test project: the tables and columns that are exposed.
import type { Catalog, CatalogColumn, CatalogTable } from '../../../src/drivers/driver.ts'
import {
  CAPTURE_VERSION,
  type BigQueryCapture,
  type BigQueryColumnDetail,
  type BigQueryTableDetail,
  type ColumnType,
  type PseudoColumn,
} from '../../../src/drivers/bigquery/captured-facts.ts'
import type { World } from '../../engines/bigquery/evaluate-query.ts'
import type { EngineColumn } from '../../engines/bigquery/engine.ts'
import { readType, type Type } from '../../engines/bigquery/types.ts'

/**
 * Returns the exposed columns and pseudo columns of a table or shard, or null if it is hidden. The parameter is the
 * full name, for example `p.d.events_20240101`.
 */
export type Shown = (table: string) => readonly string[] | null

export function catalogOf(world: World, shown: Shown): Catalog {
  const families = new Map<string, string[]>()
  for (const name of Object.keys(world.tables)) {
    const family = name.replace(/_\d{8}$/, '_*')
    families.set(family, [...(families.get(family) ?? []), name].sort())
  }
  const capture: BigQueryCapture = {
    version: CAPTURE_VERSION,
    project: world.project,
    location: world.location,
    caseInsensitiveDatasets: [],
    tableIds: tableIds(world),
  }
  const tables = [...families].flatMap(([name, shards]) => tableOf(world, name, shards.at(-1) ?? name, shown))
  return { capturedAt: '2026-01-01T00:00:00.000Z', capture, tables }
}

function tableIds(world: World): Record<string, string[]> {
  const ids: Record<string, string[]> = {}
  for (const name of Object.keys(world.tables)) {
    const [, dataset = '', table = ''] = name.split('.')
    ids[dataset] = [...(ids[dataset] ?? []), table]
  }
  return ids
}

function tableOf(world: World, name: string, newest: string, shown: Shown): CatalogTable[] {
  const [, schema = '', table = ''] = name.split('.')
  const own = world.tables[newest]
  const names = shown(newest)
  if (own === undefined || names === null) return []
  const real = own.columns.filter((column) => column.pseudo !== true)
  const isView = own.reads !== undefined
  const detail: BigQueryTableDetail = {
    tableType: isView ? 'VIEW' : 'TABLE',
    family: table.endsWith('*') ? { prefix: table.slice(0, -1), digits: 8, apart: [] } : null,
    columns: real.map((column) => column.name),
    pseudoColumns: own.columns.filter((column) => column.pseudo === true).map((column) => column.name as PseudoColumn),
    closure: own.reads ?? [],
    createdAt: 1_704_067_200_000,
    requirePartitionFilter: false,
    bytes: isView ? null : 1024,
  }
  const columns = own.columns.filter((column) => names.includes(column.name)).map(columnOf)
  if (columns.length === 0) return []
  const columnsRestricted = columns.length < own.columns.length
  const rest = { description: null, estimatedRows: null, warnings: [], columnsRestricted }
  return [{ schema, table, kind: isView ? 'view' : 'table', ...rest, columns, detail }]
}

function columnOf({ name, type }: EngineColumn): CatalogColumn {
  const detail: BigQueryColumnDetail = { type: columnType(readType(type)), policyTagged: false }
  const rest = { nullable: true, primaryKey: false, references: null, description: null, unexposable: null }
  return { name, type, ...rest, detail }
}

function columnType(type: Type): ColumnType {
  if (type.kind === 'array') return { ...columnType(type.of), repeated: true }
  if (type.kind === 'struct') {
    const fields = type.fields.map((field) => ({ field: field.name, ...columnType(field.type) }))
    return { name: 'STRUCT', repeated: false, fields }
  }
  return { name: type.kind === 'range' ? 'RANGE' : type.name, repeated: false, fields: [] }
}
