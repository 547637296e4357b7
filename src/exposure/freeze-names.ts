// A request for an exposure may give null for the columns of a table. Null means all columns that are known now and may
// be exposed. It is replaced ("frozen") by their names, so that columns that are added later stay hidden. Also finds
// every reason why a request cannot be saved.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey, type ShownTable } from './cut-catalog.ts'

export interface RequestedTable {
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[] | null
}

export interface Frozen {
  readonly tables: readonly ShownTable[]
  /** The reasons why the exposure cannot be saved: up to PROBLEMS_MAX, and the number of further reasons. */
  readonly problems: readonly string[]
}

export interface Gone {
  readonly schema: string
  readonly table: string
  readonly column?: string
}

const PROBLEMS_MAX = 100
const NAME_CHARS_MAX = 100

/** In database order. Tables no longer found come last. `catalog` is null before the first introspection. */
export function freeze(
  requested: readonly RequestedTable[],
  catalog: Catalog | null,
  saved: readonly ShownTable[],
): Frozen {
  const known = new Map(catalog?.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const before = new Map(saved.map((table) => [tableKey(table.schema, table.table), table]))
  const places = new Map(catalog?.tables.map((table, place) => [tableKey(table.schema, table.table), place]))
  const problems: string[] = []
  const seen = new Set<string>()
  const tables: { readonly place: number; readonly shown: ShownTable }[] = []
  requested.forEach((request, n) => {
    const key = tableKey(request.schema, request.table)
    const at = `tables[${n}] ${named(request.schema)}.${named(request.table)}`
    if (seen.has(key)) return void problems.push(`${at}: is listed twice`)
    seen.add(key)
    const table = known.get(key)
    const columns =
      table === undefined
        ? savedColumns(at, request, before.get(key), problems)
        : frozenColumns(at, request, table, new Set(before.get(key)?.columns), problems)
    if (columns.length > 0) {
      tables.push({
        place: places.get(key) ?? Infinity,
        shown: { schema: request.schema, table: request.table, columns },
      })
    }
  })
  tables.sort((a, b) => (a.place === b.place ? 0 : a.place - b.place))
  return { tables: tables.map((it) => it.shown), problems: shortened(problems) }
}

export function goneFrom(saved: readonly ShownTable[], catalog: Catalog | null): readonly Gone[] {
  const known = new Map(catalog?.tables.map((table) => [tableKey(table.schema, table.table), table]))
  return saved.flatMap((shown): readonly Gone[] => {
    const { schema, table } = shown
    const found = known.get(tableKey(schema, table))
    if (found === undefined) return [{ schema, table }]
    const names = new Set(found.columns.map((column) => column.name))
    return shown.columns.filter((column) => !names.has(column)).map((column) => ({ schema, table, column }))
  })
}

/** The table may keep columns that were saved before introspection lost it. Other columns are problems. */
function savedColumns(
  at: string,
  request: RequestedTable,
  saved: ShownTable | undefined,
  problems: string[],
): readonly string[] {
  if (saved === undefined) {
    problems.push(`${at}: there is no such table`)
    return []
  }
  const before = new Set(saved.columns)
  for (const name of request.columns ?? [])
    if (!before.has(name)) problems.push(`${at}: there is no column ${named(name)}`)
  return request.columns ?? saved.columns
}

function frozenColumns(
  at: string,
  request: RequestedTable,
  table: CatalogTable,
  saved: ReadonlySet<string>,
  problems: string[],
): readonly string[] {
  if (request.columns === null) {
    // A nested column, such as `address.city`, is shown by its parent column.
    const free = table.columns
      .filter((column) => column.unexposable === null && column.partOf === undefined)
      .map((column) => column.name)
    if (free.length === 0) problems.push(`${at}: has no column that may be exposed`)
    return free
  }
  if (request.columns.length === 0) problems.push(`${at}: names no column; leave the table out to hide it`)
  const requested = new Set(request.columns)
  if (requested.size < request.columns.length) problems.push(`${at}: names a column twice`)
  const columns: string[] = []
  for (const column of table.columns) {
    if (!requested.delete(column.name)) continue
    // A saved column that may no longer be exposed keeps its name in the list, but cut-catalog.ts hides it.
    if (column.unexposable !== null && !saved.has(column.name)) {
      problems.push(`${at}: the column ${named(column.name)} may not be exposed: ${column.unexposable}`)
    }
    columns.push(column.name)
  }
  // Introspection does not find the remaining names. Keep those that were saved before.
  for (const name of requested) {
    if (saved.has(name)) columns.push(name)
    else problems.push(`${at}: there is no column ${named(name)}`)
  }
  return columns
}

function named(name: string): string {
  return name.length > NAME_CHARS_MAX ? `${name.slice(0, NAME_CHARS_MAX)}…` : name
}

function shortened(problems: readonly string[]): readonly string[] {
  const more = problems.length - PROBLEMS_MAX
  return more > 0 ? [...problems.slice(0, PROBLEMS_MAX), `and ${more} more`] : problems
}
