// Prints a sort with a limit before the projection, so that it can use an index even if its path goes through a partly
// exposed object. The order may differ, because a hidden scalar in an array sorts as null after the projection. So the
// printed form checks for each document that the order is the same, and fails if it is not. The service then sends the
// form with the projection first.
import { numberOf } from '../body/parse-ejson.ts'
import type { Bson, BsonDocument } from '../../confined-query.ts'

export interface EarlySort {
  /** The number of stages before the projection. */
  readonly at: number
  /** For each path of the sort: the names that lead through partly exposed objects. */
  readonly cut: readonly (readonly string[])[]
}

const ONE_TO_ONE = new Set(['$project', '$set', '$addFields', '$unset'])

/**
 * Moves the sort to the front, and limits the documents to those that the later stages can use. Returns null if the
 * later stages may use all documents. Proof: the projection only removes elements, which then sort as null. So no
 * document sorts later by its raw value than by its projected value. If none of the first n documents loses an element,
 * they are the first n in both orders.
 */
export function sortedEarly(pipeline: readonly BsonDocument[], { at, cut }: EarlySort): readonly BsonDocument[] | null {
  const place = pipeline.findIndex((stage, n) => n >= at && Object.hasOwn(stage, '$sort'))
  const sort = pipeline[place]
  const most = taken(pipeline.slice(place + 1))
  if (sort === undefined || !Number.isSafeInteger(most)) return null
  const front = [...pipeline.slice(0, at), sort, { $limit: most }, provenAlike(cut)]
  return [...front, ...pipeline.slice(at, place), ...pipeline.slice(place + 1)]
}

/** Returns how many documents of the sort the later stages can use. Infinity means all. */
function taken(stages: readonly BsonDocument[]): number {
  let skipped = 0
  let most = Infinity
  for (const stage of stages) {
    const [[name, value] = ['']] = Object.entries(stage)
    if (ONE_TO_ONE.has(name)) continue
    if (name === '$skip') skipped += numberOf(value) ?? Infinity
    else if (name === '$limit') most = Math.min(most, skipped + (numberOf(value) ?? Infinity))
    else break
  }
  return most
}

/**
 * Prints a stage that passes documents on, but fails with ConversionFailure if the projection removes an element of a
 * document.
 */
function provenAlike(cut: readonly (readonly string[])[]): BsonDocument {
  const losing = cut.map(([top = '', ...below]) => losesElement(`$${top}`, below))
  return { $match: { $expr: { $toInt: { $cond: [{ $or: losing }, 'the projection takes an element away', 1] } } } }
}

/** True if the value is or contains an array with an element that is neither an object nor an array. */
function losesElement(value: string, [next, ...below]: readonly string[]): Bson {
  const isPlain = { $not: [{ $in: [{ $type: '$$e' }, ['object', 'array']] }] }
  const here = anyOf({ $cond: [{ $isArray: [value] }, value, []] }, isPlain)
  if (next === undefined) return here
  const further = anyOf({ $cond: [{ $isArray: [value] }, value, [value]] }, losesElement(`$$e.${next}`, below))
  return { $or: [here, further] }
}

function anyOf(input: Bson, holds: Bson): Bson {
  return { $anyElementTrue: [{ $map: { input, as: 'e', in: holds } }] }
}
