// Estimates how many documents a query reads. First, the sizes of its collections give an upper bound, which is enough
// if it is below the limit. Otherwise, the estimate comes from the plan. explain uses queryPlanner only, because
// executionStats would run the query (docs/guard/mongodb.md).
import { AppError } from '../../../errors.ts'
import type { BsonDocument, MongoQuery, ReadCollection } from '../confined-query.ts'
import { joinReads, unwindsGathered, type Joined } from './join-reads.ts'
import { readPlan, type PlanNode } from './read-plan.ts'

/** The number of measurements in one bucket of a time-series collection. */
const BUCKET = 1_000

/** The size of a collection of unknown size. It is above any sensible limit. */
const UNKNOWN = 1e12

/** Returns the current number of documents in a collection, or null if it is unknown. */
export type Sizes = (collection: string) => Promise<number | null>

/** Returns an upper bound on the documents that any plan reads. */
export async function costBound(query: MongoQuery, sizes: Sizes): Promise<number> {
  const [base] = query.reads
  // A view may read more documents than it shows.
  if (base === undefined || base.kind === 'view') return UNKNOWN
  const rows = await sizeOf(base, sizes)
  return rows + (await joinCost(query, query.pipeline, rows, sizes, true))
}

/** Returns costBound() for a query without joins whose collection has a known size. Returns null for other queries. */
export function boundBySize(query: MongoQuery, known: (name: string) => number | null | undefined): number | null {
  const [base] = query.reads
  if (base?.kind !== 'collection' || query.joins.length > 0) return null
  const size = known(base.name)
  return size === undefined ? null : (size ?? base.documents ?? UNKNOWN)
}

/** One of the two forms that a query may have, and its plan. */
export interface Planned {
  readonly form: readonly BsonDocument[]
  /** The server's answer to explain. Documents in it may be BSON. */
  readonly plan: PlanNode
  readonly maxCost: number
  readonly sizes: Sizes
  /** Returns how many documents arrive after the leading stages. Stops counting at `most`. */
  readonly arriving: (stages: number, most: number) => Promise<number>
}

/** Returns the cost by the server's plan of the printed pipeline. */
export async function planCost(query: MongoQuery, planned: Planned): Promise<number> {
  const { plan, sizes, form, maxCost } = planned
  const planners = plannersOf(plan)
  let [scanned, own] = [0, 0]
  for (const planner of planners) {
    const cost = await scanCost(query, planner, { sizes, maxCost })
    scanned += cost
    // The plan lists a $unionWith separately.
    if (planner['namespace'] === planners[0]?.['namespace']) own += cost
  }
  return scanned + (own > 0 ? await joinCost(query, form, own, sizes) : await joinsByIndex(query, planned))
}

/**
 * Returns how many documents joins read. A plan does not say how many documents an index finds, so this function may
 * count them.
 */
async function joinsByIndex(query: MongoQuery, { form, maxCost, sizes, arriving }: Planned): Promise<number> {
  const firstOf = (names: ReadonlySet<string>) =>
    form.findIndex((stage) => Object.keys(stage).some((name) => names.has(name)))
  const joining = firstOf(JOINING)
  if (query.joins.length === 0 || joining === -1) return 0
  // Arrays may hold more documents than arrive at the join, so count the documents before they are gathered.
  const gathers = unwindsGathered(form.slice(joining), query.unwinds)
  const first = gathers ? firstOf(GATHERING_OR_JOINING) : joining
  const rest = form.slice(first)
  const [one, two] = [await joinCost(query, rest, 1, sizes), await joinCost(query, rest, 2, sizes)]
  const each = two - one
  if (each <= 1) return one
  // One document more than the limit allows is enough.
  const rows = await arriving(first, Math.ceil(maxCost / each) + 1)
  return await joinCost(query, rest, Math.max(1, rows), sizes)
}

const JOINING = new Set(['$lookup', '$graphLookup', '$unionWith', '$facet'])
const GATHERING_OR_JOINING = new Set([...JOINING, '$group', '$bucketAuto'])

/** Throws AppError QUERY_DENIED if the estimate is over the limit. */
export function checkCost(estimate: number, limit: number, collection: string): void {
  if (estimate <= limit) return
  const message =
    estimate < UNKNOWN
      ? `This query would scan about ${Math.round(estimate)} documents of ${collection}, over the limit of ${limit}.`
      : `This query would scan documents that the login of this datasource cannot count, which may be over the limit of ${limit}.`
  throw new AppError('QUERY_DENIED', message, {
    extra: {
      blocked: { kind: 'cost', name: 'scanned documents' },
      hint: 'Read less: filter first, on a path that an index begins with; join by an indexed foreignField, after a $match or $limit. A join within a join multiplies the documents that are read.',
      estimate: Math.round(estimate),
      limit,
    },
  })
}

/** explain does not include $lookup and $graphLookup. */
async function joinCost(
  query: MongoQuery,
  pipeline: readonly BsonDocument[],
  rows: number,
  sizes: Sizes,
  countsUnions = false,
): Promise<number> {
  if (query.joins.length === 0) return 0
  const joined = async (collection: string): Promise<Joined> => {
    const read = query.reads.find((each) => each.name === collection)
    if (read === undefined) return { documents: UNKNOWN, indexedPaths: [] }
    return { documents: await sizeOf(read, sizes), indexedPaths: read.indexedPaths }
  }
  const { reads } = await joinReads(pipeline, { rows, held: 0 }, { joined, unwinds: query.unwinds, countsUnions })
  return Math.min(reads, UNKNOWN)
}

async function sizeOf(read: ReadCollection, sizes: Sizes): Promise<number> {
  const { kind, name, documents } = read
  // Counting a view or a time-series collection would read all of its documents. So use the count of introspection,
  // which had a timeout of 1 s.
  if (kind === 'collection') return (await sizes(name)) ?? documents ?? UNKNOWN
  if (documents === null) return UNKNOWN
  return kind === 'view' ? documents : Math.ceil(documents / BUCKET)
}

function isNode(value: unknown): value is PlanNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Finds every queryPlanner in the answer, whatever its form. There is one per collection, per $unionWith and per shard.
 */
function plannersOf(value: unknown, depth = 0): readonly PlanNode[] {
  if (depth > 100) return []
  if (value instanceof Uint8Array) return plannersOf(readPlan(value), depth)
  if (Array.isArray(value)) return value.flatMap((each) => plannersOf(each, depth + 1))
  if (!isNode(value)) return []
  const raw = value['queryPlanner']
  const planner = raw instanceof Uint8Array ? readPlan(raw) : raw
  if (isNode(planner)) return [planner]
  return Object.values(value).flatMap((each) => plannersOf(each, depth + 1))
}

type Reckoned = Pick<Planned, 'sizes' | 'maxCost'>

async function scanCost(query: MongoQuery, planner: PlanNode, at: Reckoned): Promise<number> {
  const namespace = planner['namespace']
  const collection = typeof namespace === 'string' ? namespace.slice(namespace.indexOf('.') + 1) : query.collection
  const winning = planner['winningPlan']
  const plan = isNode(winning) && isNode(winning['queryPlan']) ? winning['queryPlan'] : winning
  let cost = 0
  for (const limit of scansOf(plan, Infinity)) cost += Math.min(limit, await scannedSize(query, collection, at))
  return cost
}

async function scannedSize(query: MongoQuery, collection: string, { sizes, maxCost }: Reckoned): Promise<number> {
  const read = query.reads.find((each) => each.name === collection && each.kind === 'collection')
  if (read !== undefined) return await sizeOf(read, sizes)
  const buckets = query.reads.find((each) => `system.buckets.${each.name}` === collection)
  if (buckets !== undefined && buckets.documents !== null) return await sizeOf(buckets, sizes)
  const hidden = await sizes(collection)
  if (hidden !== null) return magnitude(hidden, maxCost)
  // The login may not be allowed to count the source of a view, and the plan does not show to which view a source
  // belongs.
  const views = query.reads.filter(({ kind }) => kind === 'view').map(({ documents }) => documents ?? UNKNOWN)
  return views.length === 0 ? UNKNOWN : Math.max(...views)
}

/**
 * Rounds the size of a hidden collection up to the limit times a power of two. A caller could add known costs, and find
 * the exact size from the reported number or from the refusal. After rounding, only the magnitude is revealed. A size
 * within the limit stays within it.
 */
function magnitude(documents: number, limit: number): number {
  return Math.ceil(limit * 2 ** Math.ceil(Math.log2(Math.max(1, documents) / limit)))
}

const NARROW = new Set(['LIMIT', 'PROJECTION_SIMPLE', 'PROJECTION_DEFAULT', 'PROJECTION_COVERED'])

/** For each full collection scan in the plan, returns after how many documents it stops. */
function scansOf(node: unknown, limit: number): readonly number[] {
  if (!isNode(node)) return []
  const { stage } = node
  if (stage === 'COLLSCAN') {
    const filter = node['filter']
    const hasFilter = isNode(filter) && Object.keys(filter).length > 0
    return [hasFilter ? Infinity : limit]
  }
  const amount = node['limitAmount']
  const below =
    typeof stage === 'string' && NARROW.has(stage)
      ? Math.min(limit, stage === 'LIMIT' && typeof amount === 'number' ? amount : Infinity)
      : Infinity
  const inputs = [node['inputStage'], node['outerStage'], node['innerStage'], node['queryPlan'], node['winningPlan']]
  const lists = [node['inputStages'], node['shards']].flatMap((list) => (Array.isArray(list) ? list : []))
  return [...inputs, ...lists].flatMap((each) => scansOf(each, below))
}
