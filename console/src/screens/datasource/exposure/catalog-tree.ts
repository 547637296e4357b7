// Builds the tree of schemas, tables and columns from the catalog, and finds the columns that a choice shows.
import type { Answer } from '../../../api/types.ts'
import { tableKey, type Choice } from './choice.ts'

export type Catalog = Answer<'getCatalog'>
type CatalogTable = Catalog['tables'][number]
type CatalogColumn = CatalogTable['columns'][number]

export interface TableNode {
  readonly key: string
  readonly of: CatalogTable
  readonly columns: readonly ColumnNode[]
  readonly exposable: number
}

export interface ColumnNode {
  readonly of: CatalogColumn
  /** 0 for a column, 1 for a part of a column, … */
  readonly depth: number
}

export interface SchemaNode {
  readonly name: string
  readonly tables: readonly TableNode[]
}

export function nodesOf(catalog: Catalog): readonly SchemaNode[] {
  const schemas = new Map<string, TableNode[]>()
  for (const table of catalog.tables) {
    const exposable = table.columns.reduce((count, { unexposable }) => count + (unexposable === undefined ? 1 : 0), 0)
    const node = { key: tableKey(table.schema, table.table), of: table, columns: columnNodes(table), exposable }
    const tables = schemas.get(table.schema)
    if (tables === undefined) schemas.set(table.schema, [node])
    else tables.push(node)
  }
  return [...schemas].map(([name, tables]) => ({ name, tables }))
}

/** Returns the columns of a table. A column comes before its parts. */
function columnNodes(table: CatalogTable): ColumnNode[] {
  const depths = new Map<string, number>()
  return table.columns.map((column) => {
    const depth = column.partOf === undefined ? 0 : (depths.get(column.partOf) ?? -1) + 1
    depths.set(column.name, depth)
    return { of: column, depth }
  })
}

const NOTHING: ReadonlySet<string> = new Set()
const shownBySet = new WeakMap<ReadonlySet<string>, { readonly node: TableNode; readonly shown: ReadonlySet<string> }>()

/**
 * Returns the columns of a table that a choice shows: the selected columns and their parts, without columns that cannot
 * be exposed.
 */
export function shownIn(node: TableNode, choice: Choice): ReadonlySet<string> {
  const chosen = choice.get(node.key)
  if (chosen === undefined) return NOTHING
  const known = shownBySet.get(chosen)
  if (known?.node === node) return known.shown
  const shown = new Set<string>()
  for (const { of } of node.columns) {
    if (of.unexposable !== undefined) continue
    if (chosen.has(of.name) || (of.partOf !== undefined && shown.has(of.partOf))) shown.add(of.name)
  }
  shownBySet.set(chosen, { node, shown })
  return shown
}

export type Checked = 'true' | 'false' | 'mixed'

/** The columns of a table that one checkbox controls. */
export interface Part {
  readonly node: TableNode
  readonly columns: readonly ColumnNode[]
}

/** Returns the state of the checkbox for these columns. Columns that cannot be exposed do not count. */
export function checkedOf(parts: readonly Part[], choice: Choice): Checked {
  let [on, off] = [false, false]
  for (const { node, columns } of parts) {
    const shown = shownIn(node, choice)
    // A checkbox may control thousands of tables, so whole tables are counted without visiting their columns.
    if (columns === node.columns) {
      if (shown.size > 0) on = true
      if (shown.size < node.exposable) off = true
    } else {
      for (const { of } of columns) {
        if (of.unexposable !== undefined) continue
        if (shown.has(of.name)) on = true
        else off = true
      }
    }
    if (on && off) return 'mixed'
  }
  return on ? 'true' : 'false'
}

export const canBeTicked = (parts: readonly Part[]) =>
  parts.some(({ node, columns }) =>
    columns === node.columns ? node.exposable > 0 : columns.some(({ of }) => of.unexposable === undefined),
  )

/**
 * Returns the names to add to or remove from the choice for these columns. Showing a column also shows its parts.
 * Hiding a column also removes the names of its parts. If all columns of a table are hidden, names that the database no
 * longer has are removed too.
 */
export function namesOf({ node, columns }: Part, on: boolean, choice: Choice): Iterable<string> {
  if (!on) {
    if (columns.length === node.columns.length) return choice.get(node.key) ?? NOTHING
    const hidden = new Set(columns.map(({ of }) => of.name))
    for (const { of } of node.columns) if (of.partOf !== undefined && hidden.has(of.partOf)) hidden.add(of.name)
    return hidden
  }
  const names = new Set<string>()
  const covered = new Set<string>()
  for (const { of } of columns) {
    if (of.unexposable !== undefined) continue
    if (of.partOf === undefined || !covered.has(of.partOf)) names.add(of.name)
    covered.add(of.name)
  }
  return names
}

export interface Totals {
  readonly tables: number
  readonly tablesShown: number
  readonly columns: number
  readonly columnsShown: number
}

export function totalsOf(schemas: readonly SchemaNode[], choice: Choice): Totals {
  const totals = { tables: 0, tablesShown: 0, columns: 0, columnsShown: 0 }
  for (const { tables } of schemas) {
    for (const node of tables) {
      const { size } = shownIn(node, choice)
      totals.tables++
      totals.columns += node.columns.length
      totals.columnsShown += size
      if (size > 0) totals.tablesShown++
    }
  }
  return totals
}
