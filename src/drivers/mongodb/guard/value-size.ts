// The size of the value of an expression: bytes, elements, and how often the value of a variable occurs in it. Sizes of
// constants are exact. Sizes of stored values come from the sample, or a usual size is assumed.
import { numberOf } from './parse-ejson.ts'
import { isArray, isDocument, Scalar, type Bson } from '../query.ts'

export interface Extent {
  /** Bytes besides those of `parts`. */
  readonly bytes: number
  /**
   * How often parts of other values occur in the value: "3.list" is the path `list` of loop variable 3. Negative: removed from
   * the value. "s.list" is the path `list` of the document before the stage, "s$v.list" that of $$v, a variable of $lookup;
   * `bytes` contains an estimate of their sizes.
   */
  readonly parts: ReadonlyMap<string, number>
  /** The part that the value is, and nothing else. */
  readonly place?: string
  /** Elements of an array, or pieces that a string may be split into. */
  readonly items: number
  /** The least number of bytes of a string. */
  readonly least: number
  /** The largest absolute value of a number. */
  readonly most: number
  /** Documents that $unwind makes of the value; null means `items`. */
  readonly rows: number | null
  /** The fields of an object that the query itself writes. */
  readonly fields: ReadonlyMap<string, Extent> | null
  /** The extent of one element. */
  readonly each: Extent | null
  /**
   * What bounds a number, or the length of an array: the lengths of these parts, each so many times, and a constant under "".
   * Absent: the lengths of `parts`.
   */
  readonly counts?: Counts
  /** The length is at most this power of that sum; absent for 1. */
  readonly degree?: number
  /** The bytes of those parts bound the length, not their elements: elements of elements may be counted. */
  readonly isSpread?: boolean
  /** All elements together are at most `parts`, so that no part stands in several elements. */
  readonly isShared?: boolean
  /** The most elements of an array in it that `each` and `fields` do not tell. */
  readonly inner?: number
  /** The part of which the value is an element, and nothing else. */
  readonly among?: string
}

export type Counts = ReadonlyMap<string, number>

/** What bounds the length of an array. */
type Lengths = Pick<Extent, 'counts' | 'degree' | 'isSpread'>

/** The part that is the whole document before the stage. */
export const DOCUMENT = 's'
/** In counts, what begins [part, separator], as JSON: the pieces of a text count, or its bytes if the separator is empty. */
export const PIECES = '/'
/** The key of the constant in counts. */
export const CONSTANT = ''

/** Assumed elements of a stored array without a sample. */
export const ITEMS = 20
/** Larger stored arrays count as this many elements, so that one pass over them is always allowed. */
const ITEMS_MAX = 20_000
const STORED_BYTES = 1_000
const NAME_BYTES = 8
/** An object as mongod holds it while it computes. */
export const OBJECT_BYTES = 200
/** mongod bounds the memory of a gathered array. The array counts as at most this many bytes; only copies count more. */
const GATHERED_BYTES = 4 * 1024 * 1024
/** Keeps sums and products finite. */
const HUGE = 1e100

const NONE: ReadonlyMap<string, number> = new Map()

/** A number, a date or a boolean. */
export const SMALL: Extent = {
  bytes: 16,
  parts: NONE,
  items: 1,
  least: 0,
  most: Infinity,
  rows: null,
  fields: null,
  each: null,
}

/** Some part of the document: at() says which one when the value is read. */
const SOMEWHERE: ReadonlyMap<string, number> = new Map([[DOCUMENT, 1]])

/**
 * The stored value at one path. `items` is the length of its arrays in the sample: null if the sample held no array,
 * undefined without a sample.
 */
export function stored(items?: number | null): Extent {
  const most = Math.min(Math.max(items ?? ITEMS, ITEMS), ITEMS_MAX)
  const bytes = (STORED_BYTES * most) / ITEMS
  return { ...SMALL, bytes, parts: SOMEWHERE, items: most, rows: items === null ? 1 : (items ?? ITEMS) }
}

/** Whether the database can measure the part before the stage: a part of the document or of a variable of $lookup. */
export function isStored(part: string): boolean {
  return part.startsWith(DOCUMENT)
}

export const STORED = stored()

/** Whether the query alone tells the size. What is as long as a stored value has parts. */
function isFixed({ parts }: Extent): boolean {
  return parts.size === 0
}

/** Parts for an array that has fixed elements and this length, so that nothing takes it for an array of the query. */
export function lengthParts(counts: Counts): ReadonlyMap<string, number> {
  const parts = new Map<string, number>()
  for (const [written, times] of counts) {
    if (written === CONSTANT) continue
    const [part = '']: readonly string[] = written.startsWith(PIECES) ? JSON.parse(written.slice(1)) : [written]
    parts.set(part, (parts.get(part) ?? 0) + times * LEAST_BYTES)
  }
  return parts
}

/** The least bytes of an element of an array. */
export const LEAST_BYTES = 8

/** A number that counts something. */
function isNumber({ parts, items, each, fields }: Pick<Extent, 'parts' | 'items' | 'each' | 'fields'>): boolean {
  return parts.size === 0 && items === 1 && each === null && fields === null
}

const placed = new WeakMap<Extent, Map<string, Extent>>()

/** A value as a stage reads it at this part. Whatever earlier stages made it of, the database can measure it there. */
export function at(part: string, extent: Extent): Extent {
  if (isFixed(extent)) return uncounted(extent)
  const known = placed.get(extent) ?? new Map<string, Extent>()
  placed.set(extent, known)
  const found = known.get(part) ?? placedAt(part, extent)
  known.set(part, found)
  return found
}

function placedAt(part: string, extent: Extent): Extent {
  const { counts: _, degree: __, isSpread: ___, ...rest } = extent
  const whole = new Map([[part, 1]])
  const isShared = true
  const fields =
    extent.fields === null
      ? null
      : new Map([...extent.fields].map(([name, field]) => [name, at(`${part}.${name}`, field)]))
  return {
    ...rest,
    parts: whole,
    place: part,
    isShared,
    each: extent.each === null ? null : among(part, extent.each),
    fields,
  }
}

/** A value without numbers that count something: what they count is another document's in later stages. */
function uncounted(extent: Extent): Extent {
  const { fields, each, counts } = extent
  if (isNumber(extent)) return counts === undefined ? extent : SMALL
  if (fields === null && each === null) return extent
  const inner = fields === null ? null : new Map([...fields].map(([name, field]) => [name, uncounted(field)]))
  return { ...extent, fields: inner, each: each === null ? null : uncounted(each) }
}

/** A value somewhere in this part. */
function among(part: string, extent: Extent): Extent {
  if (isFixed(extent)) return uncounted(extent)
  const { counts: _, degree: __, place: ___, fields, each, ...rest } = extent
  const inner = fields === null ? null : new Map([...fields].map(([name, field]) => [name, among(part, field)]))
  const element = each === null ? null : among(part, each)
  const parts = new Map([[part, 1]])
  return { ...rest, parts, isSpread: true, isShared: true, each: element, fields: inner }
}

/** A value among those that a path finds in an array. */
export function loosened(extent: Extent): Extent {
  const { counts: _, degree: __, place: ___, fields, each, ...rest } = extent
  if (isFixed(extent)) return extent
  const inner = fields === null ? null : new Map([...fields].map(([name, field]) => [name, loosened(field)]))
  return { ...rest, fields: inner, each: each === null ? null : loosened(each), isSpread: true }
}

/** The same value, which may be any part of what it was. */
export function moved({ place: _, among: __, ...extent }: Extent): Extent {
  return extent
}

/** The whole value of a variable. */
export function wholeOf(variable: string, like: Pick<Extent, 'items' | 'each' | 'fields' | 'least'>): Extent {
  const { items, each, least } = like
  const fields =
    like.fields === null
      ? null
      : new Map([...like.fields].map(([name, field]) => [name, at(`${variable}.${name}`, field)]))
  const place = { parts: new Map([[variable, 1]]), place: variable, isShared: true }
  return {
    items,
    each: each === null ? null : among(variable, each),
    fields,
    least,
    most: Infinity,
    rows: null,
    bytes: 0,
    ...place,
  }
}

/** The largest number whose value is unknown: $range makes no more elements. */
const NUMBER_MAX = 10_000

/** What bounds a number or the length of an array. */
export function countsOf({ counts, parts, items, most, each, fields }: Extent): Counts {
  if (counts !== undefined) return counts
  if (parts.size === 0)
    return new Map([
      [CONSTANT, isNumber({ parts, items, each, fields }) ? Math.max(1, Math.min(most, NUMBER_MAX)) : items],
    ])
  return new Map([...parts].flatMap(([part, often]) => (often > 0 ? [[part, Math.max(1, often)]] : [])))
}

/** The parts whose lengths bound the length of an array. */
export function lengthsOf(extent: Extent): readonly string[] {
  return [...countsOf(extent).keys()].filter((part) => part !== CONSTANT)
}

/** A value that is at most as long as these together. */
export function counted(extents: readonly Extent[]): Required<Pick<Lengths, 'counts'>> & Lengths {
  const counts = new Map<string, number>()
  for (const extent of extents) {
    for (const [part, times] of countsOf(extent)) counts.set(part, Math.min((counts.get(part) ?? 0) + times, HUGE))
  }
  const degree = Math.max(1, ...extents.map((extent) => extent.degree ?? 1))
  const isSpread = extents.some((extent) => extent.isSpread === true)
  return { counts, ...(degree > 1 && { degree }), ...(isSpread && { isSpread }) }
}

function isCounted(extents: readonly Extent[]): boolean {
  return extents.some(({ counts, isSpread }) => counts !== undefined || isSpread === true)
}

/** The length is at most `n`, whatever is stored. */
export function fixedLength(n: number): Required<Pick<Extent, 'counts'>> {
  return { counts: new Map([[CONSTANT, n]]) }
}

export function sum(extents: readonly Extent[], bytes = 0): Extent {
  const parts = new Map<string, number>()
  let [total, items, least] = [bytes, 0, 0]
  for (const extent of extents) {
    total += extent.bytes
    items += extent.items
    least += extent.least
    for (const [part, times] of extent.parts) parts.set(part, (parts.get(part) ?? 0) + times)
  }
  return {
    bytes: Math.min(total, HUGE),
    parts,
    items: Math.min(items, HUGE),
    least,
    most: Infinity,
    rows: null,
    fields: null,
    each: null,
    ...lengthsTogether(extents),
    isShared: extents.every(isShared),
    inner: Math.max(0, ...extents.map((extent) => Math.max(extent.items, innerOf(extent)))),
  }
}

/** The values right in this one, as far as they are known. */
export function childrenOf({ each, fields }: Extent): readonly Extent[] {
  return [...(each === null ? [] : [each]), ...(fields?.values() ?? [])]
}

/** The most elements of any array in the value. */
export function innerOf(extent: Extent): number {
  return childrenOf(extent).reduce((most, child) => Math.max(most, child.items, innerOf(child)), extent.inner ?? 0)
}

/** What bounds the length of these together. A constant beside a stored value counts, too. */
function lengthsTogether(extents: readonly Extent[]): Partial<Lengths> {
  if (isCounted(extents)) return counted(extents)
  if (extents.every(isFixed) || !extents.some(isFixed)) return {}
  const fixed = extents.filter(isFixed).reduce((all, { items }) => all + items, 0)
  const { counts } = counted(extents.filter((extent) => !isFixed(extent)))
  return { counts: new Map([...counts, [CONSTANT, fixed]]) }
}

/** Whether all elements of an array together are at most its parts. */
export function isShared({ parts, isShared: known = false }: Extent): boolean {
  return parts.size === 0 || known
}

/** The largest of the extents in every respect. */
export function largest(extents: readonly Extent[]): Extent {
  const [first = SMALL, ...others] = extents
  if (others.length === 0) return moved(first)
  const parts = new Map(first.parts)
  let { bytes, items, least, most } = first
  for (const extent of others) {
    bytes = Math.max(bytes, extent.bytes)
    items = Math.max(items, extent.items)
    least = Math.min(least, extent.least)
    most = Math.max(most, extent.most)
    for (const [part, times] of extent.parts) parts.set(part, Math.max(parts.get(part) ?? 0, times))
  }
  for (const [part, times] of parts) {
    if (times < 0 && others.some((other) => !other.parts.has(part))) parts.set(part, 0)
  }
  const sizes = { bytes, parts, items, least, most }
  return {
    ...{ ...sizes, rows: null, fields: largestFields(extents), each: eachOf(extents) },
    ...lengthsTogether(extents),
    isShared: extents.every(isShared),
    inner: Math.max(...extents.map(innerOf)),
  }
}

function largestFields(extents: readonly Extent[]): Extent['fields'] {
  const merged = new Map<string, Extent>()
  for (const { fields } of extents) {
    if (fields === null) return null
    for (const [name, extent] of fields) {
      const known = merged.get(name)
      merged.set(name, known === undefined ? extent : largest([known, extent]))
    }
  }
  return merged
}

/** The largest element of all arrays; null if the elements of one array are unknown. */
export function eachOf(extents: readonly Extent[]): Extent | null {
  const each = extents.flatMap((extent) => extent.each ?? [])
  return each.length === extents.length ? largest(each) : null
}

export function times(extent: Extent, n: number): Extent {
  const multiplied = (all: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
    new Map([...all].map(([part, some]) => [part, Math.min(some * n, HUGE)]))
  return {
    ...moved(extent),
    bytes: Math.min(extent.bytes * n, HUGE),
    parts: multiplied(extent.parts),
    ...(extent.counts !== undefined && { counts: multiplied(extent.counts) }),
    most: Infinity,
    rows: null,
    fields: null,
    each: null,
    inner: innerOf(extent),
  }
}

/** An array with this many elements of one extent. */
export function list(each: Extent, items: number): Extent {
  const { degree: _, isSpread: __, ...whole } = times(each, items)
  return { ...whole, ...fixedLength(items), items, least: 0, each: moved(each) }
}

/** An array that a stage makes, and whose length only stored documents tell. */
export function storedList(each: Extent, items: number): Extent {
  const { counts: _, ...whole } = list(each, items)
  return { ...whole, parts: SOMEWHERE }
}

/** An array that a stage gathers from many documents. */
export function gatheredList(each: Extent, items: number): Extent {
  const whole = storedList(each, items)
  return { ...whole, bytes: Math.min(whole.bytes, GATHERED_BYTES) }
}

/** The number of values at a path: more than one for an array. */
export function elementsOf({ each, rows, items }: Extent): number {
  return each === null && rows === 1 ? 1 : items
}

export function object(fields: ReadonlyMap<string, Extent>): Extent {
  let names = OBJECT_BYTES
  for (const name of fields.keys()) names += name.length + NAME_BYTES
  return { ...sum([...fields.values()], names), items: 1, least: 0, fields }
}

/** At least the bytes of a string. */
function bytesOf(text: string): number {
  return text.length + 2 * (text.match(/[^\0-\x7f]/g)?.length ?? 0)
}

/** A value that the query writes out. */
export function literalExtent(value: Bson): Extent {
  const number = numberOf(value)
  if (number !== undefined) return { ...SMALL, most: Math.abs(number) }
  if (typeof value === 'string')
    return { ...SMALL, bytes: bytesOf(value) + 8, items: bytesOf(value) + 1, least: value.length }
  if (value instanceof Scalar)
    return { ...SMALL, bytes: 16 + (value.of.kind === '$binary' ? value.of.base64.length : 0) }
  if (isArray(value)) return arrayOf(value.map(literalExtent))
  if (!isDocument(value)) return SMALL
  return object(new Map(Object.entries(value).map(([name, below]) => [name, literalExtent(below)])))
}

export function arrayOf(elements: readonly Extent[]): Extent {
  const each = elements.length === 0 ? SMALL : largest(elements)
  const whole = { ...sum(elements, elements.length * NAME_BYTES), items: elements.length, least: 0, each }
  return { ...whole, ...fixedLength(elements.length) }
}

/** An element of an array. The bytes of the array bound its length. */
export function elementOf(array: Extent): Extent {
  const element = array.each ?? shareOf(array)
  return array.place === undefined || isFixed(element) ? element : { ...element, among: array.place }
}

function shareOf(array: Extent): Extent {
  const usual = array.rows === null ? Math.max(ITEMS, Math.min(array.items, ITEMS_MAX)) : ITEMS
  const share = 1 / Math.max(1, array.items)
  // One element may be as large as all of a stored array.
  const parts = new Map([...array.parts].map(([part, often]) => [part, isStored(part) ? often : often * share]))
  const { counts: _, degree: __, ...element } = times(array, share)
  return {
    ...element,
    parts,
    ...(parts.size > 0 && { isSpread: true }),
    // An array that the query makes may have all elements in one element; a stored array seldom does.
    items: Math.max(usual, array.fields === null ? innerOf(array) : 0),
    least: 0,
  }
}

/** The extent of the value at a path below this value. */
export function below(extent: Extent, [name, ...rest]: readonly string[]): Extent {
  if (name === undefined) return extent
  if (extent.fields !== null) return below(extent.fields.get(name) ?? SMALL, rest)
  if (extent.each?.fields) return of(extent, below(extent.each, [name, ...rest]))
  if (extent.place !== undefined) {
    const { counts: _, degree: __, isSpread: ___, ...like } = extent
    const place = `${extent.place}.${name}`
    return below({ ...like, parts: new Map([[place, 1]]), place, each: null }, rest)
  }
  if (extent.each !== null) return of(extent, below(extent.each, [name, ...rest]))
  const { counts: _, degree: __, ...like } = extent
  const items = Math.max(extent.items, innerOf(extent))
  return extent.parts.size === 0 ? { ...extent, items } : { ...like, items, isSpread: true }
}

/** An array as long as this one. */
function of(array: Extent, each: Extent): Extent {
  return { ...list(each, array.items), ...counted([array]) }
}

/** How often the value of a variable can occur in the extent. Parts that do not overlap count once. */
export function timesOf(variable: string, { parts }: Extent): number {
  let most = 0
  for (const part of parts.keys()) {
    if (part !== variable && !part.startsWith(`${variable}.`)) continue
    let total = 0
    for (let end = part.length; end > 0; end = part.lastIndexOf('.', end - 1))
      total += parts.get(part.slice(0, end)) ?? 0
    most = Math.max(most, total)
  }
  return most
}

/** The extent with `often` copies of a value in place of a variable. */
export function filled(extent: Extent, variable: string, value: Extent, often = timesOf(variable, extent)): Extent {
  const isOf = (part: string): boolean => part === variable || part.startsWith(`${variable}.`)
  const rest = new Map([...extent.parts].filter(([part]) => !isOf(part)))
  const { among: of } = value
  const put =
    often === 0
      ? []
      : [of === undefined ? times(value, often) : { ...times(value, often), parts: partsIn(of, extent, variable) }]
  const { items, least } = extent
  const all = { ...sum([{ ...extent, parts: rest }, ...put]), items, least }
  if (!isCounted([extent, value])) return all
  return { ...all, ...countedFilled(extent, isOf, value) }
}

/** The parts of a variable, as parts of the array whose element it is. */
export function partsIn(array: string, { parts }: Extent, variable: string): ReadonlyMap<string, number> {
  const own = [...parts].filter(([part, often]) => often > 0 && (part === variable || part.startsWith(`${variable}.`)))
  return new Map(own.map(([part, often]) => [array + part.slice(variable.length), often]))
}

function countedFilled(extent: Extent, isOf: (part: string) => boolean, value: Extent): Lengths {
  const counts = new Map<string, number>()
  const add = (part: string, times: number): void =>
    void counts.set(part, Math.min((counts.get(part) ?? 0) + times, HUGE))
  const all = [...countsOf(extent)]
  for (const [part, times] of all) {
    if (!isOf(part)) add(part, times)
    else for (const [other, more] of countsOf(value)) add(other, times * more)
  }
  const { degree, isSpread } = counted(all.some(([part]) => isOf(part)) ? [extent, value] : [extent])
  return { counts, ...(degree !== undefined && { degree }), ...(isSpread && { isSpread }) }
}
