// Caches queries that programs repeat with other values. The shape of a query is its text without numbers and strings.
// After a shape was confined twice, its printed text is cached with gaps for the values, and the query is no longer
// parsed. A value may vary only if the guard prints it unchanged, and a string only if it is compared with a column. To
// find out, the guard confines the query with marks in place of the values.
import type { Catalog } from '../../driver.ts'
import type { Preparable, PostgresQuery } from '../confined-query.ts'
import { mayHaveSrid } from './allowed/srids.ts'
import { Scanner } from './syntax/scanner.ts'
import { SeenTwice } from '../../seen-twice-cache.ts'

/** A query text without its whole numbers and strings. */
export interface Shape {
  readonly key: string
  /** The forms of the query's parameters, without their values. */
  readonly params: string
  /** The removed values as the caller wrote them, strings with their quotes. */
  readonly values: readonly string[]
}

interface Template {
  readonly query: PostgresQuery
  /** The printed text between the gaps. */
  readonly parts: readonly string[]
  /** For each gap, the index of its value in the shape. */
  readonly slots: readonly number[]
  /** The values that must not vary, such as the position of a column in ORDER BY, or a length. */
  readonly fixed: readonly { readonly index: number; readonly value: string }[]
  /** Null if the query cannot be a prepared statement. */
  readonly prepared: Prepared | null
}

/** `order` has the index of a value for each parameter. */
interface Prepared {
  readonly shared: Preparable
  readonly order: readonly number[]
}

/** False for a shape that cannot be cached. */
type Entry = Template | false

const TEXT_MAX = 4_096
const VALUES_MAX = 32
const SHAPES_MAX = 2_000
// Longer printed texts are not cached: to find out which values may vary, the text is printed up to VALUES_MAX + 2
// times.
const PRINTED_MAX = 16_384

const shapes = new WeakMap<Catalog, SeenTwice<Entry>>()

// A text with a comment, a backslash, a dollar quote or an unusual control character is not cached. Characters beyond
// ASCII may be only in strings that become gaps. A number of up to nine digits is always an int4.
const UNUSUAL = /--|\/\*|\\|[\w$]\$|\$(?!\d)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/
const PLAIN = /^[\0\x01\t\n\r\x20-\x7e]*$/
const PIECES = /'[^']*'|"[^"]*"|(?<![\w.$])(?:0|[1-9]\d{0,8})(?![\w.'"])/g
const [NUMBER_GAP, STRING_GAP] = ['\0', '\x01']
const GAPS = /[\0\x01]/
// A number after BY or ON may be the position of an output column, so it must not vary.
const LISTS = /\b(?:by|on)\b/i
const ITEM = /(?:[,(]|\b(?:by|all|distinct))[\s+-]*$/i
// What is before a string that may be compared with a column. The printed text decides whether it is.
const COMPARED = /(?:[=<>]|\bin\s*\(|\b(?:between|and))\s*$/i
const MINUS = /-\s*$/
const NEXT = /^\s*,\s*$/
/** How many characters before a value are searched for a comparison or a minus. */
const BACK = 12

/** Returns the shape of a text, or null if the text is not simple enough. `params` are the forms of its parameters. */
export function shapeOf(text: string, params = ''): Shape | null {
  if (text.length > TEXT_MAX || UNUSUAL.test(text) || !text.isWellFormed()) return null
  const values: string[] = []
  const lists = text.search(LISTS)
  /** Where the last string that became a gap ends. */
  let taken = -1
  const key = text.replaceAll(PIECES, (piece, at: number) => {
    if (piece.startsWith('"')) return piece
    if (piece.startsWith("'")) {
      const isNext = taken >= 0 && at - taken <= BACK && NEXT.test(text.slice(taken, at))
      if (!isNext && !COMPARED.test(text.slice(Math.max(0, at - BACK), at))) return piece
      taken = at + piece.length
      values.push(piece)
      return STRING_GAP
    }
    // -0 would be printed as 0.
    if (piece === '0' && MINUS.test(text.slice(Math.max(0, at - BACK), at))) return piece
    if (lists >= 0 && lists < at && ITEM.test(text.slice(0, at))) return piece
    values.push(piece)
    return NUMBER_GAP
  })
  const isPlain = PLAIN.test(key) && !values.some((value) => mayHaveSrid(value))
  return values.length > VALUES_MAX || !isPlain ? null : { key, params, values }
}

/** Returns the confined query if its shape is cached. */
export function recall(catalog: Catalog, shape: Shape, rowCap: number): PostgresQuery | null {
  const known = shapes.get(catalog)
  const template = known?.get(keyOf(known, shape, rowCap))
  if (template === undefined || template === false) return null
  const { query, prepared } = template
  const text = filled(template, shape.values)
  if (prepared === null) return { ...query, text }
  const values = prepared.order.map((index) => bound(shape.values[index] ?? ''))
  return { ...query, text, prepared: { shared: prepared.shared, values } }
}

/** Returns the value in the form of a parameter: a string has no quotes. */
function bound(value: string): string {
  return isString(value) ? value.slice(1, -1) : value
}

function isString(value: string): boolean {
  return value.startsWith("'")
}

export type Try = (text: string) => Promise<PostgresQuery | null>

/** When a shape is seen for the second time, finds out which of its values may vary, and caches it. */
export async function remember(
  catalog: Catalog,
  shape: Shape,
  rowCap: number,
  made: PostgresQuery,
  confined: Try,
): Promise<void> {
  if (made.text.length > PRINTED_MAX) return
  const known = shapes.get(catalog) ?? new SeenTwice<Entry>(SHAPES_MAX)
  shapes.set(catalog, known)
  const key = keyOf(known, shape, rowCap)
  if (known.get(key) === undefined && known.see(key)) {
    known.keep(key, (await templateOf(catalog, shape, made, confined)) ?? false)
  }
}

/** Returns the key of a shape. If its values that must not vary differ from the cached ones, they are in the key. */
function keyOf(known: SeenTwice<Entry>, shape: Shape, rowCap: number): string {
  const key = `${rowCap} ${shape.params}\0${shape.key}`
  const entry = known.get(key)
  if (entry === undefined || entry === false) return key
  if (entry.fixed.every(({ index, value }) => shape.values[index] === value)) return key
  return `${key}\x02${entry.fixed.map(({ index }) => shape.values[index]).join('\x02')}`
}

async function templateOf(
  catalog: Catalog,
  shape: Shape,
  made: PostgresQuery,
  confined: Try,
): Promise<Template | null> {
  const marks = shape.values.map((value, index) => {
    const mark = String(812_345_601 + index * 37)
    return isString(value) ? `'${mark}s'` : mark
  })
  if (marks.some((mark) => made.text.includes(bound(mark)) || shape.key.includes(bound(mark)))) return null
  const all = new Set(marks.keys())
  const query = await freely(shape, marks, all, made, confined)
  const varying = query === null ? await eachFree(shape, marks, made, confined) : all
  const printed = query ?? (await confined(texted(shape, marked(shape, marks, varying))))
  return printed === null ? null : templated(catalog, shape, marks, varying, printed, made)
}

/**
 * Makes a template from a query that was printed with marks. Returns null if the template with the values of `shape`
 * does not give the text of `made`.
 */
function templated(
  catalog: Catalog,
  shape: Shape,
  marks: readonly string[],
  varying: ReadonlySet<number>,
  query: PostgresQuery,
  made: PostgresQuery,
): Template | null {
  const gap = new RegExp(`(?<!\\w)(?:${[...varying].map((index) => marks[index]).join('|') || '(?!)'})(?!\\w)`, 'g')
  const slots = [...query.text.matchAll(gap)].map(([mark]) => marks.indexOf(mark))
  const fixed = shape.values.map((value, index) => ({ index, value })).filter(({ index }) => !varying.has(index))
  const parts = query.text.split(gap)
  const types = shape.values.map((value) => (isString(value) ? INFERRED : INT4))
  const template = { query, parts, slots, fixed, prepared: preparedOf(catalog, query, parts, slots, types) }
  return filled(template, shape.values) === made.text ? template : null
}

const [INFERRED, INT4] = [0, 23]

/**
 * Returns the prepared statement, or null if there is none. A number becomes a parameter of type int4, because a number
 * of up to nine digits is an int4 everywhere. A string becomes a parameter without a type: like a compared string, it
 * gets its type from the comparison.
 */
function preparedOf(
  exposure: Catalog,
  query: PostgresQuery,
  parts: readonly string[],
  slots: readonly number[],
  typesOf: readonly number[],
): Prepared | null {
  // The query may need EXPLAIN, which needs the values.
  if (query.bound === null) return null
  // The same string may have two types in two places. A parameter has only one.
  if (
    new Set(slots).size < slots.length &&
    slots.some((slot, n) => typesOf[slot] === INFERRED && slots.indexOf(slot) !== n)
  )
    return null
  const order = [...new Set(slots)]
  const places: number[] = []
  let text = parts[0] ?? ''
  for (const [n, slot] of slots.entries()) {
    places.push(text.length)
    text += `$${query.slots.length + order.indexOf(slot) + 1}${parts[n + 1] ?? ''}`
  }
  if (!areParameters(text, places)) return null
  const types = [...query.slots.map(() => 0), ...order.map((index) => typesOf[index] ?? INFERRED)]
  const { isLookup: hasOnePlan = false, callsNothing = false } = query
  return { shared: { text, types, hasOnePlan, callsNothing, exposure }, order }
}

/** Returns whether a parameter begins at each of these positions. In a string or a name, `$n` is no parameter. */
function areParameters(text: string, places: readonly number[]): boolean {
  const starts = new Set<number>()
  const scanner = new Scanner(text)
  while (scanner.next()) if (scanner.kind === 'parameter') starts.add(scanner.start)
  return places.every((place) => starts.has(place))
}

/** Returns the indexes of the values that may vary, by confining the query with one mark at a time. */
async function eachFree(
  shape: Shape,
  marks: readonly string[],
  made: PostgresQuery,
  confined: Try,
): Promise<ReadonlySet<number>> {
  const free = new Set<number>()
  for (const index of marks.keys()) {
    if ((await freely(shape, marks, new Set([index]), made, confined)) !== null) free.add(index)
  }
  return free
}

/**
 * Confines the query with marks in place of these values. Returns null if they may not vary: the guard refuses or
 * changes a mark, switches other settings off, or a string is not compared with a column.
 */
async function freely(
  shape: Shape,
  marks: readonly string[],
  which: ReadonlySet<number>,
  made: PostgresQuery,
  confined: Try,
): Promise<PostgresQuery | null> {
  const query = await confined(texted(shape, marked(shape, marks, which)))
  if (query?.switchedOff !== made.switchedOff) return null
  const isFree = (mark: string): boolean => (isString(mark) ? isCompared(query.text, mark) : query.text.includes(mark))
  return [...which].every((index) => isFree(marks[index] ?? '')) ? query : null
}

const COLUMN = String.raw`\((?:"(?:[^"]|"")*"\.)?"(?:[^"]|"")*"`
const SIMPLE = String.raw`(?:-?\d+(?:\.\d+)?|'[^'\\]*')`

/**
 * Returns whether the printed text has the string once, and compares it with a column. Then another string changes only
 * the result of the comparison. Inside another string, its quotes would be doubled, so it would not be found.
 */
function isCompared(printed: string, mark: string): boolean {
  const at = printed.indexOf(mark)
  if (at < 0 || printed.includes(bound(mark), at + mark.length)) return false
  const [before, after] = [printed.slice(0, at), printed.slice(at + mark.length)]
  if (BY_OPERATOR.test(before)) return after.startsWith(')')
  if (BY_FROM.test(before)) return after.startsWith(' AND ')
  if (BY_TO.test(before)) return after.startsWith(')')
  return BY_LIST.test(before) && REST_OF_LIST.test(after)
}

const BY_OPERATOR = new RegExp(String.raw`${COLUMN} OPERATOR\("pg_catalog"\.(?:=|<>|<|>|<=|>=)\) $`)
const BY_FROM = new RegExp(String.raw`${COLUMN} (?:NOT )?BETWEEN $`)
const BY_TO = new RegExp(String.raw`${COLUMN} (?:NOT )?BETWEEN ${SIMPLE} AND $`)
const BY_LIST = new RegExp(String.raw`${COLUMN} (?:NOT )?IN \((?:${SIMPLE}, )*$`)
const REST_OF_LIST = new RegExp(String.raw`^(?:, ${SIMPLE})*\)\)`)

function marked(shape: Shape, marks: readonly string[], which: ReadonlySet<number>): readonly string[] {
  return shape.values.map((value, index) => (which.has(index) ? (marks[index] ?? value) : value))
}

function texted(shape: Shape, values: readonly string[]): string {
  return shape.key.split(GAPS).reduce((text, part, index) => text + (values[index - 1] ?? '') + part)
}

function filled(template: Pick<Template, 'parts' | 'slots'>, values: readonly string[]): string {
  let text = template.parts[0] ?? ''
  for (const [n, slot] of template.slots.entries()) text += (values[slot] ?? '') + (template.parts[n + 1] ?? '')
  return text
}
