// Pure: what an editor asked to expose × what introspection knows × what was saved before → what is saved, or every
// reason why not. Null becomes the columns known now, so that a column that appears later stays hidden.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey, type ShownTable } from './cut.ts'

export interface AskedTable {
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[] | null
}

export interface Frozen {
  readonly tables: readonly ShownTable[]
  /** Why it cannot be saved; empty when it can. */
  readonly problems: readonly string[]
}

/** A saved name that introspection no longer knows. */
export interface Gone {
  readonly schema: string
  readonly table: string
  readonly column?: string
}

const PROBLEMS_MAX = 100
const NAME_CHARS_MAX = 100

/** `catalog` is null before the first introspection: then no name is known. Order: the database's, the gone last. */
export function freeze(asked: readonly AskedTable[], catalog: Catalog | null, saved: readonly ShownTable[]): Frozen {
  const known = new Map(catalog?.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const before = new Map(saved.map((table) => [tableKey(table.schema, table.table), table]))
  const places = new Map(catalog?.tables.map((table, place) => [tableKey(table.schema, table.table), place]))
  const problems: string[] = []
  const seen = new Set<string>()
  const tables: { readonly place: number; readonly shown: ShownTable }[] = []
  asked.forEach((ask, n) => {
    const key = tableKey(ask.schema, ask.table)
    const at = `tables[${n}] ${named(ask.schema)}.${named(ask.table)}`
    if (seen.has(key)) return void problems.push(`${at}: is listed twice`)
    seen.add(key)
    const table = known.get(key)
    const columns =
      table === undefined
        ? keptTable(at, ask, before.get(key), problems)
        : frozenColumns(at, ask, table, new Set(before.get(key)?.columns), problems)
    if (columns.length > 0) {
      tables.push({ place: places.get(key) ?? Infinity, shown: { schema: ask.schema, table: ask.table, columns } })
    }
  })
  tables.sort((a, b) => (a.place === b.place ? 0 : a.place - b.place))
  return { tables: tables.map((it) => it.shown), problems: shortened(problems) }
}

/** What of a saved exposure introspection no longer knows. */
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

/** A table introspection does not know: kept as it was saved, or as much of that as was asked. */
function keptTable(at: string, ask: AskedTable, saved: ShownTable | undefined, problems: string[]): readonly string[] {
  if (saved === undefined) {
    problems.push(`${at}: there is no such table`)
    return []
  }
  const before = new Set(saved.columns)
  for (const name of ask.columns ?? []) if (!before.has(name)) problems.push(`${at}: there is no column ${named(name)}`)
  return ask.columns ?? saved.columns
}

function frozenColumns(
  at: string,
  ask: AskedTable,
  table: CatalogTable,
  saved: ReadonlySet<string>,
  problems: string[],
): readonly string[] {
  if (ask.columns === null) {
    // A part is shown with the column that it is a part of, whole.
    const free = table.columns
      .filter((column) => column.unexposable === null && column.partOf === undefined)
      .map((column) => column.name)
    if (free.length === 0) problems.push(`${at}: has no column that may be exposed`)
    return free
  }
  if (ask.columns.length === 0) problems.push(`${at}: names no column; leave the table out to hide it`)
  const asked = new Set(ask.columns)
  if (asked.size < ask.columns.length) problems.push(`${at}: names a column twice`)
  const columns: string[] = []
  for (const column of table.columns) {
    if (!asked.delete(column.name)) continue
    // One that was saved while it might be is kept, and stays hidden (cut.ts).
    if (column.unexposable !== null && !saved.has(column.name)) {
      problems.push(`${at}: the column ${named(column.name)} may not be exposed: ${column.unexposable}`)
    }
    columns.push(column.name)
  }
  // What is left introspection does not know: kept where it was saved.
  for (const name of asked) {
    if (saved.has(name)) columns.push(name)
    else problems.push(`${at}: there is no column ${named(name)}`)
  }
  return columns
}

/** A name as a refusal shows it: it may be of any length. */
function named(name: string): string {
  return name.length > NAME_CHARS_MAX ? `${name.slice(0, NAME_CHARS_MAX)}…` : name
}

function shortened(problems: readonly string[]): readonly string[] {
  const more = problems.length - PROBLEMS_MAX
  return more > 0 ? [...problems.slice(0, PROBLEMS_MAX), `and ${more} more`] : problems
}
