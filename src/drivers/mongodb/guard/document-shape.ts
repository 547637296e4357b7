// What fields a document is known to have at one place of a pipeline. Safety does not rest on it, the injected projection
// does; it gives the honest refusal of a hidden name, and tells which paths lead through a partly shown object.
import { below as partOf, elementsOf, ITEMS, list, object, STORED, sum, type Extent } from './value-size.ts'
import { within } from './step-meter.ts'
import { refusedLimit } from './refusal.ts'
import type { Work } from './work-budget.ts'

/** A projection that cut an object: raise() keeps what reads it from moving in front. */
interface Cut {
  raise(): void
}

export interface Shape {
  /** Null: the whole value is shown, or computed; whatever is below may be asked for. */
  readonly kids: ReadonlyMap<string, Shape> | null
  /** There may be further fields than those known. */
  readonly open: boolean
  /**
   * Of the projections that cut this object: what is no object in its place was dropped, and a comparison with null
   * could tell, were it moved before them.
   */
  readonly cut: readonly Cut[]
  /** How large the value is; absent where nothing is known of it. */
  readonly extent?: Extent
}

/** Fields that a document may be known to have, at every depth. */
const FIELDS_MAX = 5_000

export const WHOLE: Shape = { kids: null, open: true, cut: [] }

/** A document with these fields and no others. */
export function closed(kids: ReadonlyMap<string, Shape>): Shape {
  return { kids, open: false, cut: [] }
}

export interface Found {
  /** whole: at or below what is shown whole. parent: shown in part. hidden: not shown, or no such thing. */
  readonly kind: 'whole' | 'parent' | 'hidden'
  readonly shape: Shape
  /** A component is the place in an array. */
  readonly numeric: boolean
  /** Each component is the name of a field that is known. */
  readonly isNamed: boolean
  /** Projections that cut an object on the way. */
  readonly crossed: readonly Cut[]
}

export const isPlace = (component: string) => /^\d+$/.test(component)

/** Follows a path; places in arrays are passed through, as arrays themselves are. */
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

/** The shape of a document while one stage changes it: each object is copied once, however many of its fields change. */
export class Draft {
  readonly #work: Work
  /** The copies made here, and their fields while they may still change. */
  readonly #own = new Map<Shape, Map<string, Shape>>()
  #root: Shape

  constructor(shape: Shape, work: Work) {
    this.#root = shape
    this.#work = work
  }

  /** A field is set to a value of this shape. */
  set(components: readonly string[], value: Shape): void {
    this.#root = this.#with(this.#root, components, 0, value)
  }

  /** A field is taken away. */
  drop(components: readonly string[]): void {
    this.#root = this.#without(this.#root, components, 0)
  }

  /** The field at this path of another shape is kept, with what is known of the objects on the way. */
  pick(components: readonly string[], from: Shape): void {
    this.#root = this.#picked(this.#root, components, 0, from)
  }

  /** Throws Refusal where the document has more fields than are followed. */
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

/** What is known of one field of a document. */
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
    `a stage makes documents of ${weight} fields; ${FIELDS_MAX} is the most`,
    'Name fewer fields in a stage, or put what belongs together into one array.',
  )
}

const EMPTY: Shape = { kids: new Map(), open: false, cut: [] }

const weights = new WeakMap<Shape, number>()

/** How many fields a shape has at every depth; an object that stands in it twice counts twice. */
function weightOf(shape: Shape): number {
  if (shape.kids === null) return 1
  const known = weights.get(shape)
  if (known !== undefined) return known
  let weight = 1
  for (const below of shape.kids.values()) weight += weightOf(below)
  weights.set(shape, weight)
  return weight
}

/** Documents of either shape. */
export function union(one: Shape, other: Shape): Shape {
  const cut = [...new Set([...one.cut, ...other.cut])]
  if (one.kids === null || other.kids === null) {
    // Below a whole value the barriers of the other side's parts still count.
    return { kids: null, open: true, cut: [...new Set([...cut, ...barriersOf(one), ...barriersOf(other)])] }
  }
  // A field that only one side knows may be anything where the other side is open.
  const kids = new Map<string, Shape>()
  for (const name of [...one.kids.keys(), ...other.kids.keys()]) {
    const [here, there] = [one.kids.get(name) ?? rest(one), other.kids.get(name) ?? rest(other)]
    kids.set(name, here === null ? (there ?? WHOLE) : there === null ? here : union(here, there))
  }
  return { kids, open: one.open || other.open, cut }
}

/** What is known of a field that is not among the known ones. */
function rest({ open }: Shape): Shape | null {
  return open ? WHOLE : null
}

function barriersOf(shape: Shape): readonly Cut[] {
  return shape.kids === null ? shape.cut : [...shape.cut, ...[...shape.kids.values()].flatMap(barriersOf)]
}

const extents = new WeakMap<Shape, Extent>()

/** How large a value of this shape may be. */
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

/** How large what a path leads to may be. */
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

/** What a path finds in so many elements of an array. */
function eachOf(elements: number, found: Extent): Extent {
  return elements <= 1 ? found : { ...list(found, elements), parts: found.parts, rows: found.rows }
}

/** How many objects hold the last name of a path: one for each element of the arrays on the way to it. */
export function objectsAt(shape: Shape, path: readonly string[]): number {
  // Below a value of which nothing more is known, its elements are all there are.
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

/** Looking for near names takes time by their number. */
const PATHS_MAX = 300

/** The paths that are known, for a hint. */
export function pathsOf(shape: Shape, prefix = '', found: string[] = []): readonly string[] {
  for (const [name, below] of shape.kids ?? []) {
    if (found.length >= PATHS_MAX) break
    if (below.kids === null || below.kids.size === 0) found.push(prefix + name)
    else pathsOf(below, `${prefix}${name}.`, found)
  }
  return found
}

/** Every known field at every depth, as a text to be compared. */
export function outlineOf({ kids, open }: Shape): string {
  const fields = [...(kids ?? [])].map(([name, below]) => `${JSON.stringify(name)}:${outlineOf(below)}`)
  return kids === null ? '*' : `{${fields.join()}${open ? '…' : ''}}`
}
