// Caches confined queries by shape. Programs send the same text repeatedly with different whole numbers. After a shape was
// confined twice, its printed text is cached with gaps for the numbers, and a third query takes one look-up. A number may vary
// only if the guard, given a marker instead, prints the same text with the marker.
import type { Catalog } from '../../driver.ts'
import type { Preparable, PostgresQuery } from '../query.ts'
import { Scanner } from './scanner.ts'

/** A text without its whole numbers. */
export interface Shape {
  readonly key: string
  /** The forms of its parameters, never their values. */
  readonly params: string
  readonly numbers: readonly string[]
}

interface Template {
  readonly query: PostgresQuery
  /** The printed text between the gaps, and the index of the shape's number for each gap. */
  readonly parts: readonly string[]
  readonly slots: readonly number[]
  /** Numbers that must not vary: an ordinal, a length, a count under a limit. */
  readonly fixed: readonly { readonly index: number; readonly value: string }[]
  /** Null where a number stands in a place that takes no parameter. */
  readonly prepared: Prepared | null
}

/** The text with parameters, and which number of the shape each of them is. */
interface Prepared {
  readonly shared: Preparable
  readonly order: readonly number[]
}

/** True: the shape was seen once. False: its numbers cannot vary. */
type Entry = Template | boolean

const TEXT_MAX = 4_096
const NUMBERS_MAX = 32
const SHAPES_MAX = 2_000
// A short text may expand to a long printed text, which is printed up to thirty times to learn which numbers may vary.
const PRINTED_MAX = 16_384

const shapes = new WeakMap<Catalog, Map<string, Entry>>()

// Texts that are harder to read are not cached: comments, escapes, dollar quotes, letters outside ASCII. A number of up to nine
// digits is always an int4.
const UNUSUAL = /--|\/\*|\\|[\w$]\$|\$(?!\d)|[^\n\r\t\x20-\x7e]/
const PIECES = /'[^']*'|"[^"]*"|(?<![\w.$])(?:0|[1-9]\d{0,8})(?![\w.'"])/g
const GAP = '\0'
// After one of these, a number may be the position of an output column. Another number would then change the query's meaning.
const LISTS = /\b(?:by|on)\b/i
const ITEM = /(?:[,(]|\b(?:by|all|distinct))[\s+-]*$/i

/** The shape of a text with parameters of these forms; null if the text is not simple enough. */
export function shapeOf(text: string, params = ''): Shape | null {
  if (text.length > TEXT_MAX || UNUSUAL.test(text)) return null
  const numbers: string[] = []
  const lists = text.search(LISTS)
  const key = text.replaceAll(PIECES, (piece, at: number) => {
    if (piece.startsWith("'") || piece.startsWith('"')) return piece
    if (lists >= 0 && lists < at && ITEM.test(text.slice(0, at))) return piece
    numbers.push(piece)
    return GAP
  })
  return numbers.length > NUMBERS_MAX ? null : { key, params, numbers }
}

/** The confined query of a known shape; null if the shape is unknown, or a number that must not vary is different. */
export function recall(catalog: Catalog, shape: Shape, rowCap: number): PostgresQuery | null {
  const template = shapes.get(catalog)?.get(keyOf(shape, rowCap))
  if (template === undefined || typeof template === 'boolean') return null
  for (const { index, value } of template.fixed) if (shape.numbers[index] !== value) return null
  const { query, prepared } = template
  const text = filled(template, shape.numbers)
  if (prepared === null) return { ...query, text }
  const numbers = prepared.order.map((index) => shape.numbers[index] ?? '')
  return { ...query, text, prepared: { shared: prepared.shared, numbers } }
}

/** Confines the text of a shape with these numbers; null if the guard refuses it. */
export type Try = (text: string) => Promise<PostgresQuery | null>

/** Records that a shape was seen. The second time, learns which of its numbers may vary. */
export async function remember(
  catalog: Catalog,
  shape: Shape,
  rowCap: number,
  made: PostgresQuery,
  confined: Try,
): Promise<void> {
  if (made.text.length > PRINTED_MAX) return
  const known = shapes.get(catalog) ?? new Map<string, Entry>()
  shapes.set(catalog, known)
  const key = keyOf(shape, rowCap)
  const entry = known.get(key)
  if (entry === undefined) {
    if (known.size >= SHAPES_MAX) known.delete(known.keys().next().value ?? key)
    known.set(key, true)
  } else if (entry === true) known.set(key, (await templateOf(catalog, shape, made, confined)) ?? false)
}

function keyOf(shape: Shape, rowCap: number): string {
  return `${rowCap} ${shape.params}\0${shape.key}`
}

async function templateOf(
  catalog: Catalog,
  shape: Shape,
  made: PostgresQuery,
  confined: Try,
): Promise<Template | null> {
  const marks = shape.numbers.map((_, index) => String(812_345_601 + index * 37))
  if (marks.some((mark) => made.text.includes(mark) || shape.key.includes(mark))) return null
  const all = new Set(marks.keys())
  const varying = (await isFree(shape, marks, all, confined)) ? all : await eachFree(shape, marks, confined)
  const query = await confined(texted(shape, marked(shape, marks, varying)))
  if (query === null) return null
  const gap = new RegExp(`(?<!\\w)(?:${[...varying].map((index) => marks[index]).join('|') || '(?!)'})(?!\\w)`, 'g')
  const slots = [...query.text.matchAll(gap)].map(([mark]) => marks.indexOf(mark))
  const fixed = shape.numbers.map((value, index) => ({ index, value })).filter(({ index }) => !varying.has(index))
  const parts = query.text.split(gap)
  const template = { query, parts, slots, fixed, prepared: preparedOf(catalog, query, parts, slots) }
  return filled(template, shape.numbers) === made.text ? template : null
}

const INT4 = 23

/** Numbers of up to nine digits are int4 wherever they stand, so a parameter of that type means the same. */
function preparedOf(
  exposure: Catalog,
  query: PostgresQuery,
  parts: readonly string[],
  slots: readonly number[],
): Prepared | null {
  // EXPLAIN needs the numbers themselves.
  if (query.bound === null) return null
  const order = [...new Set(slots)]
  const places: number[] = []
  let text = parts[0] ?? ''
  for (const [n, slot] of slots.entries()) {
    places.push(text.length)
    text += `$${query.slots.length + order.indexOf(slot) + 1}${parts[n + 1] ?? ''}`
  }
  if (!areParameters(text, places)) return null
  const types = [...query.slots.map(() => 0), ...order.map(() => INT4)]
  return { shared: { text, types, hasOnePlan: query.isLookup === true, exposure }, order }
}

/** Whether a parameter begins at each of these places, not part of a string or a name. */
function areParameters(text: string, places: readonly number[]): boolean {
  const starts = new Set<number>()
  const scanner = new Scanner(text)
  while (scanner.next()) if (scanner.kind === 'parameter') starts.add(scanner.start)
  return places.every((place) => starts.has(place))
}

/** The numbers that may vary, tried one at a time. */
async function eachFree(shape: Shape, marks: readonly string[], confined: Try): Promise<ReadonlySet<number>> {
  const free = new Set<number>()
  for (const index of marks.keys()) if (await isFree(shape, marks, new Set([index]), confined)) free.add(index)
  return free
}

/** Whether the guard accepts any value of these numbers, and prints each. */
async function isFree(
  shape: Shape,
  marks: readonly string[],
  which: ReadonlySet<number>,
  confined: Try,
): Promise<boolean> {
  const query = await confined(texted(shape, marked(shape, marks, which)))
  return query !== null && [...which].every((index) => query.text.includes(marks[index] ?? GAP))
}

function marked(shape: Shape, marks: readonly string[], which: ReadonlySet<number>): readonly string[] {
  return shape.numbers.map((value, index) => (which.has(index) ? (marks[index] ?? value) : value))
}

function texted(shape: Shape, numbers: readonly string[]): string {
  return shape.key.split(GAP).reduce((text, part, index) => text + (numbers[index - 1] ?? '') + part)
}

function filled(template: Pick<Template, 'parts' | 'slots'>, numbers: readonly string[]): string {
  let text = template.parts[0] ?? ''
  for (const [n, slot] of template.slots.entries()) text += (numbers[slot] ?? '') + (template.parts[n + 1] ?? '')
  return text
}
