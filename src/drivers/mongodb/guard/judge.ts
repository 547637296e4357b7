// Judges a body: checks its size, parses Extended JSON, confines the stages, and returns the query or the refusal. The
// code is synchronous and pure. The main thread runs it for short bodies, and a guard thread for long bodies.
import type { Catalog, Denied, Malformed, Owner } from '../../driver.ts'
import { findOf } from './as-find.ts'
import { sortedEarly } from './stages/early-sort.ts'
import { exposedOf } from './documents/exposed.ts'
import { mayMakeMarks } from './bounds/collation.ts'
import { Whole } from './stages/pipeline-state.ts'
import { parseEjson } from './body/parse-ejson.ts'
import { shareLimits } from './bounds/runtime-checks.ts'
import { Load } from './bounds/step-meter.ts'
import { outlineOf } from './documents/document-shape.ts'
import { placeOf, positionOf, within, type Path } from './refusals/error-place.ts'
import { printed } from './print.ts'
import { isArray, SMALL_ROWS_MAX, type Bson, type MongoQuery } from '../confined-query.ts'
import type { MongoBody } from './body/read-body.ts'
import { readsOf } from './read-collections.ts'
import { Broken, Refusal, refusedCollection, refusedLimit } from './refusals/refusal.ts'
import { confinePipeline } from './stages/confine-pipeline.ts'
import { Variables } from './documents/variables.ts'
import { TooMuchHere, Work, WORK_MAX } from './bounds/work-budget.ts'

export const DEPTH_MAX = 24
const NODES_MAX = 20_000
const FIELDS_MAX = 1_000

export interface Bounds {
  readonly characters: number
  readonly nodes: number
  /** In the units of Work. */
  readonly work: number
  /** If a body exceeds the budget: true passes it to a thread, false refuses it. */
  readonly isHere: boolean
}

/** The budget on the main thread, about 5 ms. */
export const HERE: Bounds = { characters: 16_384, nodes: 1_000, work: 2_500, isHere: true }
export const IN_THREAD: Bounds = { characters: Infinity, nodes: Infinity, work: WORK_MAX, isHere: false }

export type Judged =
  | { readonly kind: 'made'; readonly query: MongoQuery }
  | Denied
  | Malformed
  /** The body exceeds the budget of the main thread. */
  | { readonly kind: 'heavy' }

export interface Case {
  readonly body: MongoBody
  readonly catalog: Catalog
  readonly rowCap: number
  /** The owner whose turn the body takes in the threads. The verdict does not depend on the owner. */
  readonly owner?: Owner
}

/** The same body and exposure always get the same verdict. `meter` receives the guard's work. */
export function judge(asked: Case, bounds: Bounds, meter?: (spent: number) => void): Judged {
  const work = new Work(bounds.work, bounds.isHere)
  try {
    return judged(asked, bounds, work)
  } finally {
    meter?.(work.spent)
  }
}

function judged(asked: Case, bounds: Bounds, work: Work): Judged {
  const { body } = asked
  const lifted: Lifted = {}
  try {
    checkSize(body)
    if (body.text.length > bounds.characters || body.nodes > bounds.nodes) return HEAVY
    lifted.filter = parseEjson(body.filter)
    lifted.pipeline = parseEjson(body.pipeline ?? [])
    return { kind: 'made', query: query(body, stagesOf(lifted), { ...asked, work }) }
  } catch (error) {
    if (error instanceof TooMuchHere) return HEAVY
    if (error instanceof Refusal || error instanceof Broken) return refused(error, placeIn(lifted, body, error))
    throw error
  }
}

const HEAVY: Judged = { kind: 'heavy' }

function refused(error: Refusal | Broken, { path, position }: Found): Denied | Malformed {
  const at = path === null ? '' : path.join('.').slice(0, PLACE_MAX)
  const where = position === null ? {} : { position }
  const place = position === null || path === null ? {} : { path }
  if (error instanceof Broken)
    return { kind: 'malformed', why: at === '' ? error.message : `${error.message} (at ${at})`, ...where }
  const { kind, blocked: name, message: why, hint, near } = error
  return {
    kind: 'denied',
    blocked: { kind, name },
    why,
    hint: at === '' ? hint : `${hint} The refused part is at ${at}.`,
    ...where,
    ...place,
    near,
  }
}

const PLACE_MAX = 300

interface Found {
  readonly path: Path | null
  readonly position: number | null
}

/**
 * Returns the place of an error in the body's text, as the audit stores it. Both fields are null if the error has no
 * place.
 */
function placeIn(lifted: Lifted, body: MongoBody, error: Refusal | Broken): Found {
  if (error.trail.length === 0) return { path: null, position: null }
  const { filter, pipeline } = body
  const path = placeOf(error, { body, filter, pipeline }) ?? placeOf(error, { ...lifted })
  const shown = path?.[0] === 'body' ? path.slice(1) : path
  return { path: shown, position: shown === null ? null : positionOf(body.text, shown) }
}

interface Asked extends Case {
  readonly work: Work
}

function query(body: MongoBody, stages: Bson, { catalog, rowCap, work }: Asked): MongoQuery {
  const exposed = exposedOf(catalog)
  const collection = within(body, 'collection', () => {
    const found = exposed.collection(body.collection)
    if (!found) throw refusedCollection(body.collection, exposed.hint(body.collection))
    return found
  })
  // The collation of this collection also applies to the collections that are joined to it.
  const collation = collection.collated ? { hasMarks: mayMakeMarks(stages) } : null
  const whole = new Whole(exposed, new Load(work, collation))
  const flow = confinePipeline(whole, collection, stages, new Variables())
  shareLimits(whole.limits)
  flow.out.push({ $limit: rowCap + 1 })
  const { database, name } = collection
  const { joins, unwinds } = whole
  const reads = readsOf(catalog, [name, ...joins.map((join) => join.collection)])
  const early = flow.early === null ? null : sortedEarly(flow.out, flow.early)
  const { columns, shape, out: pipeline } = flow
  // For a view or a time series, the server puts stages before the guard's stages, so a find cannot be used.
  const mayFind = early === null && !collection.rewritten && rowCap <= SMALL_ROWS_MAX
  const find = mayFind ? findOf(pipeline) : null
  return {
    ...{ database, collection: name, pipeline, early, find, rowCap, columns, joins, unwinds, reads },
    printed: () => printed({ collection: name, pipeline, early, find }),
    outline: () => outlineOf(shape),
  }
}

function checkSize({ depth, nodes, widest }: MongoBody): void {
  if (depth > DEPTH_MAX)
    throw refusedLimit('depth', `the query is nested ${depth} levels deep; the limit is ${DEPTH_MAX}`)
  if (nodes > NODES_MAX) throw refusedLimit('values', `the query has ${nodes} values; the limit is ${NODES_MAX}`)
  if (widest <= FIELDS_MAX) return
  throw refusedLimit(
    'fields',
    `an object of the query has ${widest} fields; the limit is ${FIELDS_MAX}`,
    'Name fewer fields, or write an array of {k, v} objects and convert it with $arrayToObject.',
  )
}

interface Lifted {
  filter?: Bson
  pipeline?: Bson
}

function stagesOf({ filter: first = {}, pipeline: rest = [] }: Lifted): Bson {
  const empty = typeof first === 'object' && first !== null && Object.keys(first).length === 0
  return isArray(rest) ? [...(empty ? [] : [{ $match: first }]), ...rest] : rest
}
