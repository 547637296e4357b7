// Counts the values of exposed paths in the BSON bytes of documents. Arrays are transparent: their elements belong to
// the path. Other fields are skipped, although the projection should have removed them.
import { ColumnSample } from '../../profile-from-sample.ts'
import type { CatalogColumn, ColumnProfile, Scalar, ValueKind } from '../../driver.ts'
import { AT_ONCE, JsonBytes } from '../../json-bytes.ts'
import type { MongoColumnDetail } from '../captured-facts.ts'
import { endOfName, lengthAt, sizeOf, writeValue } from '../session/write-value.ts'

/** The number of characters that are read of a string. Longer strings are identified by their beginning. */
const CHARS_MAX = 257
const DEPTH_MAX = 100
/** The maximum number of array elements that are read in one document, because a document is read without a pause. */
const ELEMENTS_MAX = 20_000

interface Node {
  readonly kids: Map<string, Node>
  /** The index of the column that ends at this node. Null if only longer paths continue here. */
  column: number | null
}

/** The values of one document at one column. */
interface Found {
  /** True if the value is present and not null. */
  isThere: boolean
  /** True if the value is a document, bytes other than a UUID, or a value of another kind than the column's. */
  isOpaque: boolean
  isList: boolean
  readonly scalars: Scalar[]
}

export class Documents {
  readonly #root: Node = { kids: new Map(), column: null }
  readonly #names: readonly string[]
  readonly #kinds: readonly ValueKind[]
  readonly #samples: readonly ColumnSample[]
  readonly #found: readonly Found[]
  count = 0
  /** The number of array elements read in the current document. */
  #elements = 0

  constructor(columns: readonly CatalogColumn[]) {
    this.#names = columns.map((column) => column.name)
    this.#kinds = columns.map(kindOf)
    this.#samples = this.#kinds.map((kind) => new ColumnSample(kind))
    this.#found = columns.map(() => ({ isThere: false, isOpaque: false, isList: false, scalars: [] }))
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
   * Adds the documents of a BSON array, and yields after about each AT_ONCE bytes. Throws RangeError for invalid BSON.
   */
  *addAll(batch: Uint8Array): Generator<undefined, void> {
    const from = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength)
    const end = lengthAt(from, 0) - 1
    let pause = AT_ONCE
    for (let at = 4; at < end;) {
      if (at >= pause) {
        yield
        pause = at + AT_ONCE
      }
      const start = endOfName(from, at + 1) + 1
      this.#document(from, start, this.#root, 0)
      this.#next()
      at = start + lengthAt(from, start)
    }
  }

  profiles(whole: { readonly rows: number | null; readonly complete: boolean }): readonly ColumnProfile[] {
    return this.#names.flatMap((name, n) => this.#samples[n]?.profile(name, whole) ?? [])
  }

  /** Ends the current document. */
  #next(): void {
    this.count++
    this.#elements = 0
    for (const [n, found] of this.#found.entries()) {
      const sample = this.#samples[n]
      if (!found.isThere) sample?.add(null)
      else if (found.isOpaque) sample?.add(undefined)
      else if (found.isList) sample?.addAll(new Set(found.scalars))
      else sample?.add(found.scalars[0])
      found.isThere = found.isOpaque = found.isList = false
      found.scalars.length = 0
    }
  }

  #document(from: Buffer, start: number, node: Node, depth: number, isListed = false): void {
    const end = start + lengthAt(from, start) - 1
    for (let at = start + 4; at < end;) {
      const type = from[at] ?? 0
      const nameEnd = endOfName(from, at + 1)
      const kid = node.kids.get(from.toString('utf8', at + 1, nameEnd))
      if (kid !== undefined) this.#value(type, from, nameEnd + 1, kid, depth + 1, isListed)
      at = nameEnd + 1 + sizeOf(type, from, nameEnd + 1)
    }
  }

  #value(type: number, from: Buffer, at: number, node: Node, depth: number, isListed: boolean): void {
    const found = node.column === null ? undefined : this.#found[node.column]
    if (found !== undefined && isListed) found.isList = true
    if (depth > DEPTH_MAX) return
    if (type === 0x04) {
      if (found !== undefined) found.isThere = found.isList = true
      const end = at + lengthAt(from, at) - 1
      for (let each = at + 4; each < end;) {
        if (++this.#elements > ELEMENTS_MAX) return
        const start = endOfName(from, each + 1) + 1
        const element = from[each] ?? 0
        this.#value(element, from, start, node, depth + 1, true)
        each = start + sizeOf(element, from, start)
      }
      return
    }
    if (type === 0x03) this.#document(from, at, node, depth, isListed)
    if (found === undefined || type === 0x0a || type === 0x06) return
    found.isThere = true
    const scalar = scalarOf(type, from, at, this.#kinds[node.column ?? 0] ?? 'other')
    if (scalar === undefined) found.isOpaque = true
    else found.scalars.push(scalar)
  }
}

const NUMBERS = ['int', 'long', 'double', 'decimal']
const KINDS: readonly (readonly [ValueKind, readonly string[]])[] = [
  ['number', NUMBERS],
  ['time', ['date']],
  ['boolean', ['bool']],
  ['text', ['string', 'objectId', 'symbol']],
]

/** Returns the kind of a column's values, by the types that introspection found. */
function kindOf({ detail }: CatalogColumn): ValueKind {
  const types = isDetail(detail) ? Object.keys(detail.types).filter((type) => type !== 'null') : []
  if (types.length === 0) return 'other'
  return KINDS.find(([, all]) => types.every((type) => all.includes(type)))?.[0] ?? 'other'
}

function isDetail(value: unknown): value is MongoColumnDetail {
  return typeof value === 'object' && value !== null && 'types' in value && typeof value.types === 'object'
}

/** The BSON types of each kind. The kind `other` takes every scalar. */
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
 * Returns the value as an answer shows it, or undefined if it is not a scalar or is of another kind than the column.
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
