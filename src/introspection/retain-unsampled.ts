// Pure: kinds that learn columns from a sample of rows do not meet a rare one each time. What the last introspection knew
// and this one did not meet is carried on for as long as that can be chance, so that neither the exposure nor the drift
// flaps with the sample.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { tableKey, type ShownTable } from '../exposure/cut.ts'

/** Less likely than this it is no chance that a column was not met: it is gone. */
const CHANCE_MIN = 0.001
/** Of an exposed column met in fewer rows than this share, no sample can tell that it is gone. */
const RARE = 0.01
/** Columns a table is carried up to; exposed ones are carried beyond. */
const COLUMNS_MAX = 500

/** `before` is of the same connection; `exposed` is what must not come and go. */
export function retainUnsampled(before: Catalog, after: Catalog, exposed: readonly ShownTable[]): Catalog {
  const known = new Map(before.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const shown = new Map(exposed.map((table) => [tableKey(table.schema, table.table), new Set(table.columns)]))
  const tables = after.tables.map((table) => {
    const key = tableKey(table.schema, table.table)
    const was = known.get(key)
    return was === undefined ? table : carriedTable(was, table, shown.get(key) ?? new Set())
  })
  return { ...after, tables }
}

function carriedTable(was: CatalogTable, table: CatalogTable, exposed: ReadonlySet<string>): CatalogTable {
  const { looked } = table
  // All rows were looked at: what was not met is not there. But of no rows nothing is learnt: it may be filled anew.
  if (looked === undefined || (looked.all && looked.rows > 0)) return table
  const met = new Set(table.columns.map((column) => column.name))
  const kept = new Map<string, CatalogColumn>()
  let free = COLUMNS_MAX - met.size
  for (const column of was.columns) {
    if (met.has(column.name)) continue
    const isExposed = exposed.has(column.name)
    const aged = agedColumn(column, looked.rows, isExposed)
    if (aged === null || (!isExposed && --free < 0)) continue
    kept.set(column.name, aged)
  }
  return kept.size === 0 ? table : { ...table, columns: inserted(was.columns, table.columns, kept) }
}

/** The column after `rows` more in which it was not; null where it is gone. */
function agedColumn(column: CatalogColumn, rows: number, isExposed: boolean): CatalogColumn | null {
  const { seen } = column
  if (rows === 0) return column
  if (seen === undefined || seen.rows === 0) return null
  const share = seen.rows / seen.of
  const missed = seen.missed + rows
  const isChance = (1 - share) ** missed >= CHANCE_MIN || (isExposed && share < RARE)
  return isChance ? { ...column, nullable: true, seen: { ...seen, missed } } : null
}

/** Each kept column behind the one that it stood behind before. */
function inserted(
  was: readonly CatalogColumn[],
  is: readonly CatalogColumn[],
  kept: ReadonlyMap<string, CatalogColumn>,
): readonly CatalogColumn[] {
  const behind = new Map<string | null, CatalogColumn[]>()
  let last: string | null = null
  const met = new Set(is.map((column) => column.name))
  for (const { name } of was) {
    const column = kept.get(name)
    if (column !== undefined) behind.set(last, [...(behind.get(last) ?? []), column])
    else if (met.has(name)) last = name
  }
  return [...(behind.get(null) ?? []), ...is.flatMap((column) => [column, ...(behind.get(column.name) ?? [])])]
}
