// Stages that the guard adds so that the database enforces the guard's assumptions: gathered arrays are no longer than
// assumed, and mongod checks for a cancel often enough if a stage takes long for one document.
import { STEPS_MAX, type Over, type Read, type Turn, type Turned } from './step-meter.ts'
import type { Bson, BsonDocument } from '../query.ts'

/** A field that a stage gathers from many documents. */
export interface Gathered {
  readonly path: string
  readonly as: 'array' | 'object'
}

/** A stage that fails, with a distinct error, if a gathered field has more than `length` elements or fields. */
export function lengthCheck(gathered: readonly Gathered[], length: number): BsonDocument {
  const sizes = gathered.map(({ path, as }): Bson => {
    const value = `$${path}`
    const list = as === 'object' ? { $objectToArray: { $ifNull: [value, {}] } } : value
    return { $size: { $cond: [{ $isArray: [list] }, list, []] } }
  })
  return { $match: { $expr: isWithin({ $max: sizes }, length) } }
}

/** An expression that is true or fails. */
function isWithin(size: Bson, most: number): Bson {
  // The database fails a third argument of 0 with a distinct error code.
  const one: Bson = { $slice: [[1], 0, { $cond: [{ $lte: [size, most] }, 1, 0] }] }
  return { $eq: [{ $size: one }, 1] }
}

/** The most bytes that a query may read of one stored document: a document of the largest size 25 times. */
export const READ_MAX = 400 * 1024 * 1024
export const DOCUMENT_MAX = 16 * 1024 * 1024
/** The most steps in loops over stored values, where a document is larger than the estimates. */
export const TURNS_MAX = 12 * STEPS_MAX
/** The least bytes of an element of an array: one of the largest documents has this many of them. */
const ELEMENT_BYTES = 12
export const LONGEST_STORED = DOCUMENT_MAX / ELEMENT_BYTES
/** With more paths, the whole document is measured instead. */
const PATHS_MEASURED = 4

/** An expression that is true for a document or fails. It runs when the field is read. */
export interface Check {
  readonly name: string
  readonly holds: Bson
}

/** Paths whose bytes are measured: each iteration of the loops over arrays reads them `times` times. */
interface Measured {
  readonly paths: Set<string>
  readonly loops: readonly (readonly string[])[]
  times: number
}

/**
 * The check for documents of the collection with this label; null if no document can be too large. `isJoined`: the query reads the
 * collection in several places, so that loops in each other may be over arrays of different documents.
 */
export function sizeCheck(
  reads: readonly Read[],
  turned: readonly Turned[],
  label: string,
  isJoined: boolean,
): Check | null {
  const [read, looped] = [readCheck(reads, label), turnCheck(turned, label, isJoined)]
  if (read === null || looped === null) return read ?? looped
  return { name: read.name, holds: { $and: [read.holds, looped.holds] } }
}

/** The check that loops over stored arrays do not take too many steps. */
function turnCheck(turned: readonly Turned[], label: string, isJoined: boolean): Check | null {
  const groups = new Map<string, { readonly over: readonly Turn[]; readonly depth: number; steps: number }>()
  for (const { over, steps } of turned) {
    const here = over.filter(({ parts }) => parts.some((part) => part.startsWith(label)))
    if (here.length === 0) continue
    const key = JSON.stringify([over.length, ...here.map(({ parts, isBelow }) => [parts, isBelow])])
    const group = groups.get(key) ?? { over: here, depth: over.length, steps: 0 }
    groups.set(key, group)
    group.steps += steps
  }
  const long = [...groups.values()].filter(({ depth, steps }) => steps * LONGEST_STORED ** depth > TURNS_MAX)
  const name = long[0]?.over[0]?.parts.find((part) => part.startsWith(label))?.slice(label.length)
  if (name === undefined) return null
  const sizes = long.map(({ over, depth, steps }) => {
    const lengths = over.map((turn) => turnsOf(turn, label))
    return productOf(Number(steps.toPrecision(4)), lengths, depth, isJoined)
  })
  return { name: name.split('.', 1)[0] ?? '', holds: isWithin({ $add: sizes }, TURNS_MAX) }
}

/**
 * At least `times` the product of `depth` factors, of which these are the ones that this document tells. No document tells the
 * factors of another document: if there are any, the power of each factor counts, which the product cannot exceed.
 */
function productOf(times: number, factors: readonly Bson[], depth: number, isJoined: boolean): Bson {
  if (depth === 1 || (factors.length === depth && !isJoined)) return { $multiply: [times, ...factors] }
  return { $multiply: [times, { $add: factors.map((factor): Bson => ({ $pow: [factor, depth] })) }] }
}

/** How often a loop turns for one document. */
function turnsOf({ parts, isBelow }: Turn, label: string): Bson {
  const own = ownOf(parts, label)
  if (!isBelow) return { $add: own.map(lengthOf) }
  const tops = new Set(own.map((path) => path.split('.', 1)[0] ?? ''))
  return { $divide: [{ $bsonSize: measuredOf(tops) }, ELEMENT_BYTES] }
}

function measuredOf(paths: ReadonlySet<string>): Bson {
  return paths.size > PATHS_MEASURED ? '$$ROOT' : Object.fromEntries([...paths].map((path, n) => [`v${n}`, `$${path}`]))
}

function readCheck(reads: readonly Read[], label: string): Check | null {
  const own = reads.filter(({ part }) => part.startsWith(label))
  const measured = new Map<string, Measured>()
  for (const { part, over, times } of own) {
    const [here, elsewhere] = [over.filter((each) => isOf(each, label)), over.filter((each) => !isOf(each, label))]
    const all = elsewhere.reduce((product, { items }) => product * items, times)
    if (here.length === 0 && all * DOCUMENT_MAX <= READ_MAX) continue
    const loops = here.map(({ parts }) => parts.map((each) => each.slice(label.length)))
    const often = Number(all.toPrecision(4))
    const key = JSON.stringify([loops, often])
    const group = measured.get(key) ?? { paths: new Set(), loops, times: often }
    measured.set(key, group)
    group.paths.add(part.slice(label.length))
  }
  const groups = [...measured.values()]
  const [first = ''] = groups[0]?.paths ?? []
  if (groups.length === 0) return null
  return { name: first.split('.', 1)[0] ?? '', holds: isWithin({ $add: groups.map(bytesOf) }, READ_MAX) }
}

function isOf({ parts }: Over, label: string): boolean {
  return parts.every((part) => part.startsWith(label))
}

function bytesOf({ paths, loops, times }: Measured): Bson {
  const size: Bson = { $bsonSize: measuredOf(paths) }
  return { $multiply: [times, ...loops.map((paths): Bson => ({ $add: paths.map(lengthOf) })), size] }
}

/** The paths of the parts that are of this collection. */
function ownOf(parts: readonly string[], label: string): readonly string[] {
  return parts.filter((part) => part.startsWith(label)).map((part) => part.slice(label.length))
}

/** Elements of an array, fields of an object, or pieces that a string may be split into. */
function lengthOf(path: string): Bson {
  const value = `$${path}`
  const fields: Bson = { $size: { $objectToArray: value } }
  const pieces: Bson = { $cond: [{ $eq: [{ $type: value }, 'object'] }, fields, { $bsonSize: { v: value } }] }
  return { $cond: [{ $isArray: [value] }, { $size: value }, pieces] }
}

/** Documents that old versions of mongod process between two checks for a cancel. */
const UNSEEN = 128

/** Steps that a stage may take for one document without cancel points: 128 documents then take at most STEPS_MAX. */
export const QUICK_STEPS = Math.floor(STEPS_MAX / UNSEEN)

/**
 * Stages that multiply each document and drop the copies, so that mongod checks for a cancel every STEPS_MAX steps. `name`
 * is a field that no document has. If it is null, the fields are unknown and each document is wrapped in a new one.
 */
export function cancelPoints(steps: number, name: string | null): readonly BsonDocument[] {
  const times = Math.min(UNSEEN, Math.ceil((steps * UNSEEN) / STEPS_MAX))
  if (times <= 1) return []
  const look = name ?? 'vt_look'
  const added: BsonDocument =
    name === null
      ? { $replaceWith: { vt_document: '$$ROOT', [look]: { $range: [0, times] } } }
      : { $set: { [look]: { $range: [0, times] } } }
  const removed: BsonDocument = name === null ? { $replaceWith: '$vt_document' } : { $unset: [look] }
  return [added, { $unwind: `$${look}` }, { $match: { [look]: 0 } }, removed]
}
