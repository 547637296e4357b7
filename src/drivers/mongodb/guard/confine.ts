// The MongoDB guard: body and exposure in, one confined aggregate or a refusal out. It knows no server, no client library
// and no clock, and nothing it does not understand is passed on.
import type { Catalog, Limits, Verdict } from '../../driver.ts'
import { seal } from '../../confined.ts'
import { sortedEarly } from './early-sort.ts'
import { exposedOf } from './exposed.ts'
import { Whole } from './flow.ts'
import { lift } from './lift.ts'
import { isArray, type Bson, type MongoQuery } from '../query.ts'
import type { MongoBody } from './read.ts'
import { readsOf } from './reads.ts'
import { Broken, Refusal, refusedCollection, refusedLimit } from './refusal.ts'
import { confineSource } from './source.ts'

const DEPTH_MAX = 24
const NODES_MAX = 20_000

/** Same body, same exposure, same verdict. The sealed value is a MongoQuery. */
export function confine(body: MongoBody, exposed: Catalog, limits: Limits): Verdict {
  try {
    return { kind: 'confined', query: seal('MONGODB', query(body, exposed, limits)) }
  } catch (error) {
    if (error instanceof Broken) return { kind: 'malformed', why: error.message }
    if (!(error instanceof Refusal)) throw error
    return { kind: 'denied', blocked: { kind: error.kind, name: error.blocked }, why: error.message, hint: error.hint }
  }
}

function query(body: MongoBody, catalog: Catalog, limits: Limits): MongoQuery {
  const exposed = exposedOf(catalog)
  if (body.depth > DEPTH_MAX) throw refusedLimit('depth', `the query is nested deeper than ${DEPTH_MAX} levels`)
  if (body.nodes > NODES_MAX) throw refusedLimit('values', `the query holds more than ${NODES_MAX} values`)
  const collection = exposed.collection(body.collection)
  if (!collection) throw refusedCollection(body.collection, exposed.listed)
  const whole = new Whole(exposed)
  const rowCap = Math.min(body.limit ?? limits.rowCap, limits.rowCap)
  const flow = confineSource(whole, collection, stagesOf(body), new Set())
  flow.out.push({ $limit: rowCap + 1 })
  const { database, name } = collection
  const { joins } = whole
  const reads = readsOf(catalog, [name, ...joins.map((join) => join.collection)])
  const early = flow.early === null ? null : sortedEarly(flow.out, flow.early)
  const { columns, shape } = flow
  return { database, collection: name, pipeline: flow.out, early, rowCap, columns, joins, reads, shape }
}

/** The filter is the first stage; an empty one is none. */
function stagesOf({ filter, pipeline }: MongoBody): Bson {
  const first = lift(filter)
  const rest = lift(pipeline ?? [])
  const empty = typeof first === 'object' && first !== null && Object.keys(first).length === 0
  return isArray(rest) ? [...(empty ? [] : [{ $match: first }]), ...rest] : rest
}
