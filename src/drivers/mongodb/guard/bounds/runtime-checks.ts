// The guard assumes that gathered arrays are not too long, that documents are not too large for a stage, and that
// mongod checks for a cancel during slow stages. The stages that this file prints make the database enforce these
// assumptions.
import { MADE_MAX, TURNS_MAX, type Measured } from './measured-work.ts'
import { STEPS_MAX, UNSEEN } from './step-meter.ts'
import type { Bson, BsonDocument } from '../../confined-query.ts'

/** A field in which a stage gathers values of many documents. */
export interface Gathered {
  readonly path: string
  readonly as: 'array' | 'object'
}

/** If a gathered field has more than `length` elements or fields, the printed stage fails with its own error code. */
export function lengthCheck(gathered: readonly Gathered[], length: number): BsonDocument {
  const sizes = gathered.map(({ path, as }): Bson => {
    const value = `$${path}`
    const list = as === 'object' ? { $objectToArray: { $ifNull: [value, {}] } } : value
    return { $size: { $cond: [{ $isArray: [list] }, list, []] } }
  })
  return { $match: { $expr: isWithin([{ $max: sizes }, length]) } }
}

/** If a date in the field is further from 1970 than `most` milliseconds, the printed stage fails with its own error code. */
export function dateCheck(path: string, most: number): BsonDocument {
  const value = `$${path}`
  const date: Bson = { $cond: [{ $eq: [{ $type: value }, 'date'] }, value, 0] }
  return { $match: { $expr: isWithin([{ $abs: { $toLong: date } }, most]) } }
}

/** Prints an array that fails if the number is larger than `most`. */
export function atMost(number: Bson, most: number, array: Bson): Bson {
  return { $slice: [array, 0, { $cond: [{ $lte: [number, most] }, 2_147_483_647, 0] }] }
}

/** An amount and its maximum, which shareLimits() may change when the whole query is printed. */
export type Limit = [of: Bson, most: number]

/** Prints an expression that is true within the limit, and fails above it. */
function isWithin(limit: Limit): Bson {
  // A third argument of 0 fails in the database with its own error code.
  const one: Bson = { $slice: [[1], 0, { $cond: [{ $lte: limit }, 1, 0] }] }
  return { $eq: [{ $size: one }, 1] }
}

/**
 * If a stage takes at most this many steps for a document, it needs no cancel points: 128 documents then take at most
 * STEPS_MAX.
 */
export const QUICK_STEPS = Math.floor(STEPS_MAX / UNSEEN)

/**
 * Prints cancel points: stages that multiply each document and drop the copies, so that mongod checks for a cancel
 * every STEPS_MAX steps. They fail if the measured work for a document is too much. `name` is a field that no document
 * has. If `name` is null, the fields are unknown, and each document is wrapped in a new document.
 */
export function cancelPoints(
  steps: number,
  name: string | null,
  work: Measured,
  limits: Limit[],
): readonly BsonDocument[] {
  const times = Math.max(1, Math.min(UNSEEN, Math.ceil(steps / QUICK_STEPS)))
  const isMeasured = work.steps !== null || work.bytes !== null
  if (times === 1 && !isMeasured) return []
  const copies: Bson = { $range: [0, isMeasured ? measuredTimes(times, work, limits) : times] }
  const look = name ?? 'vt_look'
  const added: BsonDocument =
    name === null ? { $replaceWith: { vt_document: '$$ROOT', [look]: copies } } : { $set: { [look]: copies } }
  const removed: BsonDocument = name === null ? { $replaceWith: '$vt_document' } : { $unset: [look] }
  return [added, { $unwind: `$${look}` }, { $match: { [look]: 0 } }, removed]
}

function measuredTimes(least: number, { steps, bytes, vars, most }: Measured, limits: Limit[]): Bson {
  const needed: Bson = { $toInt: { $min: [UNSEEN, { $add: [1, { $divide: ['$$vt_steps', QUICK_STEPS] }] }] } }
  const turns: Limit = ['$$vt_steps', most ?? TURNS_MAX]
  const made: Limit = ['$$vt_bytes', MADE_MAX]
  if (steps !== null && most === undefined) limits.push(turns)
  if (bytes !== null) limits.push(made)
  const times: Bson = { $cond: [{ $and: [isWithin(turns), isWithin(made)] }, { $max: [least, needed] }, 0] }
  const work: Bson = { $let: { vars: { vt_steps: steps ?? 0, vt_bytes: bytes ?? 0 }, in: times } }
  return Object.keys(vars).length === 0 ? work : { $let: { vars, in: work } }
}

/**
 * Divides each limit among the stages that share it, so that all of them together may do only as much work as one
 * stage.
 */
export function shareLimits(limits: readonly Limit[]): void {
  for (const limit of limits) {
    const alike = limits.filter(([of]) => of === limit[0]).length
    limit[1] = Math.floor((limit[0] === '$$vt_steps' ? TURNS_MAX : MADE_MAX) / alike)
  }
}
