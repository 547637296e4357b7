// Pure: what whoever saves an exposure should know of it: warnings of the database's own (a view over foreign things,
// say), columns that stay hidden whatever is asked, and comments that will be shown although they name something hidden.
import type { Catalog, CatalogTable, Driver } from '../drivers/driver.ts'
import { tableKey } from './cut.ts'

const WARNINGS_MAX = 200
/** Shorter names are words of every comment. */
const NAME_CHARS_MIN = 3

/** Whole sentences, in the database's order, each beginning with the table it is about. */
export function warningsOf(full: Catalog, exposed: Catalog, typed: Driver['typed']): readonly string[] {
  const hiddenTables = namesOfHiddenTables(full, exposed)
  const all = new Map(full.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const warnings = exposed.tables.flatMap((table) => {
    const of = typed([table.schema, table.table])
    const whole = all.get(tableKey(table.schema, table.table))
    const hidden = namesOfHiddenColumns(whole, table)
    const named = (comment: string | null) => firstNamed(comment, hidden, hiddenTables)
    const said = table.warnings.map((warning) => `${of}: ${warning}`)
    for (const column of whole?.columns ?? []) {
      if (column.unexposable !== null)
        said.push(`${of}: ${typed([column.name])} may not be exposed: ${column.unexposable}`)
    }
    const name = named(table.description)
    if (name !== undefined) said.push(`${of}: its comment, which is shown, names ${name}, which is hidden.`)
    for (const column of table.columns) {
      const hit = named(column.description)
      if (hit !== undefined)
        said.push(`${of}: the comment of ${typed([column.name])}, which is shown, names ${hit}, which is hidden.`)
    }
    return said
  })
  const more = warnings.length - WARNINGS_MAX
  return more > 0 ? [...warnings.slice(0, WARNINGS_MAX), `There are ${more} more warnings.`] : warnings
}

function namesOfHiddenTables(full: Catalog, exposed: Catalog): ReadonlySet<string> {
  const shown = new Set(exposed.tables.map((table) => tableKey(table.schema, table.table)))
  const shownNames = new Set(exposed.tables.map((table) => table.table.toLowerCase()))
  const hidden = full.tables.filter((table) => !shown.has(tableKey(table.schema, table.table)))
  return new Set(
    hidden.map((table) => table.table.toLowerCase()).filter((name) => isTelling(name) && !shownNames.has(name)),
  )
}

function namesOfHiddenColumns(full: CatalogTable | undefined, exposed: CatalogTable): ReadonlySet<string> {
  const shown = new Set(exposed.columns.map((column) => column.name))
  const names = full?.columns.filter((column) => !shown.has(column.name)).map((column) => column.name.toLowerCase())
  return new Set(names?.filter(isTelling))
}

function isTelling(name: string): boolean {
  return name.length >= NAME_CHARS_MIN
}

/** Names are looked for as whole words; a name of several words is not found. */
function firstNamed(comment: string | null, ...hidden: readonly ReadonlySet<string>[]): string | undefined {
  const words = comment?.toLowerCase().match(/[\p{L}\p{N}_$]+/gu)
  return words?.find((word) => hidden.some((names) => names.has(word)))
}
