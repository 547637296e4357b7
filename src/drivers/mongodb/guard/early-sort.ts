// A sort with a limit on a path through a partly shown object, in front of the projection, where an index can serve it.
// There a hidden scalar in an array sorts as null, so the order may differ: the form printed here proves of every document
// it takes that it does not, and fails in the database otherwise; then the form with the projection first is sent.
import { numberOf } from './parse-ejson.ts'
import type { Bson, BsonDocument } from '../query.ts'

export interface EarlySort {
  /** How many stages stand in front of the projection. */
  readonly at: number
  /** Of each sort path the components that lead through partly shown objects. */
  readonly cut: readonly (readonly string[])[]
}

const ONE_TO_ONE = new Set(['$project', '$set', '$addFields', '$unset'])

/**
 * The same pipeline with its sort moved to the front, and a limit of as many documents as can be asked for. Null where
 * no number of documents is enough.
 *
 * Why it is right: a projection only takes elements away that sort as null, so no document comes later by its raw value
 * than by the projected one. Where none of the first n loses an element, they are the first n of both orders.
 */
export function sortedEarly(pipeline: readonly BsonDocument[], { at, cut }: EarlySort): readonly BsonDocument[] | null {
  const place = pipeline.findIndex((stage, n) => n >= at && Object.hasOwn(stage, '$sort'))
  const sort = pipeline[place]
  const most = taken(pipeline.slice(place + 1))
  if (sort === undefined || !Number.isSafeInteger(most)) return null
  const front = [...pipeline.slice(0, at), sort, { $limit: most }, provenAlike(cut)]
  return [...front, ...pipeline.slice(at, place), ...pipeline.slice(place + 1)]
}

/** How many sorted documents the stages behind the sort can ask for; Infinity where they may want all. */
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

/** Lets documents pass, and fails (with the server's ConversionFailure) at one that the projection takes an element from. */
function provenAlike(cut: readonly (readonly string[])[]): BsonDocument {
  const losing = cut.map(([top = '', ...below]) => losesElement(`$${top}`, below))
  return { $match: { $expr: { $toInt: { $cond: [{ $or: losing }, 'the projection takes an element away', 1] } } } }
}

/** Whether the value is an array with an element that is neither object nor array, or leads to one. */
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
