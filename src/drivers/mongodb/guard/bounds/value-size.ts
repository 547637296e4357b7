// Bounds the value of an expression: its bytes, with everything in it, and its number of elements. For values that the
// query writes, the bounds are numbers. For stored values, the bounds are sizes that the database measures
// (measured-work.ts).
import {
  constant,
  isConstant,
  most,
  NONE,
  overAll,
  plus,
  product,
  scaled,
  sizeOf,
  sizesOf,
  withSize,
  type Amount,
  type Size,
} from './amount.ts'
import { numberOf } from '../body/parse-ejson.ts'
import { isArray, isDocument, Scalar, type Bson } from '../../confined-query.ts'

/**
 * An extent is what is known about a value. If a fact is unknown, `bytes` still bounds everything in the value, also
 * the length of each array in it.
 */
export interface Extent {
  readonly bytes: Amount
  /** The number of elements of an array, or of fields of an object. */
  readonly items: Amount
  readonly isLoose: boolean
  /** The memory that mongod allocates for the value, without parts that already exist. */
  readonly kept: Amount
  /** The largest absolute value of a number. Null if it is unknown. */
  readonly number: Amount | null
  /** The minimum number of bytes of a string. */
  readonly least: number
  /** The number of documents that $unwind usually makes of the value, for the cost estimate. */
  readonly usual: number
  /**
   * True if the value is not an array. The sample is trusted here: a path without an array in the sample counts as a
   * path without arrays.
   */
  readonly isSingle: boolean
  /** All fields of an object that the query writes. Null for any other value. */
  readonly fields: ReadonlyMap<string, Extent> | null
  /** What is known about each element of an array. Null if nothing is known. */
  readonly each: Extent | null
  /** Where the value is in the document or in a variable (see DOCUMENT). Null if it is in neither. */
  readonly place: string | null
  /** True if the value is neither an array nor an object. */
  readonly isScalar: boolean
}

/**
 * The document before the stage. "s.a.b" is the place of its path a.b. "s$v.a" is the place of the path a of v, a
 * variable of a $lookup.
 */
export const DOCUMENT = 's'

/** True if the database can measure the place before the stage. */
export function isStored(place: string): boolean {
  return place.startsWith(DOCUMENT)
}

/** The bytes of the value at a place, or of the element of a loop. */
export function bytesAt(place: string): Size {
  return `#${place}`
}

/** The number of elements or fields of the value at a place. */
export function lengthAt(place: string): Size {
  return `|${place}`
}

/** The number of pieces into which a separator splits the text at a place. */
export function piecesAt(place: string, separator: string): Size {
  return `/${JSON.stringify([place, separator])}`
}

/** The length of the longest piece without a space in the text at a place. */
export function wordAt(place: string): Size {
  return `~${place}`
}

/** The bytes of the longest element of the array at a place. For a value that is no array, the bytes of the value. */
export function longestAt(place: string): Size {
  return `^${place}`
}

/**
 * The bytes of the longest piece without a space in the text at a place. For a value that is no text, the same as
 * longestAt().
 */
export function runAt(place: string): Size {
  return `%${place}`
}

/** The number of arrays and regular expressions in the array at a place, and in the arrays in it. */
export function listsAt(place: string): Size {
  return `=${place}`
}

/** The bytes of the object at a place without some of its fields. Only the value of a $reduce has such a size. */
export function bytesWithout(place: string, names: readonly string[]): Size {
  return `-${JSON.stringify([place, ...names])}`
}

export interface Measure {
  readonly of: 'bytes' | 'length' | 'pieces' | 'word' | 'longest' | 'run' | 'lists'
  readonly place: string
  readonly separator: string
  /** Fields that do not count. */
  readonly without: readonly string[]
}

export function measureOf(size: Size): Measure {
  const place = size.slice(1)
  const whole = { place, separator: '', without: [] }
  if (size.startsWith('#')) return { ...whole, of: 'bytes' }
  if (size.startsWith('|')) return { ...whole, of: 'length' }
  if (size.startsWith('~')) return { ...whole, of: 'word' }
  if (size.startsWith('^')) return { ...whole, of: 'longest' }
  if (size.startsWith('%')) return { ...whole, of: 'run' }
  if (size.startsWith('=')) return { ...whole, of: 'lists' }
  const [path = '', ...names]: readonly string[] = JSON.parse(place)
  if (size.startsWith('-')) return { ...whole, of: 'bytes', place: path, without: names }
  return { ...whole, of: 'pieces', place: path, separator: names[0] ?? '' }
}

/** Without a sample, a stored array is assumed to have this many elements. */
const ITEMS = 20
/** The minimum bytes of an element of an array: a type, the index as text, and no value. */
export const ELEMENT_LEAST = 5
const NAME_BYTES = 8
/** The bytes of an empty object in mongod's memory. */
export const OBJECT_BYTES = 200
const SCALAR_BYTES = 16
/**
 * For an element of an array, mongod reserves twice the size of the element, because an array that grows needs room.
 */
export const ELEMENT_KEPT = 32
/** The bytes of a field of an object in mongod's memory. */
export const FIELD_KEPT = 48

/** A number, a date or a boolean. */
export const SMALL: Extent = {
  bytes: constant(SCALAR_BYTES),
  items: constant(1),
  isLoose: false,
  kept: constant(SCALAR_BYTES),
  number: null,
  least: 0,
  usual: 1,
  isSingle: true,
  fields: null,
  each: null,
  place: null,
  isScalar: true,
}

export function number(bound: Amount | null): Extent {
  return bound === null ? SMALL : { ...SMALL, number: bound }
}

/**
 * Returns the number of documents that $unwind usually makes of an array of this length. If the query itself says the
 * length, the number is exact.
 */
export function usualOf(items: Amount, otherwise = ITEMS): number {
  return isConstant(items) ? items.constant : otherwise
}

/** Returns the extent of a value of which only the bytes are known. */
export function anything(bytes: Amount, usual = ITEMS): Extent {
  const items = scaled(bytes, 1 / ELEMENT_LEAST)
  return { ...SMALL, bytes, items, isLoose: true, kept: bytes, usual, isSingle: false, isScalar: false }
}

/** A stored value in a shape. at() sets its place. */
const SOMEWHERE = anything(sizeOf(bytesAt(DOCUMENT)))

/**
 * Returns the extent of the stored value at one path. `items` is the length of its arrays in the sample, or null if
 * there was no array. `isFlat` is true if the sample had no array in an array.
 */
export function stored(items?: number | null, isFlat = false): Extent {
  return {
    ...SOMEWHERE,
    usual: items === null ? 1 : Math.max(items ?? ITEMS, 1),
    isSingle: items === null,
    each: isFlat ? { ...SOMEWHERE, isSingle: true } : null,
  }
}

export const STORED = stored()

/** True if the query alone decides how large the value is. */
export function isFixed({ bytes }: Extent): boolean {
  return isConstant(bytes)
}

/** Returns the extent of the value at this place. Sizes that the query alone decides stay the same. */
export function at(place: string, extent: Extent): Extent {
  if (isFixed(extent)) return { ...extent, kept: NONE }
  return {
    ...extent,
    bytes: sizeOf(bytesAt(place)),
    items: isConstant(extent.items) ? extent.items : sizeOf(lengthAt(place)),
    isLoose: false,
    kept: NONE,
    number: null,
    least: 0,
    fields: mapped(extent.fields, (field, name) => at(`${place}.${name}`, field)),
    each: extent.each === null ? null : elementAt(place, extent.each),
    place,
  }
}

/** Returns the extent of each element of the array at this place. `each` is an element without a place. */
function elementAt(place: string, each: Extent): Extent {
  const { isSingle, isScalar } = each
  return isFixed(each) ? each : { ...anything(sizeOf(bytesAt(place))), kept: NONE, isSingle, isScalar }
}

/**
 * Returns what later stages know about a computed value. Sizes that were measured before this stage mean nothing to
 * them.
 */
export function settled(extent: Extent): Extent {
  const { fields, each, number: bound, items, usual, isSingle, isScalar } = extent
  const known = {
    ...(isFixed(extent) ? extent : SOMEWHERE),
    number: bound !== null && isConstant(bound) ? bound : null,
    fields: mapped(fields, settled),
    each: each === null ? null : settled(each),
    place: null,
    kept: NONE,
    usual,
    isSingle,
    isScalar,
  }
  return isConstant(items) || isFixed(extent)
    ? { ...known, items: isConstant(items) ? items : scaled(extent.bytes, 1 / ELEMENT_LEAST) }
    : known
}

function mapped(fields: Extent['fields'], by: (field: Extent, name: string) => Extent): Extent['fields'] {
  return fields === null ? null : new Map([...fields].map(([name, field]) => [name, by(field, name)]))
}

export function moved(extent: Extent): Extent {
  return extent.place === null ? extent : { ...extent, place: null }
}

/** Returns the extent of any value inside this value. */
export function inside(extent: Extent): Extent {
  const { bytes, kept } = extent
  return { ...anything(bytes, usualIn(extent)), kept }
}

/** Returns the largest usual length of the value and of the values in it. */
function usualIn({ usual, fields, each }: Extent): number {
  const parts = [...(fields?.values() ?? []), ...(each === null ? [] : [each])]
  return Math.max(usual, ...parts.map(usualIn))
}

export function below(extent: Extent, [name, ...rest]: readonly string[]): Extent {
  if (name === undefined) return extent
  return below(fieldOf(extent, name), rest)
}

function fieldOf(extent: Extent, name: string): Extent {
  const { fields, each, place, isScalar } = extent
  if (isScalar) return SMALL
  if (fields !== null) return fields.get(name) ?? SMALL
  const element = each === null ? null : fieldOf(each, name)
  const fixed = element !== null && isFixed(element) ? element : null
  if (place !== null) return { ...at(`${place}.${name}`, { ...STORED, usual: extent.usual }), each: fixed }
  if (element === null) return inside(extent)
  const { items, isLoose } = extent
  return { ...inside(extent), items, isLoose, each: element }
}

/** Returns the extent of an array of this length. `all` is the size of all elements, and `kept` is their memory. */
export function arrayOf(
  items: Amount,
  { bytes: all, kept, each, usual }: Pick<Extent, 'bytes' | 'kept' | 'each' | 'usual'>,
): Extent {
  const bytes = plus(SCALAR_BYTES, all, scaled(items, NAME_BYTES))
  const elements = plus(SCALAR_BYTES, kept, scaled(items, ELEMENT_KEPT))
  return {
    ...SMALL,
    bytes,
    items,
    kept: elements,
    each: each === null ? null : moved(each),
    usual,
    isSingle: false,
    isScalar: false,
  }
}

/** Returns the extent of an array with this many elements that are alike. */
export function list(each: Extent, items: Amount, usual = isConstant(items) ? items.constant : ITEMS): Extent {
  return arrayOf(items, { bytes: product(items, each.bytes), kept: product(items, each.kept), each, usual })
}

/** Returns the extent of an array in which a stage gathers values of many documents. */
export function gatheredList(element: Extent, usual: number): Extent {
  return { ...SOMEWHERE, each: settled(element), usual }
}

export function written(elements: readonly Extent[]): Extent {
  const { bytes, kept } = together(elements)
  const each = elements.length === 0 ? SMALL : largest(elements)
  return arrayOf(constant(elements.length), { bytes, kept, each, usual: elements.length })
}

export function object(fields: ReadonlyMap<string, Extent>): Extent {
  let names = OBJECT_BYTES
  for (const name of fields.keys()) names += name.length + NAME_BYTES
  const all = together([...fields.values()])
  const [bytes, kept] = [plus(names, all.bytes), plus(names + fields.size * FIELD_KEPT, all.kept)]
  return { ...SMALL, bytes, kept, items: constant(fields.size), fields, isScalar: false }
}

export function text(bytes: Amount, least = 0): Extent {
  return { ...SMALL, bytes, kept: bytes, least }
}

/** Adds up the sizes of these values. */
export function together(extents: readonly Extent[]): Pick<Extent, 'bytes' | 'items' | 'kept'> {
  return {
    bytes: plus(...extents.map(({ bytes }) => bytes)),
    items: plus(...extents.map(({ items }) => items)),
    kept: plus(...extents.map(({ kept }) => kept)),
  }
}

/** Returns what is known about a value that may be any of these values. */
export function largest(extents: readonly Extent[]): Extent {
  const [first = SMALL, ...others] = extents
  if (others.length === 0) return moved(first)
  const nested = extents.filter(({ isScalar }) => !isScalar)
  return {
    bytes: most(...extents.map(({ bytes }) => bytes)),
    items: most(...extents.map(({ items }) => items)),
    isLoose: nested.some(({ isLoose }) => isLoose),
    kept: most(...extents.map(({ kept }) => kept)),
    number: extents.reduce<Amount | null>(
      (bound, extent) => (bound === null || extent.number === null ? null : most(bound, extent.number)),
      NONE,
    ),
    least: Math.min(...extents.map(({ least }) => least)),
    usual: Math.max(...extents.map(({ usual }) => usual)),
    isSingle: extents.every(({ isSingle }) => isSingle),
    fields: largestFields(nested),
    each: largestEach(nested),
    place: null,
    isScalar: nested.length === 0,
  }
}

function largestFields(extents: readonly Extent[]): Extent['fields'] {
  if (extents.length === 0) return null
  const all = new Map<string, Extent[]>()
  for (const { fields } of extents) {
    if (fields === null) return null
    for (const [name, field] of fields) all.set(name, [...(all.get(name) ?? []), field])
  }
  return new Map([...all].map(([name, fields]) => [name, largest(fields)]))
}

function largestEach(extents: readonly Extent[]): Extent | null {
  const each = extents.flatMap((extent) => extent.each ?? [])
  return each.length === 0 || each.length < extents.length ? null : largest(each)
}

function bytesOf(value: string): number {
  return value.length + 2 * (value.match(/[^\0-\x7f]/g)?.length ?? 0)
}

export function literalExtent(value: Bson): Extent {
  const known = numberOf(value)
  if (known !== undefined) return number(constant(Math.abs(known)))
  if (typeof value === 'string') return text(constant(bytesOf(value) + TEXT_BYTES), value.length)
  if (value instanceof Scalar)
    return text(constant(SCALAR_BYTES + (value.of.kind === '$binary' ? value.of.base64.length : 0)))
  if (isArray(value)) return written(value.map(literalExtent))
  if (!isDocument(value)) return SMALL
  return object(new Map(Object.entries(value).map(([name, each]) => [name, literalExtent(each)])))
}

/** A string takes these bytes besides its characters. */
export const TEXT_BYTES = 8

/** Returns the extent of an element in a loop. `own` is its size. */
export function elementOf({ each }: Extent, own: Size): Extent {
  if (each !== null && isFixed(each)) return { ...each, kept: NONE }
  const element = { ...anything(sizeOf(own)), kept: NONE }
  if (each === null) return element
  const fields = mapped(each.fields, (field) => (isFixed(field) ? { ...field, kept: NONE } : element))
  const { isScalar, isSingle } = each
  const { items, isLoose } = each.isLoose ? element : each
  return { ...element, items, isLoose, fields, isSingle, isScalar }
}

/**
 * Returns the number of values that a path of a filter or a sort finds. A path through arrays may find any element in
 * them.
 */
export function valuesFound({ bytes, items }: Extent, path: readonly string[]): Amount {
  return path.length > 1 ? scaled(bytes, 1 / ELEMENT_LEAST) : items
}

/** Returns what is known about any element of an array. */
export function anyOf(array: Extent): Extent {
  return array.each ?? inside(array)
}

/** Returns an extent that holds for every element of the array. `extent` is about the element of size `own`. */
export function atRest(extent: Extent, own: Size, array: Extent): Extent {
  const rest = (amount: Amount): Amount => withSize(amount, own, array.bytes)
  const items = rest(extent.items)
  return {
    ...extent,
    bytes: rest(extent.bytes),
    items,
    isLoose: extent.isLoose || sizesOf(extent.items).includes(own),
    kept: rest(extent.kept),
    number: extent.number === null ? null : rest(extent.number),
    fields: mapped(extent.fields, (field) => atRest(field, own, array)),
    each: extent.each === null ? null : atRest(extent.each, own, array),
    place: null,
  }
}

/** Returns the extent of an array that has one value (`body`) for each element of another array. */
export function overEach(body: Extent, own: Size, array: Extent): Extent {
  const [bytes, kept] = [overAll(body.bytes, own, array), overAll(body.kept, own, array)]
  return arrayOf(array.items, { bytes, kept, each: atRest(body, own, array), usual: array.usual })
}
