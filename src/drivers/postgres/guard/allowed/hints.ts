// Writes the hints of refusals: what to write instead of a name. They mention only exposed or allowed names, quoted as
// a caller must type them. Their length is limited.
import { didYouMean, nearest } from '../../../nearest.ts'
import { tableTyped, typed } from '../../quote.ts'
import { EXTENSION_FUNCTIONS, TYPES } from './types-and-extensions.ts'
import { FUNCTIONS_ELSEWHERE, TYPES_ELSEWHERE } from './other-dialects.ts'
import type { Exposed, ExposedTable } from '../exposed.ts'
import { FUNCTIONS, SINCE } from './allowed-functions.ts'

/** The maximum number of names that are compared to find the nearest ones. */
const CANDIDATES_MAX = 1_000

/** Says where a caller finds the tables and columns, both for REST and for the connector. */
export const DESCRIPTION =
  'The description of this datasource (GET …/schema) lists the tables and columns that a query may read.'

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ')
}

/** `names` are the parts of the name: a schema, if there is one, and the table. */
export function tableHint(exposed: Exposed, names: readonly string[]): string {
  const name = names.at(-1) ?? ''
  const schema = names.at(-2)
  if (name === 'dual') return 'Leave FROM out: SELECT 1 + 1 needs no table.'
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

interface Shown {
  readonly name: string | null
  readonly columns: readonly { readonly name: string }[]
}

export const NOTHING_SHOWN = 'FROM shows no columns here.'
const COLUMNS_MAX = 40
const ITEMS_MAX = 12

/** Returns advice if the name is a word of another dialect, the nearest columns, and a list of columns. */
export function columnHint(name: string, items: readonly Shown[]): string {
  const columns = items.flatMap((item) => item.columns.slice(0, CANDIDATES_MAX).map((column) => column.name))
  const near = didYouMean(nearest(name, new Set(columns.slice(0, CANDIDATES_MAX))).map(typed))
  return joined(wordHint(name), near, shownBy(items))
}

/** Returns the hint for an argument that other dialects accept, as in date_trunc(x, MONTH) or convert(INT, x). */
function wordHint(name: string): string {
  if (DATE_PARTS.has(name)) return DATE_PART_HINT
  return TYPES.has(name) || TYPE_WORDS.has(name) ? `To convert a value, write CAST(x AS ${name}).` : ''
}

const TYPE_WORDS: ReadonlySet<string> = new Set(['int', 'integer', 'bigint', 'smallint', 'decimal', 'float', 'boolean'])

const DATE_PARTS: ReadonlySet<string> = new Set([
  ...['second', 'minute', 'hour', 'day', 'week', 'isoweek', 'month', 'quarter', 'year', 'dayofweek'],
])
const DATE_PART_HINT =
  "Write the part of a date as a string, or as a keyword of EXTRACT: date_trunc('month', x), extract(year FROM x)."

function shownBy(items: readonly Shown[]): string {
  if (items.length === 0) return NOTHING_SHOWN
  let left = COLUMNS_MAX
  const parts = items.slice(0, ITEMS_MAX).map((item) => {
    const names = item.columns.slice(0, Math.max(left, 0)).map((column) => typed(column.name))
    const more = item.columns.length > names.length ? ', …' : ''
    left -= names.length
    return `${item.name === null ? 'an item without an alias' : typed(item.name)} (${names.join(', ')}${more})`
  })
  const more = items.length > ITEMS_MAX ? `; and ${items.length - ITEMS_MAX} more` : ''
  return `FROM shows ${parts.join('; ')}${more}.`
}

export const FUNCTIONS_HINT =
  "You can call PostgreSQL's own functions for numbers, text, dates, JSON, arrays, ranges, aggregates and windows, and functions of known extensions. Functions that a user created cannot be called."

/** Returns the hint for a function that does not exist, or not in this version of the server. */
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

export const TYPES_HINT = 'Use a built-in type (text, numeric, date, jsonb …), or an enum that an exposed column has.'

/** `shown` are the user-defined types that a query may name. */
export function typeHint(name: string, shown: readonly string[]): string {
  const own = TYPES_ELSEWHERE.get(name.toLowerCase())
  if (own !== undefined) return `Write ${own}: CAST(x AS ${own}).`
  const near = nearest(name, [...TYPES, ...shown.slice(0, CANDIDATES_MAX)])
  return joined(didYouMean(near), TYPES_HINT)
}
