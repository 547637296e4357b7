// If a confined pipeline only filters, sorts, skips, limits and projects in this order, a find command does the same
// with a quarter of the processor time.
import { isDocument, type BsonDocument, type Find } from '../confined-query.ts'
import { numberOf } from './body/parse-ejson.ts'

/** A find command does these steps in this order, each at most once. */
const ORDER = ['$match', '$sort', '$skip', '$limit', '$project']

/** Returns null if the pipeline has other stages or another order, or a limit of 0. */
export function findOf(pipeline: readonly BsonDocument[]): Find | null {
  const parts = new Map<string, BsonDocument[string]>()
  let next = 0
  for (const stage of pipeline.slice(0, -1)) {
    const [name = '', ...others] = Object.keys(stage)
    const place = ORDER.indexOf(name)
    if (place < next || others.length > 0) return null
    next = place + 1
    parts.set(name, stage[name] ?? null)
  }
  const most = limitIn(pipeline.at(-1))
  const own = parts.has('$limit') ? (numberOf(parts.get('$limit')) ?? 0) : Infinity
  const [filter, sort, projection] = [parts.get('$match') ?? {}, parts.get('$sort') ?? null, parts.get('$project')]
  const limit = Math.min(own, most)
  // In a find command, a limit of 0 means no limit.
  if (!isDocument(filter) || !isDocument(projection) || !(limit >= 1)) return null
  return { filter, sort: isDocument(sort) ? sort : null, skip: parts.get('$skip') ?? null, limit, projection }
}

function limitIn(stage: BsonDocument | undefined): number {
  return stage === undefined || Object.keys(stage).join() !== '$limit' ? 0 : (numberOf(stage['$limit']) ?? 0)
}
