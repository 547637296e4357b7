// Collects warnings for the person who saves an exposure: warnings from the database, for example about a view that
// reads another user's tables; columns that may not be exposed; and visible comments that contain the name of a hidden
// table or column.
import type { Catalog, CatalogTable, Driver } from '../drivers/driver.ts'
import { tableKey } from './cut-catalog.ts'

const WARNINGS_MAX = 200
/** Shorter names may be ordinary words in comments. */
const NAME_CHARS_MIN = 3

/** Returns up to WARNINGS_MAX sentences, and the number of further warnings. Each sentence starts with its table. */
export function warningsOf(full: Catalog, exposed: Catalog, typed: Driver['typed']): readonly string[] {
  const hiddenTables = namesOfHiddenTables(full, exposed)
  const all = new Map(full.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const warnings = exposed.tables.flatMap((table) => {
    const prefix = typed([table.schema, table.table])
    const whole = all.get(tableKey(table.schema, table.table))
    const hidden = namesOfHiddenColumns(whole, table)
    const hiddenNameIn = (comment: string | null) => firstNamed(comment, hidden, hiddenTables)
    const sentences = table.warnings.map((warning) => `${prefix}: ${warning}`)
    for (const column of whole?.columns ?? []) {
      if (column.unexposable !== null)
        sentences.push(`${prefix}: ${typed([column.name])} may not be exposed: ${column.unexposable}`)
    }
    const name = hiddenNameIn(table.description)
    if (name !== undefined) sentences.push(`${prefix}: its comment, which is shown, names ${name}, which is hidden.`)
    for (const column of table.columns) {
      const hit = hiddenNameIn(column.description)
      if (hit !== undefined)
        sentences.push(
          `${prefix}: the comment of ${typed([column.name])}, which is shown, names ${hit}, which is hidden.`,
        )
    }
    return sentences
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

/** Returns the first hidden name that is a word of the comment. Does not find names with spaces or punctuation. */
function firstNamed(comment: string | null, ...hidden: readonly ReadonlySet<string>[]): string | undefined {
  const words = comment?.toLowerCase().match(/[\p{L}\p{N}_$]+/gu)
  return words?.find((word) => hidden.some((names) => names.has(word)))
}
