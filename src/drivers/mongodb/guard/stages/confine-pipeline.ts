// Confines a pipeline on one collection. First come stages that read the same values before and after the projection,
// because before the projection they can use indexes. Then come the projection and all other stages
// (docs/guard/mongodb.md#how-it-is-confined).
import { barrierOf, shapeOf, type ExposedCollection } from '../documents/exposed.ts'
import type { Extent } from '../bounds/value-size.ts'
import { EARLY_STEPS_MAX, filter } from './filter.ts'
import { Flow, type Whole } from './pipeline-state.ts'
import { isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { within } from '../refusals/error-place.ts'
import { keepFromCompiling } from '../bounds/row-engine.ts'
import { sortSpecOf } from '../expressions/sort-spec.ts'
import { checkStages, confineStage, stageOf } from './stages.ts'
import type { Variables } from '../documents/variables.ts'

/**
 * `isRead` is true if mongod reads the documents from the collection. A $lookup may read them again from a cache.
 * Throws Broken if the pipeline is malformed, and Refusal if it is not allowed.
 */
export function confinePipeline(
  whole: Whole,
  collection: ExposedCollection,
  pipeline: Bson,
  variables: Variables<Extent>,
  isRead = true,
): Flow {
  return whole.load.apart(collection, () =>
    confineOn(whole, collection, checkStages(pipeline, whole), variables, isRead),
  )
}

function confineOn(
  whole: Whole,
  collection: ExposedCollection,
  stages: readonly BsonDocument[],
  variables: Variables<Extent>,
  isRead: boolean,
): Flow {
  const out: BsonDocument[] = []
  const barrier = barrierOf(collection, out)
  const flow = new Flow(whole, variables, false, out, barrier, shapeOf(collection, barrier), collection.tops, {
    // The stages of a view may make many documents of one, so its documents do not count as just read.
    isRead: isRead && !collection.rewritten,
  })
  const rest = hoist(stages, flow)
  const isCached = collection.rewritten && !variables.isEmpty
  if (isCached) for (const name of collection.tops) barrier.raise(name)
  barrier.place(collection.rewritten ? (print) => flow.closeGaps(collection.tree, print) : undefined)
  // mongod 6.0 caches the documents of a time series after a $match with outer variables, so later rows would get the
  // documents of the first row. The barrier keeps a $match that reads a field out of this cache. The $limit does the
  // same for a $match that reads no field.
  if (isCached) flow.out.push({ $limit: Number.MAX_SAFE_INTEGER })
  for (const stage of rest) confineStage(stage, flow)
  keepFromCompiling(out)
  return flow
}

/**
 * Prints the filters, sorts, skips and limits at the beginning, as long as they may run before the projection. Returns
 * the other stages.
 */
function hoist(stages: readonly BsonDocument[], flow: Flow): readonly BsonDocument[] {
  let at = 0
  const steps = { left: EARLY_STEPS_MAX }
  for (let stage = stages[at]; stage !== undefined; stage = stages[++at]) {
    const [name, value] = stageOf(stage)
    if (name !== '$match') break
    const { hoistable, early } = within(stage, name, () => filter(value, flow.scope, steps))
    if (hoistable || Object.keys(early).length > 0) flow.out.push({ $match: early })
    if (!hoistable) return stages.slice(at)
  }
  for (let stage = stages[at]; stage !== undefined; stage = stages[++at]) {
    const [name, value] = stageOf(stage)
    if (name === '$sort' ? !sortsAlike(value, flow) : name !== '$skip' && name !== '$limit') break
    confineStage(stage, flow)
  }
  return stages.slice(at)
}

/**
 * True if documents sort in the same order before and after the projection. If only lost array elements could change
 * the order, sets flow.early.
 */
function sortsAlike(value: Bson, flow: Flow): boolean {
  if (!isDocument(value)) return false
  const { hoistable, cut } = sortSpecOf('$sort', value, flow.scope)
  if (hoistable && cut.length > 0) flow.early = { at: flow.out.length, cut }
  return hoistable && cut.length === 0
}
