// The size of the value of an expression: bytes, elements, and how often the value of a variable occurs in it. Sizes of
// constants are exact. Sizes of stored values come from the sample, or a usual size is assumed.
import { numberOf } from './parse-ejson.ts'
import { isArray, isDocument, Scalar, type Bson } from '../query.ts'

export interface Extent {
  /** Bytes besides those of `parts`. */
  readonly bytes: number
  /**
   * How often parts of variables occur in the value: "3.list" is the path `list` of variable 3. Negative: removed from the
   * value. "s0.list" is the path `list` of a stored document of collection 0; `bytes` contains an estimate of its size.
   */
  readonly parts: ReadonlyMap<string, number>
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
  /** The parts whose lengths bound a number, or the length of an array. Absent for an array: those of `parts`. */
  readonly counts?: ReadonlySet<string>
  /** The length is at most this power of the lengths of those parts together; absent for 1. */
  readonly degree?: number
  /** The bytes of those parts bound the length, not their elements: the elements of elements were joined. */
  readonly isSpread?: boolean
}

/** What bounds the length of an array. */
type Lengths = Pick<Extent, 'counts' | 'degree' | 'isSpread'>

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

/**
 * The stored value at one path. `items` is the length of its arrays in the sample: null if the sample held no array,
 * undefined without a sample.
 */
export function stored(items?: number | null, part?: string): Extent {
  const most = Math.min(Math.max(items ?? ITEMS, ITEMS), ITEMS_MAX)
  const parts = part === undefined ? NONE : new Map([[part, 1]])
  const bytes = (STORED_BYTES * most) / ITEMS
  return { ...SMALL, bytes, parts, items: most, rows: items === null ? 1 : (items ?? ITEMS) }
}

/** Whether this is a part of a stored document, not of a variable. */
export function isStored(part: string): boolean {
  return part.startsWith('s')
}

export const STORED = stored()

/** The whole value of a variable. */
export function wholeOf(variable: string, like: Pick<Extent, 'items' | 'each' | 'fields' | 'least'>): Extent {
  return { ...like, most: Infinity, rows: null, bytes: 0, parts: new Map([[variable, 1]]) }
}

/** The parts whose lengths bound the length of an array. */
export function lengthsOf({ counts, parts }: Extent): Iterable<string> {
  return counts ?? parts.keys()
}

/** A value that is at most as long as these together. */
export function counted(extents: readonly Extent[]): Lengths {
  const counts = new Set(extents.flatMap((extent) => [...lengthsOf(extent)]))
  if (counts.size === 0 && !isCounted(extents)) return {}
  const degree = Math.max(1, ...extents.map((extent) => extent.degree ?? 1))
  const isSpread = extents.some((extent) => extent.isSpread === true)
  return { counts, ...(degree > 1 && { degree }), ...(isSpread && { isSpread }) }
}

function isCounted(extents: readonly Extent[]): boolean {
  return extents.some(({ counts }) => counts !== undefined)
}

/** No part of a document tells its length. */
export const UNCOUNTED: Required<Pick<Extent, 'counts'>> = { counts: new Set() }

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
    ...(isCounted(extents) && counted(extents)),
  }
}

/** The largest of the extents in every respect. */
export function largest(extents: readonly Extent[]): Extent {
  const [first = SMALL, ...others] = extents
  if (others.length === 0) return first
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
    ...(isCounted(extents) && counted(extents)),
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
  const parts = new Map([...extent.parts].map(([part, some]) => [part, Math.min(some * n, HUGE)]))
  return {
    ...extent,
    bytes: Math.min(extent.bytes * n, HUGE),
    parts,
    most: Infinity,
    rows: null,
    fields: null,
    each: null,
  }
}

/** An array with this many elements of one extent. */
export function list(each: Extent, items: number): Extent {
  const { counts: _, degree: __, isSpread: ___, ...whole } = times(each, items)
  return { ...whole, items, least: 0, each }
}

/** An array that a stage gathers from many documents. */
export function gatheredList(each: Extent, items: number): Extent {
  const whole = list(each, items)
  return { ...whole, bytes: Math.min(whole.bytes, GATHERED_BYTES), parts: NONE }
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

/** A value that the query writes out. */
export function literalExtent(value: Bson): Extent {
  const number = numberOf(value)
  if (number !== undefined) return { ...SMALL, most: Math.abs(number) }
  if (typeof value === 'string')
    return { ...SMALL, bytes: value.length + 8, items: value.length + 1, least: value.length }
  if (value instanceof Scalar)
    return { ...SMALL, bytes: 16 + (value.of.kind === '$binary' ? value.of.base64.length : 0) }
  if (isArray(value)) return arrayOf(value.map(literalExtent))
  if (!isDocument(value)) return SMALL
  return object(new Map(Object.entries(value).map(([name, below]) => [name, literalExtent(below)])))
}

export function arrayOf(elements: readonly Extent[]): Extent {
  const each = elements.length === 0 ? SMALL : largest(elements)
  return { ...sum(elements, elements.length * NAME_BYTES), items: elements.length, least: 0, each }
}

/** An element of an array. */
export function elementOf(array: Extent): Extent {
  const share = 1 / Math.max(1, array.items)
  // One element may be as large as all of a stored array.
  const parts = new Map([...array.parts].map(([part, often]) => [part, isStored(part) ? often : often * share]))
  return (
    array.each ?? {
      ...times(array, share),
      parts,
      // An array that the query makes may have all elements in one element; a stored array seldom does.
      items: array.rows === null ? Math.max(ITEMS, Math.min(array.items, ITEMS_MAX)) : ITEMS,
      least: 0,
    }
  )
}

/** The extent of the value at a path below this value. */
export function below(extent: Extent, [name, ...rest]: readonly string[]): Extent {
  if (name === undefined) return extent
  if (extent.fields !== null) return below(extent.fields.get(name) ?? SMALL, rest)
  if (extent.each?.fields) return of(extent, below(extent.each, [name, ...rest]))
  const [only, ...others] = extent.parts
  if (only !== undefined && others.length === 0 && only[1] === 1 && extent.bytes === 0) {
    return below({ ...extent, parts: new Map([[`${only[0]}.${name}`, 1]]), each: null }, rest)
  }
  return extent.each === null ? extent : of(extent, below(extent.each, [name, ...rest]))
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
  const rest = new Map([...extent.parts].filter(([part]) => part !== variable && !part.startsWith(`${variable}.`)))
  const put = often === 0 ? [] : [times(value, often)]
  const all = sum([{ ...extent, parts: rest }, ...put])
  const isOf = (part: string): boolean => part === variable || part.startsWith(`${variable}.`)
  const lengths = [...lengthsOf(extent)]
  const counts = new Set(lengths.flatMap((part) => (isOf(part) ? [...lengthsOf(value)] : [part])))
  const { degree, isSpread } = counted(lengths.some(isOf) ? [extent, value] : [extent])
  return {
    ...all,
    items: extent.items,
    least: extent.least,
    ...(isCounted([extent, value]) && {
      counts,
      ...(degree !== undefined && { degree }),
      ...(isSpread && { isSpread }),
    }),
  }
}
