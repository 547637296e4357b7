// A collection has no schema, so its paths come from sampled documents: dotted paths, the types at each path, and the
// number of documents that have the path. Names and counts are kept, but no value.
import { ALIASES, endOfName, sizeOf } from '../session/write-value.ts'

const DEPTH_MAX = 8
/** A parent with more names is treated as a dictionary, whose keys are data. */
const SIBLINGS_MAX = 200
const PATHS_MAX = 500
const TOPS_MAX = 2_000
const ODD_MAX = 20
/** In bytes. A longer name cannot be exposed. */
export const NAME_BYTES_MAX = 500
/** Keys that are data: ObjectIds, UUIDs, long hexadecimal or decimal numbers. */
const ID_LIKE = /^([0-9a-f]{24}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32,}|\d{6,})$/i
const IDS_MIN = 3
/** The work pauses after this many values, which take about 2 ms. */
export const VALUES_AT_ONCE = 10_000

export interface SampledPath {
  readonly path: string
  /** Null for a top-level field. */
  readonly parent: string | null
  /** The number of values of each type at the path. The elements of an array are counted in `elements`. */
  readonly types: ReadonlyMap<string, number>
  readonly elements: ReadonlyMap<string, number>
  readonly documents: number
  /**
   * True if the keys below this path are data, or cannot be exposed one by one. The value at the path can then be
   * exposed only as a whole.
   */
  readonly isDictionary: boolean
}

export interface Sampled {
  readonly documents: number
  readonly paths: readonly SampledPath[]
  /** Names that an exposure cannot contain, for example an empty name, or a name with a dot or a leading $. */
  readonly odd: readonly string[]
  /** False if the documents have more paths or levels than the sample lists. */
  readonly complete: boolean
}

interface Node {
  readonly children: Map<string, Node>
  readonly types: Map<string, number>
  readonly elements: Map<string, number>
  documents: number
  /**
   * The number of the last document that was counted. If several elements of an array have the path, the document
   * counts once.
   */
  last: number
  isDictionary: boolean
}

/** A document or array that is being read. */
interface Open {
  at: number
  readonly end: number
  readonly node: Node
  readonly depth: number
  /** The number of arrays that contain this array. Null for a document. */
  readonly nested: number | null
}

function newNode(): Node {
  return { children: new Map(), types: new Map(), elements: new Map(), documents: 0, last: 0, isDictionary: false }
}

/** True if the name cannot be a part of a path. */
function isOdd(name: string): boolean {
  return name === '' || name === '__proto__' || name.includes('.') || name.startsWith('$') || /^\d+$/.test(name)
}

export class Sample {
  readonly #root = newNode()
  readonly #odd = new Set<string>()
  #documents = 0
  #sincePause = 0
  #complete = true

  get documents(): number {
    return this.#documents
  }

  /**
   * Adds a document, unless it is invalid BSON. Yields after each VALUES_AT_ONCE values, which are counted over all
   * documents.
   */
  *add(document: Uint8Array): Generator<undefined, void> {
    this.#documents++
    const from = Buffer.from(document.buffer, document.byteOffset, document.byteLength)
    const open: Open[] = []
    try {
      this.#document(from, 0, this.#root, 0, open)
      for (let inner = open.at(-1); inner !== undefined; inner = open.at(-1)) {
        if (inner.at >= inner.end || (inner.nested === null && inner.node.isDictionary)) open.pop()
        else if (inner.nested === null) this.#field(from, inner, open)
        else this.#element(from, inner, inner.nested, open)
        if (++this.#sincePause % VALUES_AT_ONCE === 0) yield
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
    }
  }

  /** Adds a path of a validator, even if no sampled document has it. */
  declare(path: readonly string[]): void {
    let node = this.#root
    for (const name of path) {
      if (isOdd(name)) return
      node = childOf(node, name)
    }
  }

  finish(): Sampled {
    const paths: SampledPath[] = []
    this.#list(this.#root, null, paths)
    if (paths.length > PATHS_MAX) this.#complete = false
    const { documents } = this
    return { documents, paths: paths.slice(0, PATHS_MAX), odd: [...this.#odd], complete: this.#complete }
  }

  #document(from: Buffer, start: number, node: Node, depth: number, open: Open[]): void {
    if (node.isDictionary) return
    if (depth >= DEPTH_MAX) {
      this.#complete = false
      return
    }
    open.push({ at: start + 4, end: start + from.readInt32LE(start) - 1, node, depth, nested: null })
  }

  /**
   * Reads the elements of an array, and those of arrays inside it. A path does not show arrays: `a.b` is also the field
   * `b` of the elements of `a`.
   */
  #array(
    from: Buffer,
    start: number,
    { node, depth }: Pick<Open, 'node' | 'depth'>,
    nested: number,
    open: Open[],
  ): void {
    open.push({ at: start + 4, end: start + from.readInt32LE(start) - 1, node, depth, nested })
  }

  #field(from: Buffer, inside: Open, open: Open[]): void {
    const { at, node, depth } = inside
    const type = from[at] ?? 0
    const nameEnd = endOfName(from, at + 1)
    inside.at = nameEnd + 1 + sizeOf(type, from, nameEnd + 1)
    const isLong = nameEnd - at > NAME_BYTES_MAX
    const name = from.toString('utf8', at + 1, isLong ? at + NAME_BYTES_MAX : nameEnd)
    if (isOdd(name) || isLong || name.includes('\uFFFD')) this.#noteOdd(name, depth)
    else if (node.children.has(name) || node.children.size < (depth === 0 ? TOPS_MAX : SIBLINGS_MAX))
      this.#value(type, from, nameEnd + 1, { node: childOf(node, name), depth: depth + 1 }, open)
    else if (depth === 0) this.#complete = false
    else asDictionary(node)
  }

  #value(type: number, from: Buffer, at: number, of: Pick<Open, 'node' | 'depth'>, open: Open[]): void {
    const { node, depth } = of
    if (node.last !== this.#documents) {
      node.last = this.#documents
      node.documents++
    }
    count(node.types, ALIASES[type] ?? 'null')
    if (type === 0x03) this.#document(from, at, node, depth, open)
    if (type === 0x04) this.#array(from, at, of, 0, open)
  }

  #element(from: Buffer, inside: Open, nested: number, open: Open[]): void {
    const { node, depth } = inside
    const type = from[inside.at] ?? 0
    const value = endOfName(from, inside.at + 1) + 1
    inside.at = value + sizeOf(type, from, value)
    count(node.elements, ALIASES[type] ?? 'null')
    if (type === 0x03) this.#document(from, value, node, depth, open)
    if (type === 0x04 && nested < DEPTH_MAX) this.#array(from, value, inside, nested + 1, open)
  }

  #noteOdd(name: string, depth: number): void {
    // Numbers are the most common keys that are data, so they are not reported as odd.
    if (depth > 0 && /^\d+$/.test(name)) return
    if (this.#odd.size < ODD_MAX) this.#odd.add(name.slice(0, 100))
  }

  #list(node: Node, parent: string | null, into: SampledPath[]): void {
    for (const name of inOrder(node, parent)) {
      const child = node.children.get(name)
      if (child === undefined) continue
      if (looksLikeIds(child)) asDictionary(child)
      const path = parent === null ? name : `${parent}.${name}`
      into.push({ path, parent, ...child })
      if (into.length > PATHS_MAX) return
      this.#list(child, path, into)
    }
  }
}

/** Returns the names in the order of the documents. `_id` comes first, because it may be elsewhere in a view. */
function inOrder(node: Node, parent: string | null): readonly string[] {
  const names = [...node.children.keys()]
  return parent === null && node.children.has('_id') ? ['_id', ...names.filter((name) => name !== '_id')] : names
}

function childOf(node: Node, name: string): Node {
  const known = node.children.get(name)
  if (known !== undefined) return known
  const made = newNode()
  node.children.set(name, made)
  return made
}

function asDictionary(node: Node): void {
  node.isDictionary = true
  node.children.clear()
}

function looksLikeIds(node: Node): boolean {
  const names = [...node.children.keys()]
  return names.length >= IDS_MIN && names.every((name) => ID_LIKE.test(name))
}

function count(into: Map<string, number>, name: string): void {
  into.set(name, (into.get(name) ?? 0) + 1)
}
