// A pipeline on a collection: what reads the same before and behind the projection goes in front, where indexes serve it,
// then the projection, then everything else (docs/guard/mongodb.md#how-it-is-confined).
import { barrierOf, shapeOf, type ExposedCollection } from './exposed.ts'
import type { Extent } from './value-size.ts'
import { filter } from './filter.ts'
import { Flow, type Whole } from './pipeline-state.ts'
import { isDocument, type Bson, type BsonDocument } from '../query.ts'
import { within } from './error-place.ts'
import { sortSpecOf } from './sort-spec.ts'
import { checkStages, confineStage, stageOf } from './stages.ts'
import type { Variables } from './variables.ts'

/** Throws Refusal and Broken. */
export function confinePipeline(
  whole: Whole,
  collection: ExposedCollection,
  pipeline: Bson,
  variables: Variables<Extent>,
): Flow {
  const stages = checkStages(pipeline, whole)
  const out: BsonDocument[] = []
  const barrier = barrierOf(collection, out)
  whole.source(collection, barrier)
  const flow = new Flow(whole, variables, false, out, barrier, shapeOf(collection, barrier), collection.tops)
  const rest = hoist(stages, flow)
  const isCached = collection.rewritten && !variables.isEmpty
  if (isCached) for (const name of collection.tops) barrier.raise(name)
  barrier.place()
  // mongod 6.0 moves a $match with outer variables into what it caches of a time series: later rows get the first's. The
  // wall holds one that reads a field; one that reads none passes it, but no limit.
  if (isCached) flow.out.push({ $limit: Number.MAX_SAFE_INTEGER })
  for (const stage of rest) confineStage(stage, flow)
  return flow
}

/** Prints the leading filters, then sorts, skips and limits, as far as they may move; returns the rest. */
function hoist(stages: readonly BsonDocument[], flow: Flow): readonly BsonDocument[] {
  let at = 0
  for (let stage = stages[at]; stage !== undefined; stage = stages[++at]) {
    const [name, value] = stageOf(stage)
    if (name !== '$match') break
    const { printed, hoistable } = within(stage, name, () => filter(value, flow.scope))
    if (!hoistable) return stages.slice(at)
    flow.out.push({ $match: printed })
  }
  for (let stage = stages[at]; stage !== undefined; stage = stages[++at]) {
    const [name, value] = stageOf(stage)
    if (name === '$sort' ? !sortsAlike(value, flow) : name !== '$skip' && name !== '$limit') break
    confineStage(stage, flow)
  }
  return stages.slice(at)
}

/** Where only documents that lose an element would be ordered otherwise, the flow keeps what a trial needs. */
function sortsAlike(value: Bson, flow: Flow): boolean {
  if (!isDocument(value)) return false
  const { hoistable, cut } = sortSpecOf('$sort', value, flow.scope)
  if (hoistable && cut.length > 0) flow.early = { at: flow.out.length, cut }
  return hoistable && cut.length === 0
}
