// Reduces a catalog to the saved exposure. Leaves out names that introspection no longer finds, and columns that may no
// longer be exposed. Columns that were added after the save are shown only if they are nested in an exposed column.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'

export { tableKey } from '../drivers/table-key.ts'

export interface ShownTable {
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[]
}

/** Returns the exposed tables and columns, in database order. Removes references to hidden columns. */
export function cut(catalog: Catalog, exposure: readonly ShownTable[]): Catalog {
  const visible = visibleNames(catalog, exposure)
  const tables: CatalogTable[] = []
  for (const table of catalog.tables) {
    const names = visible.get(tableKey(table.schema, table.table))
    if (names === undefined) continue
    const columns = table.columns.filter((column) => names.has(column.name)).map((column) => cutColumn(column, visible))
    const columnsRestricted = columns.length < table.columns.length
    const { indexes } = table
    const shown = indexes?.filter((index) => index.keys.every((key) => names.has(key.path)))
    tables.push({ ...table, columns, columnsRestricted, ...(shown === undefined ? {} : { indexes: shown }) })
  }
  return { capturedAt: catalog.capturedAt, capture: catalog.capture, tables }
}

/** Returns the names of the exposed columns of each exposed table. The keys are from tableKey(). */
export function visibleNames(
  catalog: Catalog,
  exposure: readonly ShownTable[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const chosen = new Map(exposure.map((shown) => [tableKey(shown.schema, shown.table), new Set(shown.columns)]))
  const visible = new Map<string, ReadonlySet<string>>()
  for (const table of catalog.tables) {
    const names = chosen.get(tableKey(table.schema, table.table))
    if (names === undefined) continue
    const shown = shownNames(table, names)
    if (shown.size > 0) visible.set(tableKey(table.schema, table.table), shown)
  }
  return visible
}

/** Adds nested columns to the chosen columns. In a catalog, a parent column always comes before its nested columns. */
function shownNames(table: CatalogTable, chosen: ReadonlySet<string>): Set<string> {
  const shown = new Set<string>()
  for (const { name, unexposable, partOf } of table.columns) {
    if (unexposable !== null) continue
    if (chosen.has(name) || (partOf !== undefined && shown.has(partOf))) shown.add(name)
  }
  return shown
}

function cutColumn(column: CatalogColumn, visible: ReadonlyMap<string, ReadonlySet<string>>): CatalogColumn {
  const to = column.references
  if (to === null || visible.get(tableKey(to.schema, to.table))?.has(to.column) === true) return column
  return { ...column, references: null }
}
