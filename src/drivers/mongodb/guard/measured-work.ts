// Expressions by which the database measures, right before a stage, how much work the stage is for one document. Only stored
// values tell the lengths of the loops over them, and where such a value was stored does not matter here: the expressions
// read what the stage will read.
import type { Bson, BsonDocument } from '../query.ts'
import { ELEMENT_BYTES, type Loop, type Read, type Term, type Turned } from './step-meter.ts'
import { DOCUMENT, isStored } from './value-size.ts'

/** The most bytes that a stage may read of one document: a document of the largest size 25 times. */
export const READ_MAX = 400 * 1024 * 1024
export const DOCUMENT_MAX = 16 * 1024 * 1024
/** The most steps of a stage in loops over stored values. */
export const TURNS_MAX = 48_000_000
/** One of the largest documents has this many elements. */
export const LONGEST_STORED = DOCUMENT_MAX / ELEMENT_BYTES
/** With more parts, the whole document is measured instead. */
const PARTS_MEASURED = 4

/** Numbers that the database computes for each document; null: no document can be too large. */
export interface Measured {
  readonly steps: Bson | null
  readonly bytes: Bson | null
}

export function measured(turned: readonly Turned[], reads: readonly Read[]): Measured {
  return { steps: added(turned.length === 0 ? [] : stepsOf(turned)), bytes: added(bytesOf(reads)) }
}

function added(numbers: readonly Bson[]): Bson | null {
  const [first, ...others] = numbers
  return first === undefined ? null : others.length === 0 ? first : { $add: numbers }
}

function stepsOf(turned: readonly Turned[]): readonly Bson[] {
  const nests = new Map<string, { readonly loops: readonly Loop[]; steps: number }>()
  for (const { loops, steps } of turned) {
    const key = JSON.stringify(loops)
    const nest = nests.get(key) ?? { loops, steps: 0 }
    nests.set(key, nest)
    nest.steps += steps
  }
  return [...nests.values()].flatMap(({ loops, steps }) => {
    const roots = treeOf(loops)
    const isLong = steps * LONGEST_STORED ** depthOf(roots) > TURNS_MAX
    return isLong ? [product([rounded(steps), ...roots.map(totalOf)])] : []
  })
}

function bytesOf(reads: readonly Read[]): readonly Bson[] {
  const all = new Map<string, { readonly loops: readonly Loop[]; readonly part: string; times: number }>()
  for (const { loops, part, times } of reads) {
    const key = JSON.stringify([part, loops])
    const read = all.get(key) ?? { loops, part, times: 0 }
    all.set(key, read)
    read.times += times
  }
  return [...merged([...all.values()])].flatMap(({ loops, part, times }) => {
    const roots = treeOf(loops, part)
    const often = isChain(roots) ? times * copiesIn(loops) : Infinity
    return often * DOCUMENT_MAX > READ_MAX ? [product([rounded(times), ...roots.map(totalOf)])] : []
  })
}

/** Many parts of the document that are read alike count as the document. */
function merged(reads: readonly Read[]): readonly Read[] {
  const alike = Map.groupBy(reads, ({ loops, part, times }) =>
    part.startsWith(`${DOCUMENT}.`) ? JSON.stringify([times, loops]) : part,
  )
  return [...alike.values()].flatMap((some) => {
    const [first] = some
    if (first === undefined || some.length <= PARTS_MEASURED || !first.part.startsWith(`${DOCUMENT}.`)) return some
    return [{ ...first, part: DOCUMENT }]
  })
}

function copiesIn(loops: readonly Loop[]): number {
  return loops.reduce((all, { contents }) => Math.max(all, ...contents.map(({ times }) => times)), 1)
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
    return (of?.contents ?? []).flatMap((each) => inLine({ ...each, times: each.times * term.times, isBytes: true }))
  }
  const isPlace = loop.place !== null && isBound({ part: loop.place, times: 1, isBytes: false })
  const [terms, contents] = [loop.terms.flatMap(inLine), loop.contents.flatMap(inLine)]
  return { ...loop, terms, contents, place: isPlace ? loop.place : null }
}

function headOf(part: string): string {
  return part.split('.', 1)[0] ?? ''
}

/** How many lengths multiply. */
function depthOf(nodes: readonly Node[]): number {
  return nodes.reduce((all, { loop, inner }) => all + Math.max(loop?.degree ?? 0, depthOf(inner)), 0)
}

/** Whether each loop is over a part of the element of the loop around it: all together go through one part once. */
function isChain(nodes: readonly Node[]): boolean {
  const [only, ...others] = nodes
  return only === undefined || (others.length === 0 && (only.loop?.degree ?? 1) === 1 && isChain(only.inner))
}

/** The iterations of a loop and of the loops in it, or the bytes that are read in all of them. */
function totalOf({ loop, part, inner }: Node): Bson {
  if (loop === null) return bytesAt(part)
  const count = countOf(loop)
  if (inner.length === 0) return count
  if (loop.place === null || loop.variable === null) {
    const whole = added(loop.contents.map(({ part: of, times }) => product([rounded(times), bytesAt(of)]))) ?? 0
    return product(inner.map((node) => sharedOf(node, whole, count, new Set([loop.variable ?? '']))))
  }
  const place = valueAt(loop.place)
  const body = product(inner.map(totalOf))
  const list: Bson = { $cond: [{ $isArray: [place] }, place, []] }
  return { $sum: { $map: { input: list, as: nameOf(loop.variable), in: body } } }
}

/**
 * The same for what depends on the elements of an array that is computed: all of them together are at most `whole` bytes, and
 * the sum of products is at most the product of the sums. `often` is the number of elements.
 */
function sharedOf({ loop, inner }: Node, whole: Bson, often: Bson, unbound: ReadonlySet<string>): Bson {
  if (loop === null) return whole
  const [own, others] = [true, false].map((isOwn) =>
    loop.terms.filter(({ part }) => unbound.has(headOf(part)) === isOwn),
  )
  const parts = (own ?? []).map(({ times }): Bson => product([rounded(times), { $divide: [whole, ELEMENT_BYTES] }]))
  const isMore = loop.constant > 0 || others?.length !== 0
  const rest = isMore ? [product([countOf({ ...loop, terms: others ?? [], degree: 1 }), often])] : []
  const count = power(added([...parts, ...rest]) ?? 0, loop.degree)
  if (inner.length === 0) return count
  const below = new Set([...unbound, loop.variable ?? ''])
  return product(inner.map((node) => sharedOf(node, whole, count, below)))
}

function countOf({ terms, constant, degree }: Loop): Bson {
  const lengths = terms.map(({ part, times, isBytes }) =>
    product([rounded(times), isBytes ? { $divide: [bytesAt(part), ELEMENT_BYTES] } : lengthOf(valueAt(part))]),
  )
  const all = constant === 0 && lengths.length > 0 ? lengths : [...lengths, rounded(constant)]
  return power(added(all) ?? 0, degree)
}

function power(number: Bson, degree: number): Bson {
  return degree === 1 ? number : { $pow: [number, degree] }
}

/**
 * Elements of an array, fields of an object, a number itself, or pieces that a string may be split into. mongod computes
 * what it knows of a variable beforehand, in all branches, so no branch may fail for another type.
 */
function lengthOf(value: string): Bson {
  const isObject: Bson = { $eq: [{ $type: value }, 'object'] }
  const isArray: Bson = { $isArray: [value] }
  const elements: Bson = { $size: { $cond: [isArray, value, []] } }
  const fields: Bson = { $size: { $objectToArray: { $cond: [isObject, value, {}] } } }
  const number: Bson = { $abs: { $cond: [{ $isNumber: value }, value, 0] } }
  const bytes: Bson = { $cond: [{ $or: [isArray, isObject] }, 0, { $bsonSize: { v: value } }] }
  return { $add: [elements, fields, number, bytes] }
}

function bytesAt(part: string): BsonDocument {
  return { $bsonSize: { v: valueAt(part) } }
}

/** The expression that reads a part. Names that no path can contain are left out, and what is above them is read. */
function valueAt(part: string): string {
  const [head = '', ...names] = part.split('.')
  const end = names.findIndex((name) => name === '' || name.startsWith('$'))
  const path = end === -1 ? names : names.slice(0, end)
  if (head !== DOCUMENT) return [isStored(head) ? `$${head.slice(1)}` : `$$${nameOf(head)}`, ...path].join('.')
  return path.length === 0 ? '$$ROOT' : `$${path.join('.')}`
}

function nameOf(variable: string): string {
  return `vt_each${variable}`
}
