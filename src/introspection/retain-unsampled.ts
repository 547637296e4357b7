// Some databases do not declare their columns, so introspection finds columns in a sample of rows. A sample may miss a
// rare column by chance, and without the column, the exposure would drift. So a known column is retained as long as its
// absence may be chance.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { tableKey, type ShownTable } from '../exposure/cut-catalog.ts'

/** A column is removed when the probability that the samples missed it by chance is lower than this. */
const CHANCE_MIN = 0.001
/** An exposed column that fewer than this share of rows had is never removed because of samples. */
const RARE = 0.01
/** If a table has this many columns, no more missing columns are retained, except exposed ones. */
const COLUMNS_MAX = 500

/** Returns `after` with the retained columns. Both catalogs must come from the same connection. */
export function retainUnsampled(before: Catalog, after: Catalog, exposed: readonly ShownTable[]): Catalog {
  const known = new Map(before.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const shown = new Map(exposed.map((table) => [tableKey(table.schema, table.table), new Set(table.columns)]))
  const tables = after.tables.map((table) => {
    const key = tableKey(table.schema, table.table)
    const was = known.get(key)
    return was === undefined ? table : withRetained(was, table, shown.get(key) ?? new Set())
  })
  return { ...after, tables }
}

function withRetained(was: CatalogTable, table: CatalogTable, exposed: ReadonlySet<string>): CatalogTable {
  const { looked } = table
  // If all rows were read, a missing column was removed. An empty table proves nothing, because it may be filled again.
  if (looked === undefined || (looked.all && looked.rows > 0)) return table
  const met = new Set(table.columns.map((column) => column.name))
  const retained = new Map<string, CatalogColumn>()
  let free = COLUMNS_MAX - met.size
  for (const column of was.columns) {
    if (met.has(column.name)) continue
    const isExposed = exposed.has(column.name)
    const aged = agedColumn(column, looked.rows, isExposed)
    if (aged === null || (!isExposed && --free < 0)) continue
    retained.set(column.name, aged)
  }
  return retained.size === 0 ? table : { ...table, columns: inserted(was.columns, table.columns, retained) }
}

/** Counts `rows` more sampled rows without the column. Returns null if the column must be removed. */
function agedColumn(column: CatalogColumn, rows: number, isExposed: boolean): CatalogColumn | null {
  const { seen } = column
  if (rows === 0) return column
  if (seen === undefined || seen.rows === 0) return null
  const share = seen.rows / seen.of
  const missed = seen.missed + rows
  const isChance = (1 - share) ** missed >= CHANCE_MIN || (isExposed && share < RARE)
  return isChance ? { ...column, nullable: true, seen: { ...seen, missed } } : null
}

/** Inserts each retained column after the column that it followed before. */
function inserted(
  was: readonly CatalogColumn[],
  is: readonly CatalogColumn[],
  retained: ReadonlyMap<string, CatalogColumn>,
): readonly CatalogColumn[] {
  const behind = new Map<string | null, CatalogColumn[]>()
  let last: string | null = null
  const met = new Set(is.map((column) => column.name))
  for (const { name } of was) {
    const column = retained.get(name)
    if (column !== undefined) behind.set(last, [...(behind.get(last) ?? []), column])
    else if (met.has(name)) last = name
  }
  return [...(behind.get(null) ?? []), ...is.flatMap((column) => [column, ...(behind.get(column.name) ?? [])])]
}
