// Tests give tables in a short notation and SQL to the BigQuery guard, and get the printed SQL or the refusal.
import { unseal } from '../../src/drivers/confined.ts'
import type { Catalog, CatalogTable, Limits, Verdict } from '../../src/drivers/driver.ts'
import {
  CAPTURE_VERSION,
  type BigQueryCapture,
  type BigQueryTableDetail,
  type ShardFamily,
} from '../../src/drivers/bigquery/captured-facts.ts'
import { confine } from '../../src/drivers/bigquery/guard/confine.ts'
import type { BigQueryQuery } from '../../src/drivers/bigquery/confined-query.ts'

export const CAPS: Limits = { rowCap: 1_000, maxResponseBytes: 1 << 20, timeoutMs: 1_000, maxCost: 1e9 }

interface Given {
  /** `dataset.table`. A family of shards is `dataset.events_*`, and needs `digits`. */
  readonly name: string
  readonly columns: readonly string[]
  readonly hidden?: readonly string[]
  readonly digits?: number
  /** Ids of tables that look like shards of the family, but are not. */
  readonly apart?: readonly string[]
  readonly detail?: Partial<BigQueryTableDetail>
}

/** `others` are the ids of shards and of hidden tables, as `dataset.table`. */
export function catalogOf(
  tables: readonly Given[],
  others: readonly string[] = [],
  capture: Partial<BigQueryCapture> = {},
): Catalog {
  const ids = [...tables.filter(({ digits }) => digits === undefined).map(({ name }) => name), ...others]
  const tableIds: Record<string, string[]> = {}
  for (const id of ids) {
    const [dataset = '', table = ''] = id.split('.')
    tableIds[dataset] = [...(tableIds[dataset] ?? []), table]
  }
  const full: BigQueryCapture = {
    version: CAPTURE_VERSION,
    project: 'lake-1',
    location: 'EU',
    caseInsensitiveDatasets: [],
    tableIds,
    ...capture,
  }
  return { capturedAt: '2026-01-01T00:00:00Z', tables: tables.map(tableOf), capture: full }
}

function tableOf({ name, columns, hidden = [], digits, apart = [], detail }: Given): CatalogTable {
  const [schema = '', table = ''] = name.split('.')
  const family: ShardFamily | null = digits === undefined ? null : { prefix: table.slice(0, -1), digits, apart }
  const whole: BigQueryTableDetail = {
    tableType: 'TABLE',
    family,
    columns: [...columns, ...hidden].filter((column) => !column.startsWith('_PARTITION')),
    pseudoColumns: [],
    closure: [],
    createdAt: null,
    requirePartitionFilter: false,
    bytes: null,
    ...detail,
  }
  return {
    schema,
    table,
    kind: 'table',
    description: null,
    estimatedRows: null,
    warnings: [],
    columns: [...columns, ...whole.pseudoColumns.filter((pseudo) => !hidden.includes(pseudo))].map((column) => ({
      name: column,
      type: 'STRING',
      nullable: true,
      primaryKey: false,
      references: null,
      description: null,
      unexposable: null,
      detail: {},
    })),
    detail: whole,
  }
}

export function judge(catalog: Catalog, sql: string, limit: number | null = null): Verdict {
  return confine({ text: sql, limit }, catalog, CAPS)
}

/** Throws if the guard refuses. */
export function confined(catalog: Catalog, sql: string): BigQueryQuery {
  const verdict = judge(catalog, sql)
  if (verdict.kind !== 'confined') throw new Error(`${verdict.kind}: ${verdict.why} (${sql})`)
  return unseal<BigQueryQuery>(verdict.query, 'BIGQUERY')
}

/** Returns one line: the printed SQL, the refusal as `kind name`, or `malformed: why`. */
export function outcomeOf(catalog: Catalog, sql: string): string {
  const verdict = judge(catalog, sql)
  if (verdict.kind === 'confined') return unseal<BigQueryQuery>(verdict.query, 'BIGQUERY').text
  return verdict.kind === 'denied' ? `${verdict.blocked.kind} ${verdict.blocked.name}` : `malformed: ${verdict.why}`
}

/** A project with two tables that have a hidden column, a family of shards, a partitioned table, and two views. */
export const SHOP = catalogOf(
  [
    { name: 'shop.customers', columns: ['id', 'name', 'address'], hidden: ['ssn'] },
    { name: 'shop.orders', columns: ['id', 'customer_id', 'items', 'total'], hidden: ['margin'] },
    { name: 'shop.events_*', columns: ['event_name', 'ts'], digits: 8 },
    { name: 'shop.daily', columns: ['id', 'day'], detail: { pseudoColumns: ['_PARTITIONTIME', '_PARTITIONDATE'] } },
    {
      name: 'shop.v_notes',
      columns: ['id'],
      detail: { tableType: 'VIEW', closure: ['lake-1.shop.notes', 'other.x.y'] },
    },
    { name: 'shop.v_new', columns: ['id'], detail: { tableType: 'VIEW', closure: null } },
  ],
  ['shop.notes', 'shop.notez', 'shop.events_20240101', 'shop.events_20240102', 'shop.events_secret', 'hr.salaries'],
)
