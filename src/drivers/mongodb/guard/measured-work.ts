// Expressions by which the database measures, right before a stage, how much work the stage is for one document. Only stored
// values tell the lengths of the loops over them, and where such a value was stored does not matter here: the expressions
// read what the stage will read.
import type { Bson, BsonDocument } from '../query.ts'
import type { Loop, Read, Term, Turned } from './step-meter.ts'
import { DOCUMENT, isStored, LEAST_BYTES } from './value-size.ts'

/** The most bytes that a stage may read of one document: a document of the largest size 25 times. */
export const READ_MAX = 400 * 1024 * 1024
export const DOCUMENT_MAX = 16 * 1024 * 1024
/** The most steps of a stage in loops over stored values. */
export const TURNS_MAX = 48_000_000
/** One of the largest documents has about this many elements. */
export const LONGEST_STORED = DOCUMENT_MAX / 12
/** mongod reads so many bytes in a step. */
export const STEP_READS = 100
/** With more parts, the whole document is measured instead. */
const PARTS_MEASURED = 4

/** Numbers that the database computes for each document; null: no document can be too large. */
export interface Measured {
  readonly steps: Bson | null
  readonly bytes: Bson | null
  /** Variables in them: first those that the others read. */
  readonly vars: readonly BsonDocument[]
  /** The steps that the stage may take; absent, where the stages of the query share a limit. */
  readonly most?: number
}

/** What the stages of one query may take for one document without being measured, all together. */
export class Spare {
  #steps = TURNS_MAX
  #bytes = READ_MAX

  /**
   * `size`: how much larger than a stored document earlier stages may have made this one. `most`: the steps that the stage may take in any case; absent, where the stages of the query share a limit.
   */
  measured(turned: readonly Turned[], reads: readonly Read[], size: number, most?: number): Measured {
    const print = new Printer()
    const nests = summed(turned.map(({ loops, steps }) => ({ loops, part: null, times: steps })))
    const all = summed(reads)
    const [steps, bytes] = [worstOf(nests) * size, worstOf(all) * size]
    const isLong = steps > Math.min(this.#steps, most ?? Infinity)
    const isLarge = bytes > Math.min(this.#bytes, (most ?? Infinity) * STEP_READS)
    if (!isLong) this.#steps -= steps
    if (!isLarge) this.#bytes -= bytes
    return {
      ...(most !== undefined && { most }),
      steps: isLong ? added(nests.map((nest) => print.whole(nest))) : null,
      bytes: isLarge ? added(merged(all).map((read) => print.whole(read))) : null,
      vars: print.vars,
    }
  }
}

function added(numbers: readonly Bson[]): Bson | null {
  const [first, ...others] = numbers
  return first === undefined ? null : others.length === 0 ? first : { $add: numbers }
}

/** Work of a stage in loops: steps, or reads of a part. */
interface Work {
  readonly loops: readonly Loop[]
  readonly part: string | null
  readonly times: number
}

/** One entry for the same loops and the same part. */
function summed(all: readonly Work[]): readonly Work[] {
  const groups = Map.groupBy(all, ({ loops, part }) => JSON.stringify([part, loops]))
  return [...groups.values()].flatMap((some) => {
    const [first] = some
    return first === undefined ? [] : [{ ...first, times: some.reduce((total, { times }) => total + times, 0) }]
  })
}

/** The most that all of it can take for one document, of which different fields share the size. */
function worstOf(all: readonly Work[]): number {
  const fields = new Map<string, number>()
  let rest = 0
  for (const { loops, part, times } of all) {
    const roots = treeOf(loops, part ?? undefined)
    const worst = times * worstIn(roots)
    const field = isChain(roots) ? fieldOf(loops, part) : null
    if (field === null) rest += worst
    else fields.set(field, (fields.get(field) ?? 0) + worst)
  }
  return rest + Math.max(0, ...fields.values())
}

/** The top-level field of the document that a chain of loops goes through; null if there are several. */
function fieldOf(loops: readonly Loop[], part: string | null): string | null {
  const [terms] = loops.map((loop) => loop.terms)
  const [only, ...others] = terms?.map((term) => term.part) ?? (part === null ? [] : [part])
  if (only === undefined || others.length > 0 || !only.startsWith(`${DOCUMENT}.`)) return null
  return only.split('.', 2)[1] ?? null
}

function worstIn(nodes: readonly Node[]): number {
  return nodes.reduce((all, { loop, inner }) => {
    if (loop === null) return all * DOCUMENT_MAX
    const times = loop.terms.reduce((sum, term) => sum + term.times, 0)
    const longest = loop.terms.some(({ separator }) => separator !== undefined) ? DOCUMENT_MAX : LONGEST_STORED
    if (inner.length === 0) return all * (times * longest + loop.constant) ** loop.degree
    const copies = loop.contents.reduce((sum, term) => sum + term.times, 0)
    return all * Math.max(1, times, copies) ** loop.degree * worstIn(inner)
  }, 1)
}

/** Many parts of the document that are read alike count as the document. */
function merged(reads: readonly Work[]): readonly Work[] {
  const alike = Map.groupBy(reads, ({ loops, part, times }) =>
    isField(part) ? JSON.stringify([times, loops]) : JSON.stringify([part, times, loops]),
  )
  return [...alike.values()].flatMap((some) => {
    const [first] = some
    if (first === undefined || some.length <= PARTS_MEASURED || !isField(first.part)) return some
    return [{ ...first, part: DOCUMENT }]
  })
}

function isField(part: string | null): boolean {
  return part?.startsWith(`${DOCUMENT}.`) === true
}

const rounded = (n: number): number => Number(n.toPrecision(4))

function product(factors: readonly Bson[]): Bson {
  const [first = 1, ...others] = factors.filter((factor) => factor !== 1)
  return others.length === 0 ? first : { $multiply: [first, ...others] }
}

/**
 * A loop or, as a leaf, a part whose bytes are read. `inner` depend on the element of this loop: they are loops over parts of
 * it, or reads of it.
 */
interface Node {
  readonly loop: Loop | null
  readonly part: string
  readonly inner: Node[]
}

/** No part begins with it. */
const NONE = '.'

/** The loops and the read part as a tree: what depends on no element of another loop is a root. Roots multiply. */
function treeOf(loops: readonly Loop[], part?: string): readonly Node[] {
  const roots: Node[] = []
  const made: { readonly node: Node; readonly line: readonly Loop[] }[] = []
  const add = (loop: Loop | null, read: string, heads: readonly string[]): void => {
    const around = made.findLast(({ node }) => heads.includes(node.loop?.variable ?? NONE))
    const line = around?.line ?? []
    const own = loop === null ? null : resolved(loop, line, loops)
    const node: Node = { loop: own, part: read, inner: [] }
    made.push({ node, line: own === null ? line : [...line, own] })
    if (around === undefined) roots.push(node)
    else around.node.inner.push(node)
  }
  for (const loop of loops)
    add(
      loop,
      '',
      loop.terms.map(({ part: of }) => headOf(of)),
    )
  if (part !== undefined) add(null, part, [headOf(part)])
  return roots
}

/** The loop with terms that can be measured within the loops of `line`, which are around it. */
function resolved(loop: Loop, line: readonly Loop[], loops: readonly Loop[]): Loop {
  const isBound = ({ part }: Term): boolean =>
    isStored(part) || line.some(({ variable }) => variable !== null && variable === headOf(part))
  const inLine = (term: Term): readonly Term[] => {
    if (isBound(term)) return [term]
    const of = loops.find(({ variable }) => variable !== null && variable === headOf(term.part))
    return (of?.contents ?? []).flatMap((each) => inLine({ ...each, times: each.times * term.times, by: 'bytes' }))
  }
  const isPlace = loop.place !== null && isBound({ part: loop.place, times: 1, by: 'length' })
  const [terms, contents] = [loop.terms.flatMap(inLine), loop.contents.flatMap(inLine)]
  return { ...loop, terms, contents, place: isPlace ? loop.place : null }
}

function headOf(part: string): string {
  return part.split('.', 1)[0] ?? ''
}

/** Whether each loop is over a part of the element of the loop around it: all together go through one part once. */
function isChain(nodes: readonly Node[]): boolean {
  const [only, ...others] = nodes
  return only === undefined || (others.length === 0 && (only.loop?.degree ?? 1) === 1 && isChain(only.inner))
}

/** Prints what the trees of loops take. */
class Printer {
  /** What does not depend on an element of a loop is computed once. */
  readonly vars: readonly [parts: Record<string, Bson>, sums: Record<string, Bson>] = [{}, {}]
  readonly #names = new Map<string, string>()
  /** The loops around, whose elements can be named. */
  #depth = 0
  #sums = 0
  readonly #elements = new Map<string, string>()

  whole({ loops, part, times }: Work): Bson {
    return product([rounded(times), ...treeOf(loops, part ?? undefined).map((node) => this.#total(node))])
  }

  /** The iterations of a loop and of the loops in it, or the bytes that are read in all of them. */
  #total({ loop, part, inner }: Node): Bson {
    if (loop === null) return this.#bytesAt(part)
    if (inner.length === 0) return this.#count(loop)
    if (loop.place === null || loop.variable === null || this.#sums >= SUMS_MAX) {
      const count = this.#count(loop)
      const parts = loop.contents.map(({ part: of, times }) => product([rounded(times), this.#bytesAt(of)]))
      const whole = added(parts) ?? product([LEAST_BYTES, count])
      return product(inner.map((node) => this.#shared(node, whole, count, new Set([loop.variable ?? '']))))
    }
    const place = this.#valueAt(loop.place)
    const list: Bson = { $cond: [{ $isArray: [place] }, place, []] }
    const name = `vt_each${++this.#depth}`
    this.#elements.set(loop.variable, name)
    const body = product(inner.map((node) => this.#total(node)))
    this.#depth--
    const sum: Bson = { $sum: { $map: { input: list, as: name, in: body } } }
    if (this.#depth > 0) return sum
    const known = this.#names.size
    const once = this.#once(loop.place, sum)
    if (this.#names.size > known) this.#sums++
    return once
  }

  /**
   * The same for what depends on the elements of an array that is computed: all of them together are at most `whole` bytes, and
   * the sum of products is at most the product of the sums. `often` is the number of elements.
   */
  #shared({ loop, inner }: Node, whole: Bson, often: Bson, unbound: ReadonlySet<string>): Bson {
    if (loop === null) return whole
    const [own, others] = [true, false].map((isOwn) =>
      loop.terms.filter(({ part }) => unbound.has(headOf(part)) === isOwn),
    )
    const parts = (own ?? []).map(({ times }): Bson => product([rounded(times), { $divide: [whole, LEAST_BYTES] }]))
    const isMore = loop.constant > 0 || others?.length !== 0
    const rest = isMore ? [product([this.#count({ ...loop, terms: others ?? [], degree: 1 }), often])] : []
    const count = power(added([...parts, ...rest]) ?? 0, loop.degree)
    if (inner.length === 0) return count
    const below = new Set([...unbound, loop.variable ?? ''])
    return product(inner.map((node) => this.#shared(node, whole, count, below)))
  }

  #count({ terms, constant, degree }: Loop): Bson {
    const lengths = terms.map((term) => product([rounded(term.times), this.#lengthAt(term)]))
    const all = constant === 0 && lengths.length > 0 ? lengths : [...lengths, rounded(constant)]
    return power(added(all) ?? 0, degree)
  }

  #bytesAt(part: string): Bson {
    return this.#once(part, { $bsonSize: { v: this.#valueAt(part) } })
  }

  #lengthAt({ part, by, separator }: Term): Bson {
    if (by === 'bytes') return { $divide: [this.#bytesAt(part), LEAST_BYTES] }
    if (separator === '') return this.#bytesAt(part)
    const value = this.#valueAt(part)
    return this.#once(part, separator === undefined ? lengthOf(value) : piecesOf(value, separator))
  }

  #once(part: string, value: Bson): Bson {
    if (!isStored(part)) return value
    const key = JSON.stringify(value)
    const name = this.#names.get(key) ?? `vt_once${this.#names.size}`
    this.#names.set(key, name)
    const [parts, sums] = this.vars
    const isSum = typeof value === 'object' && value !== null && '$sum' in value
    ;(isSum ? sums : parts)[name] = value
    return `$$${name}`
  }

  /** The expression that reads a part. Names that no path can contain are left out, and what is above them is read. */
  #valueAt(part: string): string {
    const [head = '', ...names] = part.split('.')
    const end = names.findIndex((name) => name === '' || name.startsWith('$'))
    const path = end === -1 ? names : names.slice(0, end)
    if (head === DOCUMENT) return path.length === 0 ? '$$ROOT' : `$${path.join('.')}`
    return [isStored(head) ? `$${head.slice(1)}` : `$$${this.#elements.get(head) ?? ''}`, ...path].join('.')
  }
}

/** Sums over elements take mongod long themselves. Beyond so many, the bytes of the array count. */
const SUMS_MAX = 3

function power(number: Bson, degree: number): Bson {
  return degree === 1 ? number : { $pow: [number, degree] }
}

/**
 * Elements of an array, fields of an object, or pieces that a string may be split into. mongod computes
 * what it knows of a variable beforehand, in all branches, so no branch may fail for another type.
 */
function lengthOf(value: string): Bson {
  const isObject: Bson = { $eq: [{ $type: value }, 'object'] }
  const isArray: Bson = { $isArray: [value] }
  const elements: Bson = { $size: { $cond: [isArray, value, []] } }
  const fields: Bson = { $size: { $objectToArray: { $cond: [isObject, value, {}] } } }
  const bytes: Bson = { $cond: [{ $or: [isArray, isObject] }, 0, { $bsonSize: { v: value } }] }
  return { $add: [elements, fields, bytes] }
}

function piecesOf(value: string, separator: string): Bson {
  const text: Bson = { $cond: [{ $eq: [{ $type: value }, 'string'] }, value, ''] }
  return { $size: { $split: [text, { $literal: separator }] } }
}
