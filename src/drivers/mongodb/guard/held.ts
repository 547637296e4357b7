// Stages of ours that hold the database to what the guard reckoned with: no longer arrays than that are gathered, and a look
// for a cancel often enough where a stage takes long for one document.
import { STEPS_MAX } from './meter.ts'
import type { Bson, BsonDocument } from '../query.ts'

/** A field that a stage gathers from many documents. */
export interface Gathered {
  readonly path: string
  readonly as: 'array' | 'object'
}

/** Fails, by an error of its own, where one of them holds more than so many elements or fields. */
export function notLonger(gathered: readonly Gathered[], length: number): BsonDocument {
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

/** A path of a stored document, and how often a query goes through what it leads to. */
export interface Reads {
  readonly path: string
  readonly times: number
}

/** True for a document, or an error: asked when the field is read. */
export interface Check {
  readonly name: string
  readonly holds: Bson
}

/** Null where no document can be too large. */
export function notLarger(reads: readonly Reads[]): Check | null {
  const often = reads.filter(({ times }) => times * DOCUMENT_MAX > READ_MAX)
  const [first] = often
  if (first === undefined) return null
  const most = Math.max(...often.map(({ times }) => times))
  const bytes: Bson =
    often.length > PATHS_MEASURED
      ? { $multiply: [most, { $bsonSize: '$$ROOT' }] }
      : { $add: often.map(({ path, times }) => ({ $multiply: [times, { $bsonSize: { v: `$${path}` } }] })) }
  return { name: first.path.split('.', 1)[0] ?? '', holds: isWithin(bytes, READ_MAX) }
}

/** Documents of a pipeline that old versions of mongod pass on between two looks for a cancel. */
const UNSEEN = 128

/** Steps that a stage may take for one document without being looked at: 128 documents take what one may. */
export const QUICK = Math.floor(STEPS_MAX / UNSEEN)

/**
 * Makes more documents of each and drops them again, so that mongod looks for a cancel after as many steps as one document
 * may take at most. `name` is a field that no document has; null where nobody knows, so that each is put into one of ours.
 */
export function lookedAt(steps: number, name: string | null): readonly BsonDocument[] {
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
