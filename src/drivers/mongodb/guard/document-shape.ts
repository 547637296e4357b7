// The known fields of a document at one place of a pipeline. Safety rests on the injected projection, not on the shape.
// The shape serves to refuse hidden names with a clear message, and to find paths through partly shown objects.
import {
  at as placed,
  below as partOf,
  DOCUMENT,
  elementsOf,
  ITEMS,
  largest,
  object,
  STORED,
  storedList,
  sum,
  type Extent,
} from './value-size.ts'
import { within } from './step-meter.ts'
import { refusedLimit } from './refusal.ts'
import type { Work } from './work-budget.ts'

/** A projection that cut an object. raise() keeps stages that read the object behind the projection. */
interface Cut {
  raise(): void
}

export interface Shape {
  /** Null if the whole value is shown or computed: any path below it may be read. */
  readonly kids: ReadonlyMap<string, Shape> | null
  /** Whether there may be fields besides the known ones. */
  readonly open: boolean
  /**
   * The projections that cut this object. They drop values that are not objects. A comparison with null could reveal such
   * a value if the comparison ran before the projection.
   */
  readonly cut: readonly Cut[]
  /** The size of the value; absent if nothing is known. */
  readonly extent?: Extent
}

/** The limit on known fields of a document, at all depths. */
const FIELDS_MAX = 5_000

export const WHOLE: Shape = { kids: null, open: true, cut: [] }

/** A document with these fields and no others. */
export function closed(kids: ReadonlyMap<string, Shape>): Shape {
  return { kids, open: false, cut: [] }
}

export interface Found {
  /** whole: at or below a value shown as a whole. parent: partly shown. hidden: not shown, or does not exist. */
  readonly kind: 'whole' | 'parent' | 'hidden'
  readonly shape: Shape
  /** Whether a component is an array index. */
  readonly numeric: boolean
  /** Whether each component is the name of a known field. */
  readonly isNamed: boolean
  /** The projections that cut an object on the path. */
  readonly crossed: readonly Cut[]
}

export const isPlace = (component: string) => /^\d+$/.test(component)

/** Follows a path. Array indexes are skipped, because arrays are transparent. */
export function find(shape: Shape, components: readonly string[]): Found {
  const crossed: Cut[] = []
  let at = shape
  let numeric = false
  let isNamed = true
  for (const [n, component] of components.entries()) {
    crossed.push(...at.cut)
    const place = n > 0 && isPlace(component)
    numeric ||= place
    const next = at.kids === null ? WHOLE : at.kids.get(component)
    isNamed &&= at.kids?.has(component) === true
    if (next !== undefined) at = next
    else if (place) continue
    else if (at.open) at = WHOLE
    else return { kind: 'hidden', shape: WHOLE, numeric, isNamed, crossed }
  }
  return { kind: at.kids === null ? 'whole' : 'parent', shape: at, numeric, isNamed, crossed }
}

/** The shape of a document while one stage changes it. Each object is copied once, however many of its fields change. */
export class Draft {
  readonly #work: Work
  /** The copies made by this draft, and their fields, which may still change. */
  readonly #own = new Map<Shape, Map<string, Shape>>()
  #root: Shape

  constructor(shape: Shape, work: Work) {
    this.#root = shape
    this.#work = work
  }

  /** Sets a field to a value of this shape. */
  set(components: readonly string[], value: Shape): void {
    this.#root = this.#with(this.#root, components, 0, value)
  }

  /** Removes a field. */
  drop(components: readonly string[]): void {
    this.#root = this.#without(this.#root, components, 0)
  }

  /** Copies the field at this path from another shape, with the known facts about the objects on the path. */
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
    if (shape.kids === null) return { ...shape, extent: within(sum([extentOf(shape), extentOf(value)])) }
    const [own, kids] = this.#copied(shape)
    kids.set(name, this.#with(kids.get(name) ?? EMPTY, components, at + 1, value))
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
    const known = kids.get(name) ?? { kids: new Map<string, Shape>(), open: false, cut: source.cut }
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

/** The shape of one field of a document. */
function kidOf({ kids, cut, extent }: Shape, name: string): Shape {
  if (kids !== null) return kids.get(name) ?? WHOLE
  return { ...WHOLE, cut, ...(extent === undefined ? {} : { extent: partOf(extent, [name]) }) }
}

/** Throws Refusal. */
export function checkWeight(shape: Shape): void {
  const weight = weightOf(shape)
  if (weight <= FIELDS_MAX) return
  throw refusedLimit(
    'fields',
    `a stage makes documents with ${weight} fields; the limit is ${FIELDS_MAX}`,
    'Name fewer fields in the stage, or put related fields into one array.',
  )
}

const EMPTY: Shape = { kids: new Map(), open: false, cut: [] }

const weights = new WeakMap<Shape, number>()

/** The number of fields of a shape at all depths. An object that occurs twice counts twice. */
function weightOf(shape: Shape): number {
  if (shape.kids === null) return 1
  const known = weights.get(shape)
  if (known !== undefined) return known
  let weight = 1
  for (const below of shape.kids.values()) weight += weightOf(below)
  weights.set(shape, weight)
  return weight
}

/** The shape of documents that have one shape or the other. */
export function union(one: Shape, other: Shape): Shape {
  const cut = [...new Set([...one.cut, ...other.cut])]
  if (one.kids === null || other.kids === null) {
    // The other side's cuts still apply below a value that is shown as a whole.
    const extent = largest([extentOf(one), extentOf(other)])
    return { kids: null, open: true, cut: [...new Set([...cut, ...barriersOf(one), ...barriersOf(other)])], extent }
  }
  // If the other side is open, a field that only one side knows may be anything.
  const kids = new Map<string, Shape>()
  for (const name of [...one.kids.keys(), ...other.kids.keys()]) {
    const [here, there] = [one.kids.get(name) ?? rest(one), other.kids.get(name) ?? rest(other)]
    kids.set(name, here === null ? (there ?? WHOLE) : there === null ? here : union(here, there))
  }
  return { kids, open: one.open || other.open, cut }
}

/** The shape of a field that is not among the known fields. */
function rest({ open }: Shape): Shape | null {
  return open ? WHOLE : null
}

function barriersOf(shape: Shape): readonly Cut[] {
  return shape.kids === null ? shape.cut : [...shape.cut, ...[...shape.kids.values()].flatMap(barriersOf)]
}

const extents = new WeakMap<Shape, Extent>()

/** The size of a value of this shape. */
function extentOf(shape: Shape): Extent {
  if (shape.kids === null) return shape.extent ?? STORED
  const known = extents.get(shape)
  if (known !== undefined) return known
  const fields = new Map([...shape.kids].map(([name, kid]) => [name, extentOf(kid)]))
  const whole = object(fields)
  const { bytes = 0, items = ITEMS, rows = null } = shape.extent ?? {}
  const extent: Extent = {
    ...whole,
    bytes: Math.max(whole.bytes, bytes),
    items,
    rows,
    fields: shape.open ? null : fields,
  }
  extents.set(shape, extent)
  return extent
}

/** The size of the value at a path. */
export function extentAt(shape: Shape, path: readonly string[]): Extent {
  let [at, elements] = [shape, 1]
  for (const [n, component] of path.entries()) {
    if (at.kids === null) return eachOf(elements, partOf(extentOf(at), path.slice(n)))
    const next = at.kids.get(component)
    if (next === undefined && !isPlace(component)) {
      return eachOf(elements, at.extent === undefined ? STORED : partOf(at.extent, path.slice(n)))
    }
    if (at.extent !== undefined) elements *= elementsOf(at.extent)
    at = next ?? at
  }
  return eachOf(elements, extentOf(at))
}

/** The value at a path as a stage reads it. */
export function valueAt(shape: Shape, path: readonly string[]): Extent {
  return placed([DOCUMENT, ...path].join('.'), extentAt(shape, path))
}

/** The size of the values that a path finds in this many elements of an array. */
function eachOf(elements: number, found: Extent): Extent {
  return elements <= 1 ? found : { ...storedList(found, elements), rows: found.rows }
}

/** The number of objects that hold the last name of a path: one for each element of the arrays on the path. */
export function objectsAt(shape: Shape, path: readonly string[]): number {
  // Below an unknown value, count the elements of that value only.
  let [objects, within] = [1, 1]
  let at = shape
  for (const name of path.slice(0, -1)) {
    const isKnown = at.kids !== null
    if (at.kids?.has(name) === false && !at.open) break
    at = kidOf(at, name)
    const elements = elementsOf(extentOf(at))
    if (isKnown) objects *= elements
    else within = Math.max(within, elements)
  }
  return objects * within
}

/** The search for similar names takes time in proportion to the number of names. */
const PATHS_MAX = 300

/** The known paths, for a hint. */
export function pathsOf(shape: Shape, prefix = '', found: string[] = []): readonly string[] {
  for (const [name, below] of shape.kids ?? []) {
    if (found.length >= PATHS_MAX) break
    if (below.kids === null || below.kids.size === 0) found.push(prefix + name)
    else pathsOf(below, `${prefix}${name}.`, found)
  }
  return found
}

/** All known fields at all depths, as a string for comparison. */
export function outlineOf({ kids, open }: Shape): string {
  const fields = [...(kids ?? [])].map(([name, below]) => `${JSON.stringify(name)}:${outlineOf(below)}`)
  return kids === null ? '*' : `{${fields.join()}${open ? '…' : ''}}`
}
