// Computes the rows of the tree for a filter and a set of open rows.
import type { Answer } from '../../../api/types.ts'
import { tableKey, type Choice } from './choice.ts'
import { shownIn, type ColumnNode, type Part, type SchemaNode, type TableNode } from './catalog-tree.ts'

export const SHOW = ['all', 'exposed', 'hidden', 'new', 'personal', 'wanted'] as const
export type Show = (typeof SHOW)[number]

export interface Filter {
  readonly text: string
  readonly show: Show
}

/**
 * The tables (tableKey) and columns (tableKey and column) that were added to the database since the exposure was saved.
 */
export type Added = ReadonlySet<string>

export const addedOf = (drift: Answer<'getDrift'> | undefined): Added =>
  new Set(drift?.added.map(({ schema, table, column }) => addedKey(tableKey(schema, table), column)))

const addedKey = (table: string, column: string | undefined) => (column === undefined ? table : `${table}\0${column}`)

export const isAdded = (added: Added, table: TableNode, column?: ColumnNode) =>
  added.has(table.key) || (column !== undefined && added.has(addedKey(table.key, column.of.name)))

/** A schema with the tables and columns that match the filter. */
export interface Found {
  readonly name: string
  readonly parts: readonly FoundTable[]
}

interface FoundTable extends Part {
  /** True if the table matches because of some of its columns. The row of the table is then open by default. */
  readonly byColumns: boolean
}

export interface FilterContext {
  readonly choice: Choice
  readonly added: Added
}

export function find(schemas: readonly SchemaNode[], filter: Filter, context: FilterContext): readonly Found[] {
  const text = filter.text.trim().toLowerCase()
  const found: Found[] = []
  for (const { name, tables } of schemas) {
    const parts = tables.flatMap((node) => foundIn(node, text, filter.show, context) ?? [])
    if (parts.length > 0) found.push({ name, parts })
  }
  return found
}

function foundIn(node: TableNode, text: string, show: Show, context: FilterContext): FoundTable | null {
  const named = text === '' || `${node.of.schema}.${node.of.table}`.toLowerCase().includes(text)
  if (named && show === 'all') return { node, columns: node.columns, byColumns: false }
  const fits = fitterOf(node, show, context)
  const columns = node.columns.filter(
    (column) => (named || column.of.name.toLowerCase().includes(text)) && fits(column),
  )
  // The refusal of a hidden table names no column, so the table itself matches.
  const isWanted = show === 'wanted' && named && isTableWanted(node, context.choice)
  if (columns.length === 0) return isWanted ? { node, columns: node.columns, byColumns: false } : null
  return { node, columns, byColumns: !named || show === 'personal' || show === 'wanted' || show === 'new' }
}

const isTableWanted = (node: TableNode, choice: Choice) => node.of.refusals7d > 0 && shownIn(node, choice).size === 0

function fitterOf(node: TableNode, show: Show, { choice, added }: FilterContext): (column: ColumnNode) => boolean {
  const shown = shownIn(node, choice)
  switch (show) {
    case 'all':
      return () => true
    case 'exposed':
      return ({ of }) => shown.has(of.name)
    case 'hidden':
      return ({ of }) => !shown.has(of.name)
    case 'new':
      return (column) => isAdded(added, node, column)
    case 'personal':
      return ({ of }) => of.personal.guess
    case 'wanted':
      return ({ of }) => of.refusals7d > 0 && !shown.has(of.name)
  }
}

export type Row = SchemaRow | TableRow | ColumnRow

interface InTree {
  readonly id: string
  readonly level: number
  /** The position of the row among its siblings, from 1, and the number of siblings. */
  readonly place: number
  readonly siblings: number
}
export interface SchemaRow extends InTree {
  readonly kind: 'schema'
  readonly found: Found
  readonly isOpen: boolean
}
export interface TableRow extends InTree {
  readonly kind: 'table'
  readonly part: FoundTable
  readonly isOpen: boolean
}
export interface ColumnRow extends InTree {
  readonly kind: 'column'
  readonly node: TableNode
  readonly column: ColumnNode
}

/** The maximum number of matching columns for which tables are open by default. */
const OPENED_MAX = 2_000

/** `flipped` contains the ids of the rows that are opened or closed contrary to their default. */
export function rowsOf(found: readonly Found[], flipped: ReadonlySet<string>, isFiltered: boolean): readonly Row[] {
  const tables = found.reduce((sum, { parts }) => sum + parts.length, 0)
  const columns = found.reduce((sum, { parts }) => sum + parts.reduce((all, part) => all + part.columns.length, 0), 0)
  const schemasOpen = isFiltered || found.length === 1 || tables <= 40
  const tablesOpen = isFiltered && columns <= OPENED_MAX
  const rows: Row[] = []
  found.forEach((schema, n) => {
    const id = `s\0${schema.name}`
    const isOpen = schemasOpen !== flipped.has(id)
    rows.push({ kind: 'schema', id, level: 1, place: n + 1, siblings: found.length, found: schema, isOpen })
    if (!isOpen) return
    schema.parts.forEach((part, m) => {
      const open = (tablesOpen && part.byColumns) !== flipped.has(part.node.key)
      const at = { level: 2, place: m + 1, siblings: schema.parts.length }
      rows.push({ kind: 'table', id: part.node.key, ...at, part, isOpen: open })
      if (open) columnRows(part, rows)
    })
  })
  return rows
}

/** Adds the columns of a table. All columns are siblings: the name of a part is a path that contains its column. */
function columnRows({ node, columns }: Part, rows: Row[]): void {
  columns.forEach((column, n) => {
    const id = `${node.key}\0${column.of.name}`
    rows.push({ kind: 'column', id, level: 3, place: n + 1, siblings: columns.length, node, column })
  })
}

/** Returns the tables and columns that the checkbox of a row controls. */
export function partsOf(row: Row): readonly Part[] {
  if (row.kind === 'schema') return row.found.parts
  return row.kind === 'table' ? [row.part] : [{ node: row.node, columns: [row.column] }]
}

export const nameOf = (row: Row) =>
  row.kind === 'schema' ? row.found.name : row.kind === 'table' ? row.part.node.of.table : row.column.of.name
