// Hints of a refusal: what a caller may write instead of a name that was refused. They name only what is exposed or
// allowed, each as it must be typed, and never more than a screen of it.
import { didYouMean, nearest } from '../../nearest.ts'
import { typed, typedPath } from '../quote.ts'
import { EXTENSION_FUNCTIONS, TYPES } from './types-and-extensions.ts'
import { FUNCTIONS_ELSEWHERE, TYPES_ELSEWHERE } from './other-dialects.ts'
import type { Exposed, ExposedTable } from './exposed.ts'
import { FUNCTIONS, SINCE } from './allowed-functions.ts'

/** Names looked at for the nearest, so that a hint costs no more than a refusal may. */
const CANDIDATES_MAX = 1_000

/** Where a caller finds out what there is, whichever door the query came through. */
export const DESCRIPTION =
  'The description of this datasource (GET …/schema) lists the tables and columns that a query may read.'

/** The parts of a hint that there are, as one text. */
function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ')
}

/** For a table that is none: `names` as they were written, its schema first. */
export function tableHint(exposed: Exposed, names: readonly string[]): string {
  const name = names.at(-1) ?? ''
  const schema = names.at(-2)
  if (name === 'dual') return 'Leave FROM out: SELECT 1 + 1 needs none.'
  const isCatalog = schema === 'pg_catalog' || schema === 'information_schema' || name.startsWith('pg_')
  if (isCatalog) return joined(DESCRIPTION, exposed.listed)
  return joined(nearestTables(exposed, name), exposed.listed)
}

function nearestTables(exposed: Exposed, name: string): string {
  const byName = new Map<string, ExposedTable[]>()
  for (const table of exposed.tables.slice(0, CANDIDATES_MAX)) {
    byName.set(table.name, [...(byName.get(table.name) ?? []), table])
  }
  const near = nearest(name, byName.keys()).flatMap((found) => byName.get(found) ?? [])
  return didYouMean(near.slice(0, 3).map((table) => tableTyped(table, exposed.capture.searchPath)))
}

/** A table as a query must name it: without its schema where the login's path finds it. */
export function tableTyped(table: { readonly schema: string; readonly name: string }, path: readonly string[]): string {
  return path.includes(table.schema) ? typed(table.name) : typedPath([table.schema, table.name])
}

interface Shown {
  readonly name: string | null
  readonly columns: readonly { readonly name: string }[]
}

export const NOTHING_SHOWN = 'FROM shows no columns here.'
const COLUMNS_MAX = 40
const ITEMS_MAX = 12

/** For a column that is none: the nearest of those that FROM shows, and what it shows. */
export function columnHint(name: string, items: readonly Shown[]): string {
  const columns = items.flatMap((item) => item.columns.slice(0, CANDIDATES_MAX).map((column) => column.name))
  const near = didYouMean(nearest(name, new Set(columns.slice(0, CANDIDATES_MAX))).map(typed))
  return joined(wordHint(name), near, shownBy(items))
}

/** A word that another dialect takes as an argument: date_trunc(x, MONTH), convert(INT, x). */
function wordHint(name: string): string {
  if (DATE_PARTS.has(name)) return DATE_PART_HINT
  return TYPES.has(name) || TYPE_WORDS.has(name) ? `Convert to a type by CAST(x AS ${name}).` : ''
}

const TYPE_WORDS: ReadonlySet<string> = new Set(['int', 'integer', 'bigint', 'smallint', 'decimal', 'float', 'boolean'])

const DATE_PARTS: ReadonlySet<string> = new Set([
  ...['second', 'minute', 'hour', 'day', 'week', 'isoweek', 'month', 'quarter', 'year', 'dayofweek'],
])
const DATE_PART_HINT = "A part of a date is a text or a word of EXTRACT: date_trunc('month', x), extract(year FROM x)."

function shownBy(items: readonly Shown[]): string {
  if (items.length === 0) return NOTHING_SHOWN
  let left = COLUMNS_MAX
  const parts = items.slice(0, ITEMS_MAX).map((item) => {
    const names = item.columns.slice(0, Math.max(left, 0)).map((column) => typed(column.name))
    const more = item.columns.length > names.length ? ', …' : ''
    left -= names.length
    return `${item.name === null ? 'a part of FROM' : typed(item.name)} (${names.join(', ')}${more})`
  })
  const more = items.length > ITEMS_MAX ? `; and ${items.length - ITEMS_MAX} more` : ''
  return `FROM shows ${parts.join('; ')}${more}.`
}

/** For a function that no other hint fits. */
export const FUNCTIONS_HINT =
  "Callable are PostgreSQL's own functions for numbers, text, dates, JSON, arrays, ranges, aggregates and windows, and those of known extensions; none that a user made."

/** For a function that is none, or that this server does not have yet. */
export function functionHint(exposed: Exposed, name: string): string {
  const advice = FUNCTIONS_ELSEWHERE.get(name.toLowerCase())
  if (advice !== undefined) return advice
  const own = [...FUNCTIONS].filter((each) => (SINCE.get(each) ?? 0) <= exposed.major)
  const near = nearest(name, [...own, ...extensionFunctions(exposed)])
  return joined(didYouMean(near.map((each) => `${each}()`)), FUNCTIONS_HINT)
}

function extensionFunctions({ capture }: Exposed): string[] {
  return capture.extensions
    .filter((extension) => extension.trusted)
    .flatMap((extension) => {
      const listed = EXTENSION_FUNCTIONS.get(extension.name)
      return extension.functions.filter((name) => listed?.has(name) === true && !extension.shadowed.includes(name))
    })
}

/** For a type that no other hint fits. */
export const TYPES_HINT =
  "Use one of PostgreSQL's plain types (text, numeric, date, jsonb …), or an enum of the schema."

/** For a type that is none; `shown` are the database's own types that a query may name. */
export function typeHint(name: string, shown: readonly string[]): string {
  const own = TYPES_ELSEWHERE.get(name.toLowerCase())
  if (own !== undefined) return `Write ${own}: CAST(x AS ${own}).`
  const near = nearest(name, [...TYPES, ...shown.slice(0, CANDIDATES_MAX)])
  return joined(didYouMean(near), TYPES_HINT)
}
