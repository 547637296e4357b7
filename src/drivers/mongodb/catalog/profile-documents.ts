// Counts the values of exposed paths in the BSON bytes of documents. If a path has an array, the elements of the array
// are its values. Other fields are skipped, although the projection should have removed them.
import { ColumnSample } from '../../profile-from-sample.ts'
import type { CatalogColumn, ColumnProfile, Scalar, ValueKind } from '../../driver.ts'
import { JsonBytes } from '../../json-bytes.ts'
import type { MongoColumnDetail } from '../captured-facts.ts'
import { endOfName, lengthAt, sizeOf, writeValue } from '../session/write-value.ts'
import { NAME_BYTES_MAX } from './sample-paths.ts'

/** Strings are read only up to this length. Longer strings with the same start count as equal. */
const CHARS_MAX = 257
const DEPTH_MAX = 100
/** The number of array elements that are read in one document. */
const ELEMENTS_MAX = 20_000
/** The work pauses after this many steps, which take at most about 10 ms. Reading a field is one step. */
const STEPS_AT_ONCE = 20_000
/** Reading an element of an array takes up to 2 µs. */
const ELEMENT_STEPS = 8
/** The steps to count a value. To find out what a text looks like takes up to 20 µs. */
const VALUE_STEPS = 80
/** A name takes one more step for each of this many bytes. */
const NAME_BYTES = 32
/** The number of columns whose profiles are computed without a pause. */
const COLUMNS_AT_ONCE = 8

interface Node {
  readonly kids: Map<string, Node>
  /** The index of the column whose path ends here. Null if all paths continue. */
  column: number | null
}

interface Found {
  isThere: boolean
  /** True if there is a document, bytes that are no UUID, or a value of another kind than the column's. */
  isOpaque: boolean
  isList: boolean
  readonly scalars: Set<Scalar>
}

export class Documents {
  readonly #root: Node = { kids: new Map(), column: null }
  readonly #names: readonly string[]
  readonly #kinds: readonly ValueKind[]
  readonly #samples: readonly ColumnSample[]
  readonly #found: readonly Found[]
  count = 0
  /** The elements that were read in the current document. */
  #elements = 0
  #steps = 0

  constructor(columns: readonly CatalogColumn[]) {
    this.#names = columns.map((column) => column.name)
    this.#kinds = columns.map(kindOf)
    this.#samples = this.#kinds.map((kind) => new ColumnSample(kind))
    this.#found = columns.map(() => ({ isThere: false, isOpaque: false, isList: false, scalars: new Set() }))
    for (const [n, name] of this.#names.entries()) {
      let node = this.#root
      for (const part of name.split('.')) {
        const kid = node.kids.get(part) ?? { kids: new Map(), column: null }
        node.kids.set(part, kid)
        node = kid
      }
      node.column = n
    }
  }

  /**
   * `batch` is a BSON array of documents. Yields after each STEPS_AT_ONCE steps. Throws RangeError for invalid BSON.
   */
  *addAll(batch: Uint8Array): Generator<undefined, void> {
    const from = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength)
    const end = lengthAt(from, 0) - 1
    for (let at = 4; at < end;) {
      const start = endOfName(from, at + 1) + 1
      yield* this.#document(from, start, this.#root, 0)
      yield* this.#next()
      at = start + lengthAt(from, start)
    }
  }

  /** Yields after each COLUMNS_AT_ONCE columns. */
  *profiles(whole: {
    readonly rows: number | null
    readonly complete: boolean
  }): Generator<undefined, readonly ColumnProfile[]> {
    const profiles: ColumnProfile[] = []
    for (const [n, name] of this.#names.entries()) {
      if (n % COLUMNS_AT_ONCE === COLUMNS_AT_ONCE - 1) yield
      const sample = this.#samples[n]
      if (sample !== undefined) profiles.push(sample.profile(name, whole))
    }
    return profiles
  }

  #isDue(steps: number): boolean {
    this.#steps += steps
    if (this.#steps < STEPS_AT_ONCE) return false
    this.#steps = 0
    return true
  }

  *#next(): Generator<undefined, void> {
    this.count++
    this.#elements = 0
    for (const [n, found] of this.#found.entries()) {
      const sample = this.#samples[n]
      if (this.#isDue(VALUE_STEPS)) yield
      if (!found.isThere) sample?.add(null)
      else if (found.isOpaque) sample?.add(undefined)
      else if (found.isList) {
        for (const _ of sample?.addAll(found.scalars) ?? []) if (this.#isDue(VALUE_STEPS)) yield
      } else sample?.add(found.scalars.values().next().value)
      found.isThere = found.isOpaque = found.isList = false
      found.scalars.clear()
    }
  }

  *#document(from: Buffer, start: number, node: Node, depth: number, isListed = false): Generator<undefined, void> {
    const end = start + lengthAt(from, start) - 1
    if (node.kids.size === 0) return
    for (let at = start + 4; at < end;) {
      const type = from[at] ?? 0
      const nameEnd = endOfName(from, at + 1)
      if (this.#isDue(1 + (nameEnd - at) / NAME_BYTES)) yield
      const isLong = nameEnd - at > NAME_BYTES_MAX
      const kid = isLong ? undefined : node.kids.get(from.toString('utf8', at + 1, nameEnd))
      if (kid !== undefined) yield* this.#value(type, from, nameEnd + 1, kid, depth + 1, isListed)
      at = nameEnd + 1 + sizeOf(type, from, nameEnd + 1)
    }
  }

  *#value(
    type: number,
    from: Buffer,
    at: number,
    node: Node,
    depth: number,
    isListed: boolean,
  ): Generator<undefined, void> {
    const found = node.column === null ? undefined : this.#found[node.column]
    if (found !== undefined && isListed) found.isList = true
    if (depth > DEPTH_MAX) return
    if (type === 0x04) {
      if (found !== undefined) found.isThere = found.isList = true
      const end = at + lengthAt(from, at) - 1
      for (let each = at + 4; each < end;) {
        if (++this.#elements > ELEMENTS_MAX) return
        if (this.#isDue(ELEMENT_STEPS)) yield
        const start = endOfName(from, each + 1) + 1
        const element = from[each] ?? 0
        yield* this.#value(element, from, start, node, depth + 1, true)
        each = start + sizeOf(element, from, start)
      }
      return
    }
    if (type === 0x03) yield* this.#document(from, at, node, depth, isListed)
    if (found === undefined || type === 0x0a || type === 0x06) return
    found.isThere = true
    const scalar = scalarOf(type, from, at, this.#kinds[node.column ?? 0] ?? 'other')
    if (scalar === undefined) found.isOpaque = true
    else found.scalars.add(scalar)
  }
}

const NUMBERS = ['int', 'long', 'double', 'decimal']
const KINDS: readonly (readonly [ValueKind, readonly string[]])[] = [
  ['number', NUMBERS],
  ['time', ['date']],
  ['boolean', ['bool']],
  ['text', ['string', 'objectId', 'symbol']],
]

/** Returns the kind of a column, from the types that introspection found. */
function kindOf({ detail }: CatalogColumn): ValueKind {
  const types = isDetail(detail) ? Object.keys(detail.types).filter((type) => type !== 'null') : []
  if (types.length === 0) return 'other'
  return KINDS.find(([, all]) => types.every((type) => all.includes(type)))?.[0] ?? 'other'
}

function isDetail(value: unknown): value is MongoColumnDetail {
  return typeof value === 'object' && value !== null && 'types' in value && typeof value.types === 'object'
}

/** The BSON types of each kind. A column of kind `other` may have every scalar type. */
const TYPES: Readonly<Record<ValueKind, readonly number[]>> = {
  number: [0x01, 0x10, 0x12, 0x13],
  time: [0x09],
  boolean: [0x08],
  text: [0x02, 0x07, 0x0e],
  label: [],
  other: [0x01, 0x02, 0x05, 0x07, 0x08, 0x09, 0x0e, 0x10, 0x12, 0x13],
}

const sheet = new JsonBytes(1024)

/**
 * Returns the value as an answer shows it. Returns undefined if it is no scalar, or of another kind than the column's.
 */
function scalarOf(type: number, from: Buffer, at: number, kind: ValueKind): Scalar | undefined {
  if (!TYPES[kind].includes(type)) return undefined
  const size = sizeOf(type, from, at)
  if (type === 0x02 || type === 0x0e) {
    return from.toString('utf8', at + 4, at + Math.min(size - 1, 4 + 4 * CHARS_MAX)).slice(0, CHARS_MAX)
  }
  // Binary data is a scalar only if it is a UUID.
  if (type === 0x05 && from[at + 4] !== 4) return undefined
  sheet.length = 0
  writeValue(type, from, at, size, sheet)
  const value: unknown = JSON.parse(sheet.bytes.toString('utf8', 0, sheet.length))
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}
