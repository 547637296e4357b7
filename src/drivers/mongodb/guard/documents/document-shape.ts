// A shape has the known fields of a document at one point of a pipeline. It is used to refuse hidden names with a clear
// message, and to find paths through partly exposed objects. Safety rests on the injected projection, not on the shape.
// An extent is what is known about a value (value-size.ts).
import { scaled, type Amount, constant } from '../bounds/amount.ts'
import {
  at as placed,
  below as partOf,
  DOCUMENT,
  inside,
  isFixed,
  largest,
  object,
  settled,
  STORED,
  type Extent,
} from '../bounds/value-size.ts'
import { refusedLimit } from '../refusals/refusal.ts'
import type { Work } from '../bounds/work-budget.ts'

/**
 * A projection that shows only a part of an object. After raise(), stages that read the object stay after the
 * projection.
 */
interface Cut {
  raise(): void
}

export interface Shape {
  /** Null if the whole value is shown or computed. Any path below it may then be read. */
  readonly kids: ReadonlyMap<string, Shape> | null
  /** True if there may be more fields. */
  readonly open: boolean
  /**
   * The projections that show only a part of this object. They drop values that are no objects. A comparison with null
   * before such a projection could reveal these values.
   */
  readonly cut: readonly Cut[]
  /** What is known about the value, unless it is an object that the query writes. */
  readonly extent?: Extent
  /** The query writes the value as an object, so it is no array. */
  readonly isWritten?: true
  /** The value is stored, or the query makes it only of stored texts or dates. So the query cannot choose it. */
  readonly isStored?: true
}

/** The limit on the known fields of a document at all depths together. */
const FIELDS_MAX = 5_000

export const WHOLE: Shape = { kids: null, open: true, cut: [] }

/** Returns the shape of a document with these fields and no others. */
export function closed(kids: ReadonlyMap<string, Shape>): Shape {
  return { kids, open: false, cut: [], isWritten: true }
}

export interface Found {
  /**
   * whole: the value, or an object that contains it, is shown as a whole. parent: the value is a partly exposed object.
   * hidden: the value is not shown, or does not exist.
   */
  readonly kind: 'whole' | 'parent' | 'hidden'
  readonly shape: Shape
  /** True if the path contains an array index. */
  readonly numeric: boolean
  readonly isNamed: boolean
  /** The projections that show only a part of an object on the path. */
  readonly crossed: readonly Cut[]
}

export const isPlace = (component: string) => /^\d+$/.test(component)

/** Paths do not show arrays, so array indexes are skipped. */
export function find(shape: Shape, components: readonly string[]): Found {
  const crossed: Cut[] = []
  let at = shape
  let numeric = false
  let isNamed = true
  for (const [n, component] of components.entries()) {
    crossed.push(...at.cut)
    const place = n > 0 && isPlace(component)
    numeric ||= place
    const next = at.kids === null ? partOfWhole(at) : at.kids.get(component)
    isNamed &&= at.kids?.has(component) === true
    if (next !== undefined) at = next
    else if (place) continue
    else if (at.open) at = WHOLE
    else return { kind: 'hidden', shape: WHOLE, numeric, isNamed, crossed }
  }
  return { kind: at.kids === null ? 'whole' : 'parent', shape: at, numeric, isNamed, crossed }
}

const STORED_WHOLE: Shape = { ...WHOLE, isStored: true }

function partOfWhole({ isStored }: Shape): Shape {
  return isStored === true ? STORED_WHOLE : WHOLE
}

/**
 * The shape of a document while one stage changes it. Each object is copied at most once, even if many of its fields
 * change.
 */
export class Draft {
  readonly #work: Work
  /** The copies, with their fields, which may still change. */
  readonly #own = new Map<Shape, Map<string, Shape>>()
  #root: Shape

  constructor(shape: Shape, work: Work) {
    this.#root = shape
    this.#work = work
  }

  set(components: readonly string[], value: Shape): void {
    this.#root = this.#with(this.#root, components, 0, value)
  }

  drop(components: readonly string[]): void {
    this.#root = this.#without(this.#root, components, 0)
  }

  /** Takes the field at this path from another shape, with what is known about the objects on the path. */
  pick(components: readonly string[], from: Shape): void {
    this.#root = this.#picked(this.#root, components, 0, from)
  }

  /** Throws Refusal if the document has too many known fields. */
  finish(): Shape {
    checkWeight(this.#root)
    return this.#root
  }

  #with(shape: Shape, components: readonly string[], at: number, value: Shape): Shape {
    const name = components[at]
    this.#work.spend(1)
    if (name === undefined) return value
    // The fields of the outer value are unknown. So once the inner value is set, nothing more is known about the outer
    // value.
    if (shape.kids === null) {
      const { isStored: _, ...known } = shape
      return { ...known, extent: STORED }
    }
    const [own, kids] = this.#copied(shape)
    // An unknown field may be an array.
    const known = kids.get(name) ?? (shape.open ? WHOLE : EMPTY)
    kids.set(name, this.#with(known, components, at + 1, value))
    return own
  }

  #without(shape: Shape, components: readonly string[], at: number): Shape {
    const name = components[at]
    const known = name === undefined ? undefined : shape.kids?.get(name)
    this.#work.spend(1)
    if (name === undefined || known === undefined) return shape
    const [own, kids] = this.#copied(shape)
    if (at === components.length - 1) kids.delete(name)
    else kids.set(name, this.#without(known, components, at + 1))
    return own
  }

  #picked(kept: Shape, components: readonly string[], at: number, from: Shape): Shape {
    const name = components[at]
    this.#work.spend(1)
    if (name === undefined) return from
    if (isPlace(name) && from.kids?.has(name) !== true) return this.#picked(kept, components, at + 1, from)
    const source = kidOf(from, name)
    if (kept.kids === null) return kept
    const [own, kids] = this.#copied(kept)
    const known = kids.get(name) ?? { ...source, kids: new Map<string, Shape>(), open: false }
    kids.set(name, at === components.length - 1 ? source : this.#picked(known, components, at + 1, source))
    return own
  }

  #copied(shape: Shape): readonly [Shape, Map<string, Shape>] {
    const known = this.#own.get(shape)
    if (known !== undefined) return [shape, known]
    const kids = new Map(shape.kids)
    this.#work.spend(kids.size)
    const own: Shape = { ...shape, kids }
    this.#own.set(own, kids)
    return [own, kids]
  }
}

function kidOf({ kids, cut, extent }: Shape, name: string): Shape {
  if (kids !== null) return kids.get(name) ?? WHOLE
  return { ...WHOLE, cut, ...(extent === undefined ? {} : { extent: settled(partOf(extent, [name])) }) }
}

/** Throws Refusal if documents of this shape have too many fields. */
export function checkWeight(shape: Shape): void {
  const weight = weightOf(shape)
  if (weight <= FIELDS_MAX) return
  throw refusedLimit(
    'fields',
    `a stage makes documents with ${weight} fields; the limit is ${FIELDS_MAX}`,
    'Name fewer fields in the stage, or put related fields into one array.',
  )
}

const EMPTY: Shape = { kids: new Map(), open: false, cut: [], isWritten: true }

const weights = new WeakMap<Shape, number>()

/** Counts fields at all depths. An object that occurs twice counts twice. */
function weightOf(shape: Shape): number {
  if (shape.kids === null) return 1
  const known = weights.get(shape)
  if (known !== undefined) return known
  let weight = 1
  for (const below of shape.kids.values()) weight += weightOf(below)
  weights.set(shape, weight)
  return weight
}

/** Returns the shape of documents that may have either shape. */
export function union(one: Shape, other: Shape): Shape {
  const cut = [...new Set([...one.cut, ...other.cut])]
  if (one.kids === null || other.kids === null) {
    // One side is shown as a whole. Below it, the projections of the other side still apply.
    const extent = settled(largest([extentOf(one), extentOf(other)]))
    return { kids: null, open: true, cut: [...new Set([...cut, ...barriersOf(one), ...barriersOf(other)])], extent }
  }
  // If the other side is open, a field that only this side knows may be anything there.
  const kids = new Map<string, Shape>()
  for (const name of [...one.kids.keys(), ...other.kids.keys()]) {
    const [here, there] = [one.kids.get(name) ?? rest(one), other.kids.get(name) ?? rest(other)]
    kids.set(name, here === null ? (there ?? WHOLE) : there === null ? here : union(here, there))
  }
  const known = { kids, open: one.open || other.open, cut }
  if (one.isWritten === true && other.isWritten === true) return { ...known, isWritten: true }
  return {
    ...known,
    extent: { ...STORED, usual: Math.max(usualOf(one), usualOf(other)), isSingle: isSingle(one) && isSingle(other) },
  }
}

function usualOf({ extent }: Shape): number {
  return extent?.usual ?? 1
}

/** Returns the shape of a field that is not known. Returns null if the document has only its known fields. */
function rest({ open }: Shape): Shape | null {
  return open ? WHOLE : null
}

function barriersOf(shape: Shape): readonly Cut[] {
  return shape.kids === null ? shape.cut : [...shape.cut, ...[...shape.kids.values()].flatMap(barriersOf)]
}

const extents = new WeakMap<Shape, Extent>()

function extentOf(shape: Shape): Extent {
  if (shape.kids === null) return shape.extent ?? STORED
  const known = extents.get(shape)
  if (known !== undefined) return known
  const fields = new Map([...shape.kids].map(([name, kid]) => [name, extentOf(kid)]))
  const whole = settled(object(fields))
  const extent = shape.open || !isSingle(shape) ? { ...STORED, usual: usualOf(shape) } : whole
  extents.set(shape, extent)
  return extent
}

/** True if the value is one object, and no array of objects. For a stored object, the sample decides. */
function isSingle({ kids, extent, isWritten }: Shape): boolean {
  return isWritten === true || (kids !== null && extent?.isSingle === true)
}

/** Returns the shape of a value that a stage has computed. */
export function shapeWith(extent: Extent): Shape {
  return { ...WHOLE, extent: settled(extent) }
}

/** Returns what is known about the value at a path, as a stage reads it. */
export function valueAt(shape: Shape, path: readonly string[]): Extent {
  const place = [DOCUMENT, ...path].join('.')
  let [at, usual, single] = [shape, 1, true]
  for (const [n, component] of path.entries()) {
    const next = at.kids?.get(component)
    if (next === undefined) {
      const found = at.kids === null ? extentOf(at) : STORED
      const whole = placed([DOCUMENT, ...path.slice(0, n)].join('.'), found)
      return isPlace(component) ? inside(whole) : many(partOf(whole, path.slice(n)), { place, usual, single })
    }
    if (n > 0 || at !== shape) {
      single &&= isSingle(at)
      usual *= usualOf(at)
    }
    at = next
  }
  return many(placed(place, extentOf(at)), { place, usual, single })
}

/** A path through arrays finds several values. */
function many(
  found: Extent,
  { place, usual, single }: { readonly place: string; readonly usual: number; readonly single: boolean },
): Extent {
  if (single) return found
  const all = placed(place, { ...STORED, usual: usual * found.usual })
  return { ...all, each: isFixed(found) ? found : null }
}

/** The minimum bytes of an object in an array. */
const OBJECT_LEAST = 8

/**
 * Returns an upper bound for the number of objects that have the last name of a path. If the path goes through an
 * array, there may be an object for every OBJECT_LEAST bytes.
 */
export function objectsAt(shape: Shape, path: readonly string[]): Amount {
  let at = shape
  for (const [n, name] of path.slice(0, -1).entries()) {
    const next = at.kids?.get(name)
    if (next === undefined || !isSingle(next))
      return scaled(valueAt(shape, path.slice(0, n + 1)).bytes, 1 / OBJECT_LEAST)
    at = next
  }
  return constant(1)
}

/** The search for similar names takes time in proportion to the number of paths. */
const PATHS_MAX = 300

/** Returns the known paths, for a hint. */
export function pathsOf(shape: Shape, prefix = '', found: string[] = []): readonly string[] {
  for (const [name, below] of shape.kids ?? []) {
    if (found.length >= PATHS_MAX) break
    if (below.kids === null || below.kids.size === 0) found.push(prefix + name)
    else pathsOf(below, `${prefix}${name}.`, found)
  }
  return found
}

/** Returns all known fields at all depths, as a string that can be compared. */
export function outlineOf({ kids, open }: Shape): string {
  const fields = [...(kids ?? [])].map(([name, below]) => `${JSON.stringify(name)}:${outlineOf(below)}`)
  return kids === null ? '*' : `{${fields.join()}${open ? '…' : ''}}`
}
