// Stages of ours that hold the database to what the guard reckoned with: no longer arrays than that are gathered, and a look
// for a cancel often enough where a stage takes long for one document.
import { STEPS_MAX, type Over, type Read } from './step-meter.ts'
import type { Bson, BsonDocument } from '../query.ts'

/** A field that a stage gathers from many documents. */
export interface Gathered {
  readonly path: string
  readonly as: 'array' | 'object'
}

/** Fails, by an error of its own, where one of them holds more than so many elements or fields. */
export function lengthCheck(gathered: readonly Gathered[], length: number): BsonDocument {
  const sizes = gathered.map(({ path, as }): Bson => {
    const value = `$${path}`
    const list = as === 'object' ? { $objectToArray: { $ifNull: [value, {}] } } : value
    return { $size: { $cond: [{ $isArray: [list] }, list, []] } }
  })
  return { $match: { $expr: isWithin({ $max: sizes }, length) } }
}

/** True, or an error. */
function isWithin(size: Bson, most: number): Bson {
  // A third argument of 0 is an error of the database, with a number of its own.
  const one: Bson = { $slice: [[1], 0, { $cond: [{ $lte: [size, most] }, 1, 0] }] }
  return { $eq: [{ $size: one }, 1] }
}

/** Bytes of one stored document that a query may go through in all: a document of the largest size 25 times. */
const READ_MAX = 400 * 1024 * 1024
const DOCUMENT_MAX = 16 * 1024 * 1024
/** Of more paths the whole document is measured instead. */
const PATHS_MEASURED = 4

/** True for a document, or an error: asked when the field is read. */
export interface Check {
  readonly name: string
  readonly holds: Bson
}

/** What is measured of one document: bytes of paths, so many times for each turn of the loops over arrays. */
interface Measured {
  readonly paths: Set<string>
  readonly loops: readonly (readonly string[])[]
  times: number
}

/** Null where no document can be too large. `label`: of the documents' own parts. */
export function readCheck(reads: readonly Read[], label: string): Check | null {
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
  const values = Object.fromEntries([...paths].map((path, n) => [`v${n}`, `$${path}`]))
  const size: Bson = { $bsonSize: paths.size > PATHS_MEASURED ? '$$ROOT' : values }
  return { $multiply: [times, ...loops.map((paths): Bson => ({ $add: paths.map(lengthOf) })), size] }
}

/** Elements of an array, fields of an object; of a text as many as it may be split into. */
function lengthOf(path: string): Bson {
  const value = `$${path}`
  const fields: Bson = { $size: { $objectToArray: value } }
  const pieces: Bson = { $cond: [{ $eq: [{ $type: value }, 'object'] }, fields, { $bsonSize: { v: value } }] }
  return { $cond: [{ $isArray: [value] }, { $size: value }, pieces] }
}

/** Documents of a pipeline that old versions of mongod pass on between two looks for a cancel. */
const UNSEEN = 128

/** Steps that a stage may take for one document without being looked at: 128 documents take what one may. */
export const QUICK_STEPS = Math.floor(STEPS_MAX / UNSEEN)

/**
 * Makes more documents of each and drops them again, so that mongod looks for a cancel after as many steps as one document
 * may take at most. `name` is a field that no document has; null where nobody knows, so that each is put into one of ours.
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
