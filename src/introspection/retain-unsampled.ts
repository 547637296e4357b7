// Pure: retains columns that a sample of rows missed. A sample does not always contain a rare column. So a missing
// column of the last introspection stays as long as its absence may be chance. Otherwise every sample would change the
// exposed catalog and cause drift.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { tableKey, type ShownTable } from '../exposure/cut-catalog.ts'

/** If the probability of a miss is lower than this, the miss does not count as chance, and the column is removed. */
const CHANCE_MIN = 0.001
/**
 * A sample never removes an exposed column that a smaller share of the rows had, because it cannot prove the removal.
 */
const RARE = 0.01
/**
 * Missing columns are retained only until a table has this many columns. Exposed columns are retained even beyond this
 * number.
 */
const COLUMNS_MAX = 500

/** Returns `after` with the retained columns. `before` must come from the same connection. */
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
  // If all rows were read, a missing column was removed. An empty table is no proof, because it may be filled again.
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

/** Returns the column after `rows` more sampled rows without it. Returns null if it counts as removed. */
function agedColumn(column: CatalogColumn, rows: number, isExposed: boolean): CatalogColumn | null {
  const { seen } = column
  if (rows === 0) return column
  if (seen === undefined || seen.rows === 0) return null
  const share = seen.rows / seen.of
  const missed = seen.missed + rows
  const isChance = (1 - share) ** missed >= CHANCE_MIN || (isExposed && share < RARE)
  return isChance ? { ...column, nullable: true, seen: { ...seen, missed } } : null
}

/** Puts each retained column back behind its former predecessor. */
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
