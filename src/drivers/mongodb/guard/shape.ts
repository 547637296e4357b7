// What fields a document is known to have at one place of a pipeline. Safety does not rest on it, the injected projection
// does; it gives the honest refusal of a hidden name, and tells which paths lead through a partly shown object.

/** A projection that cut an object: raise() keeps what reads it from moving in front. */
export interface Cut {
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
}

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
  /** Projections that cut an object on the way. */
  readonly crossed: readonly Cut[]
}

export const isPlace = (component: string) => /^\d+$/.test(component)

/** Follows a path; places in arrays are passed through, as arrays themselves are. */
export function find(shape: Shape, components: readonly string[]): Found {
  const crossed: Cut[] = []
  let at = shape
  let numeric = false
  for (const [n, component] of components.entries()) {
    crossed.push(...at.cut)
    const place = n > 0 && isPlace(component)
    numeric ||= place
    const next = at.kids === null ? WHOLE : at.kids.get(component)
    if (next !== undefined) at = next
    else if (place) continue
    else if (at.open) at = WHOLE
    else return { kind: 'hidden', shape: WHOLE, numeric, crossed }
  }
  return { kind: at.kids === null ? 'whole' : 'parent', shape: at, numeric, crossed }
}

/** The shape after a field was set to a value of this shape. */
export function withField(shape: Shape, components: readonly string[], value: Shape): Shape {
  const [name, ...below] = components
  if (name === undefined) return value
  if (shape.kids === null) return shape
  const known = shape.kids.get(name) ?? closed(new Map())
  const kids = new Map(shape.kids)
  kids.set(name, withField(known, below, value))
  return { ...shape, kids }
}

/** The shape after a field was taken away. */
export function withoutField(shape: Shape, components: readonly string[]): Shape {
  const [name, ...below] = components
  const known = name === undefined ? undefined : shape.kids?.get(name)
  if (name === undefined || known === undefined || !shape.kids) return shape
  const kids = new Map(shape.kids)
  if (below.length === 0) kids.delete(name)
  else kids.set(name, withoutField(known, below))
  return { ...shape, kids }
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

/** The names at the top, for a hint. */
export function namesOf(shape: Shape): string {
  const names = pathsOf(shape, '')
  return names.length > 30 ? `${names.slice(0, 30).join(', ')} …` : names.join(', ')
}

function pathsOf(shape: Shape, prefix: string): string[] {
  const found: string[] = []
  for (const [name, below] of shape.kids ?? []) {
    if (found.length > 30) break
    const path = prefix + name
    if (below.kids === null || below.kids.size === 0) found.push(path)
    else found.push(...pathsOf(below, `${path}.`))
  }
  return found
}

/** Every known field at every depth, as a text to be compared. */
export function outlineOf({ kids, open }: Shape): string {
  const fields = [...(kids ?? [])].map(([name, below]) => `${JSON.stringify(name)}:${outlineOf(below)}`)
  return kids === null ? '*' : `{${fields.join()}${open ? '…' : ''}}`
}
