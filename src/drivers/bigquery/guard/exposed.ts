// Finds exposed tables, views and shard families by name. The look-up is built once for each catalog. Throws TypeError
// for a catalog of another kind of database.
import type { Catalog, CatalogTable } from '../../driver.ts'
import { catalogLookup, checkVersion, hasField, listedTables } from '../../catalog-lookup.ts'
import { CAPTURE_VERSION, type BigQueryCapture, type BigQueryTableDetail, type ShardFamily } from '../captured-facts.ts'
import { Families } from '../shard-families.ts'
import { quotedPath } from './did-you-mean.ts'

export interface ExposedTable {
  readonly dataset: string
  /** The name of a family ends in `*`. */
  readonly table: string
  /** The exposed columns that can be printed, in the table's order. There is at least one. */
  readonly columns: readonly string[]
  readonly names: ReadonlySet<string>
  /** All columns, also the hidden ones, in lower case. */
  readonly all: ReadonlySet<string>
  /** Like the `detail` of the CatalogTable, but `pseudoColumns` has only the exposed pseudo columns. */
  readonly detail: BigQueryTableDetail
}

export interface ExposedFamily extends ShardFamily {
  readonly of: ExposedTable
}

export interface Exposed {
  readonly capture: BigQueryCapture
  /**
   * Finds an exposed table, view or shard. `id` is its name in the database's spelling. Returns null for unknown and
   * hidden names, and for wildcards.
   */
  find(dataset: string, table: string): { readonly of: ExposedTable; readonly id: string } | null
  /** Exposed or not. */
  ids(dataset: string): readonly string[]
  families(dataset: string): readonly ExposedFamily[]
  /** The key is the id. Families are not included. */
  tables(dataset: string): ReadonlyMap<string, ExposedTable>
  /** Returns the exposed tables with this name in all datasets, as `dataset.table`. */
  named(table: string): readonly string[]
  /** Exposed and hidden columns whose names start with `_vt`, in lower case. A generated name must differ from them. */
  readonly likeOurs: readonly string[]
  /** The names of everything exposed, as `dataset.table`. */
  readonly names: readonly string[]
  /** A sentence for a hint that lists what is exposed. */
  readonly listed: string
}

/** A name that does not match cannot be written in backquotes. */
const PRINTABLE = /^[^`\\\p{Cc}]+$/u

/** Cached for the catalog object. Throws AppError SCHEMA_STALE if the stored facts have another version. */
export const exposedOf: (catalog: Catalog) => Exposed = catalogLookup('BigQuery', isCapture, build)

interface Dataset {
  readonly tables: Map<string, ExposedTable>
  readonly families: ExposedFamily[]
  /** Finds the family of a shard. Empty until all families are known. */
  byShard: Families<ExposedFamily>
  /** The spelling of each table name. The key is the name in lower case. Null unless the dataset ignores case. */
  readonly spellings: Map<string, string> | null
}

const NO_FAMILY = new Families<ExposedFamily>([])
const NOTHING: Dataset = { tables: new Map(), families: [], byShard: NO_FAMILY, spellings: null }

function build(catalog: Catalog, capture: BigQueryCapture): Exposed {
  checkVersion(capture, CAPTURE_VERSION, 'project')
  const tables = catalog.tables.map(tableOf).filter((table) => table !== null)
  const datasets = datasetsOf(tables, capture)
  const dataset = (name: string) => datasets.get(name) ?? NOTHING
  // The name comes from the caller and may be `constructor`.
  const ids = (name: string) => (Object.hasOwn(capture.tableIds, name) ? (capture.tableIds[name] ?? []) : [])
  return {
    capture,
    find: (name, table) => find(dataset(name), table),
    ids,
    families: (name) => dataset(name).families,
    tables: (name) => dataset(name).tables,
    named: (name) => tables.filter(({ table }) => table === name).map(nameOf),
    likeOurs: tables.flatMap(({ all }) => [...all].filter(isLikeOurs)),
    names: tables.map(({ dataset: own, table }) => `${own}.${table}`),
    listed: listedTables(tables, nameOf),
  }
}

function datasetsOf(tables: readonly ExposedTable[], capture: BigQueryCapture): Map<string, Dataset> {
  const datasets = new Map<string, Dataset>()
  for (const table of tables) {
    const spellings = capture.caseInsensitiveDatasets.includes(table.dataset) ? new Map<string, string>() : null
    const dataset: Dataset = datasets.get(table.dataset) ?? {
      tables: new Map(),
      families: [],
      byShard: NO_FAMILY,
      spellings,
    }
    datasets.set(table.dataset, dataset)
    const { family } = table.detail
    if (family !== null) dataset.families.push({ ...family, of: table })
    else dataset.tables.set(table.table, table)
    dataset.spellings?.set(table.table.toLowerCase(), table.table)
  }
  for (const dataset of datasets.values()) dataset.byShard = new Families(dataset.families)
  return datasets
}

function find(dataset: Dataset, name: string): { of: ExposedTable; id: string } | null {
  const id = dataset.spellings?.get(name.toLowerCase()) ?? name
  const table = dataset.tables.get(id)
  if (table !== undefined) return { of: table, id }
  const family = dataset.byShard.of(id)
  return family === null ? null : { of: family.of, id }
}

/**
 * Returns null, as for a hidden table, if the name of the table or dataset cannot be printed, or none of the exposed
 * columns can.
 */
function tableOf(table: CatalogTable): ExposedTable | null {
  const { detail } = table
  if (!isDetail(detail)) throw new TypeError('not a table of BigQuery')
  // Introspection lists pseudo columns, so that an exposure can show or hide them. But `SELECT *` does not return them.
  const shown = new Set(table.columns.map(({ name }) => name))
  const pseudoColumns = detail.pseudoColumns.filter((name) => shown.has(name))
  for (const name of detail.pseudoColumns) shown.delete(name)
  const columns = [...shown].filter((name) => PRINTABLE.test(name))
  if (columns.length === 0 || !PRINTABLE.test(table.schema) || !PRINTABLE.test(table.table)) return null
  const names = new Set(columns.map((name) => name.toLowerCase()))
  const all = new Set([...detail.columns.map((name) => name.toLowerCase()), ...names])
  return { dataset: table.schema, table: table.table, columns, names, all, detail: { ...detail, pseudoColumns } }
}

const OURS = '_vt'

export function isLikeOurs(name: string): boolean {
  return name.startsWith(OURS)
}

function nameOf({ dataset, table }: ExposedTable): string {
  return quotedPath(`${dataset}.${table}`)
}

function isCapture(value: unknown): value is BigQueryCapture {
  return (
    hasField(value, 'project', 'string') &&
    hasField(value, 'location', 'string') &&
    hasField(value, 'tableIds', 'object')
  )
}

function isDetail(value: unknown): value is BigQueryTableDetail {
  return (
    hasField(value, 'tableType', 'string') &&
    hasField(value, 'columns', 'object') &&
    hasField(value, 'pseudoColumns', 'object')
  )
}
