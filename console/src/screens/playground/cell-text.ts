// Converts the values of an answer to strings, for the grid, the clipboard and files.

/** The maximum number of characters of a value in the grid. The opened cell shows more. */
const SHOWN = 400

export const isMissing = (value: unknown) => value === null || value === undefined

export function textOf(value: unknown): string {
  if (isMissing(value)) return ''
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** Returns the text in a cell of the grid. Cached, because an object may be large and is shown repeatedly. */
export function shownOf(value: unknown): string {
  if (isMissing(value)) return 'NULL'
  if (typeof value !== 'object' || value === null) return cut(textOf(value))
  const known = shownObjects.get(value)
  if (known !== undefined) return known
  const text = cut(textOf(value))
  shownObjects.set(value, text)
  return text
}

const shownObjects = new WeakMap<object, string>()
const cut = (text: string) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)

/** Returns a value for the opened cell. Writes an object or list over several lines. */
export function openedOf(value: unknown): string {
  if (isMissing(value)) return 'NULL'
  return typeof value === 'object' ? JSON.stringify(value, null, 2) : textOf(value)
}

interface Column {
  readonly name: string
  readonly dataType: string
}

const NUMERIC = /^(?:u?int|small|big|serial|numeric|decimal|real|double|float|money|long|number|bignumeric|oid)/i

export const isNumeric = ({ dataType }: Column) => NUMERIC.test(dataType)

type Row = readonly unknown[]

/** Returns CSV (RFC 4180). */
export function csvOf(columns: readonly Column[], rows: readonly Row[]): string {
  const lines = [columns.map(({ name }) => name), ...rows].map((row) => row.map(csvCell).join(','))
  return `${lines.join('\r\n')}\r\n`
}

/**
 * Returns a cell. Puts an apostrophe before a text that a spreadsheet would execute as a formula (OWASP, CSV
 * injection).
 */
function csvCell(value: unknown): string {
  const text = textOf(value)
  const isFormula = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(?:\.\d+)?$/.test(text)
  const safe = isFormula ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Returns a JSON array with one object per row. A repeated column name gets a number: `id`, `id_2`. */
export function jsonOf(columns: readonly Column[], rows: readonly Row[]): string {
  const names = uniqueNames(columns.map(({ name }) => name))
  return `${JSON.stringify(
    rows.map((row) => Object.fromEntries(names.map((name, n) => [name, row[n] ?? null]))),
    null,
    2,
  )}\n`
}

function uniqueNames(names: readonly string[]): readonly string[] {
  const taken = new Set(names)
  const seen = new Set<string>()
  return names.map((name) => {
    let unique = name
    for (let n = 2; seen.has(unique) || (unique !== name && taken.has(unique)); n++) unique = `${name}_${n}`
    seen.add(unique)
    return unique
  })
}

/** Returns a tab-separated row, the format that spreadsheets paste. */
export const tsvOf = (row: Row) => row.map((value) => textOf(value).replace(/[\t\r\n]+/g, ' ')).join('\t')
