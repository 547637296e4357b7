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
  const longest: Bson = { $max: sizes }
  // A third argument of 0 is an error of the database, with a number of its own.
  const one: Bson = { $slice: [[1], 0, { $cond: [{ $lte: [longest, length] }, 1, 0] }] }
  return { $match: { $expr: { $eq: [{ $size: one }, 1] } } }
}

/** Documents of a pipeline that old versions of mongod pass on between two looks for a cancel. */
const UNSEEN = 128

/** Steps that a stage may take for one document without being looked at: 128 documents take what one may. */
export const QUICK = Math.floor(STEPS_MAX / UNSEEN)

/**
 * Makes more documents of each and drops them again, so that mongod looks for a cancel after as many steps as one document
 * may take at most. `name` is a field that there is not.
 */
export function lookedAt(steps: number, name: string): readonly BsonDocument[] {
  const times = Math.min(UNSEEN, Math.ceil((steps * UNSEEN) / STEPS_MAX))
  if (times <= 1) return []
  return [
    { $set: { [name]: { $range: [0, times] } } },
    { $unwind: `$${name}` },
    { $match: { [name]: 0 } },
    { $unset: [name] },
  ]
}
