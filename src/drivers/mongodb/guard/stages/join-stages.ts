// Confines $lookup, $unionWith and $graphLookup. They read only exposed collections, and their documents are projected
// before a later stage reads them.
import { fieldsOf, textOf, wholeOf } from '../body/read-arguments.ts'
import { plus, product, scaled, sizeOf } from '../bounds/amount.ts'
import { hashedSteps } from '../bounds/operator-steps.ts'
import { longestText, readByCollation, textsOf } from '../bounds/collation.ts'
import { Barrier } from '../documents/barrier.ts'
import { barrierOf, shapeOf, type ExposedCollection } from '../documents/exposed.ts'
import { computed } from '../expressions/computed-value.ts'
import { at, DOCUMENT, listsAt, settled, STORED, type Extent } from '../bounds/value-size.ts'
import { countGaps, withoutGaps } from '../documents/close-gaps.ts'
import { EARLY_STEPS_MAX, filter } from './filter.ts'
import { within } from '../refusals/error-place.ts'
import { Flow } from './pipeline-state.ts'
import { outputPath } from '../body/field-names.ts'
import { isArray, isDocument, partsIn, type Bson, type BsonDocument } from '../../confined-query.ts'
import {
  Broken,
  refusedCollection,
  refusedIndex,
  refusedOperator,
  refusedPath,
  refusedStage,
} from '../refusals/refusal.ts'
import { atMost } from '../bounds/runtime-checks.ts'
import { fieldsHint, resolve, withVariables, type Located, type Scope } from '../documents/scope.ts'
import { confinePipeline } from './confine-pipeline.ts'
import { checkWeight, union, valueAt, WHOLE, type Shape } from '../documents/document-shape.ts'
import { atLeast } from '../allowed/minimum-versions.ts'
import { BYTES_COPIED, copiesBeside, Meter } from '../bounds/step-meter.ts'

function collectionOf(of: string, name: Bson | undefined, flow: Flow): ExposedCollection {
  const text = textOf(of, name)
  const { exposed } = flow.whole
  const found = exposed.collection(text)
  if (!found) throw refusedCollection(text, exposed.hint(text))
  return found
}

export function lookup(value: Bson, flow: Flow): void {
  const read = fieldsOf('$lookup', value, ['from', 'as'], ['localField', 'foreignField', 'let', 'pipeline'])
  const from = within(read, 'from', () => collectionOf('$lookup', read['from'], flow))
  const as = textOf('$lookup', read['as'])
  outputPath('$lookup', as)
  const { pipeline } = read
  const fields = equality(read, from, flow)
  if (fields === null && pipeline === undefined) {
    throw new Broken('$lookup takes localField and foreignField, or a pipeline, or both')
  }
  if (fields !== null && !atLeast(flow.whole.exposed.server, [5, 0])) {
    const why =
      'on this server it does not take localField and foreignField together with a pipeline, which the exposure needs'
    throw refusedStage(
      '$lookup',
      why,
      '$lookup with localField and foreignField needs MongoDB 5.0 or newer. Write it with let and $expr instead.',
    )
  }
  const { scope, bound } = letOf(read, flow)
  const perDocument = fields !== null || bound !== null || !flow.variables.isEmpty
  flow.whole.join({ stage: '$lookup', collection: from.name, foreignField: fields?.foreignField ?? null, perDocument })
  const inner = confinePipeline(flow.whole, from, pipeline ?? [], scope.variables, false)
  flow.out.push({
    $lookup: { from: from.name, ...fields, ...(bound === null ? {} : { let: bound }), pipeline: inner.out, as },
  })
  const rows = fields === null ? FOUND_ALL : fields.foreignField === '_id' ? 1 : FOUND
  flow.held.join(CACHE + inner.held.units)
  flow.gatherInto()
  flow.set('$lookup', [[as, manyOf(inner.shape, rows)]])
}

/** The memory for the documents that a $lookup keeps for the next document, in units of held-memory.ts. */
const CACHE = 1
/** The memory for the documents that a $graphLookup has found, and for those that it keeps. */
const GRAPH = 2

/** A $lookup without foreignField is assumed to find this many documents. */
const FOUND_ALL = 100

/**
 * A join by another field than _id is assumed to find this many documents. The cost estimate uses this number for a
 * later $unwind.
 */
const FOUND = 10

/** Returns the shape of an array of documents. `rows` is their number for the cost estimate. */
function manyOf(shape: Shape, rows: number): Shape {
  const { isWritten: _, ...known } = shape
  return { ...known, extent: { ...STORED, usual: rows } }
}

/** The server reads foreignField from raw documents, so it must be exposed as a whole. */
function equality(
  read: BsonDocument,
  from: ExposedCollection,
  flow: Flow,
): { readonly localField: string; readonly foreignField: string } | null {
  if (read['localField'] === undefined && read['foreignField'] === undefined) return null
  const localField = textOf('$lookup', read['localField'])
  const foreignField = textOf('$lookup', read['foreignField'])
  const { components } = within(read, 'localField', () => withoutIndexes(localField, flow.scope))
  within(read, 'foreignField', () => checkRaw(foreignField, rawScope(from, flow)))
  const sought = valueAt(flow.shape, components)
  const copies = Math.max(copiesIn(read['pipeline']), copiesInList(from, read['pipeline']))
  countSought(sought, valueAt(rawScope(from, flow).shape, foreignField.split('.')), flow, copies)
  if (!sought.isSingle) {
    const lists = sizeOf(listsAt([DOCUMENT, ...components].join('.')))
    flow.scope.meter.step(scaled(product(lists, lists), LIST_STEPS * copies))
  }
  return { localField, foreignField }
}

/** Returns how often the planner copies a value with which a pipeline compares documents. */
function copiesIn(pipeline: Bson | undefined): number {
  const branches = branchesIn(pipeline)
  return copiesBeside(
    branches.length,
    branches.reduce((all, each) => all + each, 0),
  )
}

/** On a time series, mongod rewrites the values that it looks up to an $or, and copies each condition into its branches. */
function copiesInList({ isSeries }: ExposedCollection, conditions: Bson | undefined): number {
  return isSeries ? copiesBeside(1, conditionsIn(conditions)) : 1
}

/** Returns the number of values in the filters of a pipeline. A long text counts as several. */
function conditionsIn(value: Bson | undefined): number {
  if (isArray(value) || isDocument(value))
    return partsIn(value).reduce<number>((all, each) => all + conditionsIn(each), 0)
  return value === undefined ? 0 : 1 + (typeof value === 'string' ? Math.floor(value.length / BYTES_COPIED) : 0)
}

/** Returns the number of branches of each $or in a pipeline. */
function branchesIn(value: Bson | undefined): readonly number[] {
  if (isArray(value)) return value.flatMap(branchesIn)
  if (!isDocument(value)) return []
  return Object.entries(value).flatMap(([name, each]) => [
    ...(name === '$or' && isArray(each) && each.length > 1 ? [each.length] : []),
    ...branchesIn(each),
  ])
}

function withoutIndexes(path: string, scope: Scope): Located {
  const found = resolve(path, scope)
  if (found.numeric) throw refusedIndex('localField', path)
  return found
}

/** The memory for each value that mongod looks up, in bytes. Each plan of the planner has a copy of the values. */
const SOUGHT_KEPT = 6_000
const SOUGHT_STEPS = 300
/** The memory and the steps for each value in a branch of an $or in the pipeline, for each plan. */
const COPY_KEPT = 700
/** The memory for each byte of a value in a plan. */
const BYTES_KEPT = 2
const COPY_STEPS = 18
/**
 * For each array or regular expression that mongod looks up, its planner sorts all of them again. This many steps count
 * for each pair.
 */
const LIST_STEPS = 60
/** A $graphLookup may begin with this many arrays in one document. */
const LISTS_MAX = 400

/** To sort a list, or to search it, mongod compares a value of the list this many times. */
const LIST_COMPARISONS = 20
/** A foreign array is assumed to be at most this many times longer than usual. */
const FOREIGN_LENGTHS = 10

/**
 * Counts the work of a stage that looks up a value, or all elements of an array. `found` is the foreign value. `copies`
 * is the number of plans, times the branches of each plan.
 */
function countSought(value: Extent, found: Extent, flow: Flow, copies = 1): void {
  const { scope } = flow
  const { collation } = scope.meter
  if (copies > 1) countCopies(value, copies, flow)
  if (collation !== null) {
    const longest = readByCollation(longestText(value), collation)
    const rounds = value.isSingle ? 1 : LIST_COMPARISONS
    const perDocument = rounds * (found.isSingle ? 1 : FOREIGN_LENGTHS * found.usual)
    scope.meter.step(plus(readByCollation(textsOf(value), collation), scaled(longest, perDocument)))
    if (!value.isSingle) scope.meter.step(scaled(product(value.items, longest), LIST_COMPARISONS))
  }
  if (value.isSingle) return
  scope.meter.step(scaled(value.items, Math.max(SOUGHT_STEPS, COPY_STEPS * copies)))
  scope.meter.made({ ...value, kept: scaled(value.items, Math.max(SOUGHT_KEPT, COPY_KEPT * copies)) })
}

/** Counts the copies of a value in the plans of a filter. A collation reads the value again for each copy. */
function countCopies(value: Extent, copies: number, { scope: { meter } }: Flow): void {
  if (meter.collation !== null) meter.step(scaled(readByCollation(textsOf(value), meter.collation), copies))
  meter.made({ ...value, kept: scaled(value.bytes, BYTES_KEPT * copies) })
}

/** Returns how often a pipeline names the variable. */
function usesOf(name: string, value: Bson | undefined): number {
  if (typeof value === 'string') return value === name || value.startsWith(`${name}.`) ? 1 : 0
  return partsIn(value).reduce<number>((all, each) => all + usesOf(name, each), 0)
}

function rawScope(from: ExposedCollection, flow: Flow): Scope {
  const barrier = barrierOf(from, [])
  return { ...flow.scope, barrier, shape: shapeOf(from, barrier) }
}

/** The server reads the path before any projection. */
function checkRaw(path: string, scope: Scope): void {
  const found = resolve(path, scope)
  if (found.kind === 'whole' && !found.numeric) return
  const { text, near } = fieldsHint(path, scope.shape)
  throw refusedPath(path, { text: `The field to look up by must be exposed as a whole. ${text}`, near })
}

/** For each document, mongod writes the values of the variables into the filters of the pipeline, and plans them. */
function letOf(
  { let: value, pipeline }: BsonDocument,
  flow: Flow,
): { readonly scope: Scope; readonly bound: BsonDocument | null } {
  const copies = copiesIn(pipeline)
  if (value === undefined) return { scope: flow.scope, bound: null }
  if (!isDocument(value)) throw new Broken('$lookup takes an object for let')
  const bound: Record<string, Bson> = {}
  const extents = new Map<string, Extent>()
  for (const [name, below] of Object.entries(value)) {
    const { printed, extent } = computed(below, flow.scope)
    bound[name] = printed
    extents.set(name, at(`${DOCUMENT}$${name}`, settled(extent)))
    if (copies > 1) countCopies(extent, copies * usesOf(`$$${name}`, pipeline), flow)
  }
  return { scope: withVariables(flow.scope, Object.keys(value), extents), bound }
}

export function unionWith(value: Bson, flow: Flow): void {
  const read = typeof value === 'string' ? { coll: value } : fieldsOf('$unionWith', value, ['coll'], ['pipeline'])
  const from = within(read, 'coll', () => collectionOf('$unionWith', read['coll'], flow))
  flow.whole.join({ stage: '$unionWith', collection: from.name, foreignField: null, perDocument: false })
  const pipeline = 'pipeline' in read ? read['pipeline'] : undefined
  const inner = confinePipeline(flow.whole, from, pipeline ?? [], flow.variables)
  flow.out.push({ $unionWith: { coll: from.name, pipeline: inner.out } })
  flow.held.join(inner.held.units)
  flow.isRead &&= inner.isRead
  flow.size = Math.max(flow.size, inner.size)
  flow.shape = union(flow.shape, inner.shape)
  checkWeight(flow.shape)
  flow.columns = [...new Set([...flow.columns, ...inner.columns])]
}

export function graphLookup(value: Bson, flow: Flow): void {
  const read = fieldsOf(
    '$graphLookup',
    value,
    ['from', 'startWith', 'connectFromField', 'connectToField', 'as'],
    ['maxDepth', 'depthField', 'restrictSearchWithMatch'],
  )
  const from = within(read, 'from', () => collectionOf('$graphLookup', read['from'], flow))
  const as = textOf('$graphLookup', read['as'])
  outputPath('$graphLookup', as)
  const raw = rawScope(from, flow)
  const [connectFromField = '', connectToField = ''] = ['connectFromField', 'connectToField'].map((name) => {
    const path = textOf('$graphLookup', read[name])
    within(read, name, () => checkRaw(path, raw))
    return path
  })
  within(read, 'connectToField', () => checkNullAlike(connectToField, raw))
  const { maxDepth } = read
  const depthField = depthOf(read['depthField'], raw)
  const { load } = flow.whole
  const restriction = load.apart(from, () =>
    restrictionOf(read['restrictSearchWithMatch'], { ...raw, meter: new Meter(load, true) }),
  )
  flow.whole.join({ stage: '$graphLookup', collection: from.name, foreignField: connectToField, perDocument: true })
  const start = computed(read['startWith'], flow.scope)
  const found = valueAt(raw.shape, connectToField.split('.'))
  countSought(start.extent, found, flow, copiesInList(from, read['restrictSearchWithMatch']))
  flow.scope.meter.step(plus(scaled(start.extent.items, 3), hashedSteps(start.extent)))
  flow.out.push({
    $graphLookup: {
      from: from.name,
      startWith: withoutPatterns(start.printed),
      connectFromField,
      connectToField,
      as,
      ...(maxDepth === undefined ? {} : { maxDepth: wholeOf('$graphLookup', maxDepth, 0) }),
      ...(depthField === null ? {} : { depthField }),
      ...(restriction === null ? {} : { restrictSearchWithMatch: restriction }),
    },
  })
  flow.held.join(GRAPH)
  reproject(from, as, depthField, flow)
}

/**
 * mongod would match a regular expression with connectToField, so regular expressions are removed from the values. If
 * there are too many arrays among the values, the printed expression fails.
 */
function withoutPatterns(printed: Bson): Bson {
  const isPattern = (value: string): Bson => ({ $eq: [{ $type: value }, 'regex'] })
  const only = (cond: Bson): Bson => ({ $filter: { input: '$$vt_start', as: 'vt_one', cond } })
  const lists: Bson = { $size: only({ $isArray: ['$$vt_one'] }) }
  const list: Bson = atMost(lists, LISTS_MAX, only({ $not: [isPattern('$$vt_one')] }))
  const one: Bson = { $cond: [isPattern('$$vt_start'), [], '$$vt_start'] }
  return { $let: { vars: { vt_start: printed }, in: { $cond: [{ $isArray: ['$$vt_start'] }, list, one] } } }
}

/**
 * A null matches documents without the field, which would reveal hidden elements. So a path below a partly exposed
 * object is refused.
 */
function checkNullAlike(path: string, raw: Scope): void {
  if (resolve(path, raw).crossed.length === 0) return
  throw refusedOperator(
    'connectToField',
    'it goes through an object that is exposed in part',
    'Connect to a top-level field or to a field below an object that is exposed as a whole, or use $lookup.',
  )
}

function depthOf(value: Bson | undefined, raw: Scope): string | null {
  if (value === undefined) return null
  const name = textOf('$graphLookup', value)
  const [only, ...others] = outputPath('$graphLookup', name)
  if (others.length === 0 && only !== undefined && raw.shape.kids?.has(only) === false) return name
  throw refusedPath(name, 'depthField must be a new name without dots that no exposed field has.')
}

/** Confines a filter that runs on raw documents. It must match the same documents before and after the projection. */
function restrictionOf(value: Bson | undefined, raw: Scope): BsonDocument | null {
  if (value === undefined) return null
  const { printed, hoistable } = filter(value, raw, { left: EARLY_STEPS_MAX })
  if (hoistable) return unplanned(printed)
  throw refusedOperator(
    'restrictSearchWithMatch',
    'it can only compare exposed fields with values',
    'Move $expr, array indexes, objects that are exposed in part and comparisons with null below them to a $match after $graphLookup.',
  )
}

/**
 * Prints each $or in a form in which mongod matches documents with it, but makes no plans for it. For each branch of a
 * planned $or, mongod 6.0 would copy all values that the stage looks up.
 */
function unplanned(filter: BsonDocument): BsonDocument {
  const each = (below: Bson): Bson => (isArray(below) ? below.map(each) : isDocument(below) ? unplanned(below) : below)
  const { $or, $nor, ...others } = Object.fromEntries(
    Object.entries(filter).map(([name, below]): [string, Bson] => [name, each(below)]),
  )
  const excluded = [...(isArray($nor) ? $nor : []), ...($or === undefined ? [] : [{ $nor: $or }])]
  return excluded.length === 0 ? others : { ...others, $nor: excluded }
}

/**
 * $graphLookup returns whole documents and takes no pipeline, so its documents are projected afterwards. This is done
 * by a $lookup with $documents or, if that is not possible ($facet, servers before 5.1), by a $project that names the
 * known fields.
 */
function reproject(from: ExposedCollection, as: string, depthField: string | null, flow: Flow): void {
  const projection = { ...from.projection, ...(depthField === null ? {} : { [depthField]: 1 }) }
  const documents = !flow.inFacet && atLeast(flow.whole.exposed.server, [5, 1])
  const inner: BsonDocument[] = documents ? [{ $documents: '$$g' }] : flow.out
  const stage = { $project: documents ? projection : beside(projection, as, flow) }
  const barrier = documents ? barrierOf(from, inner, projection) : new Barrier(inner, stage, as)
  if (!documents) barrier.compute(as, withoutGaps(`$${as}`, from.tree))
  barrier.place(closing(from, as, inner, flow))
  if (documents) flow.out.push({ $lookup: { let: { g: `$${as}` }, pipeline: inner, as } })
  const found = documents ? shapeOf(from, barrier) : shapeOf(from, barrier, as)
  const kids = depthField === null || found.kids === null ? found.kids : new Map([...found.kids, [depthField, WHOLE]])
  flow.gatherInto()
  flow.set('$graphLookup', [[as, manyOf({ ...found, kids }, FOUND)]])
}

/** Counts the stage that closes the gaps in the documents of $graphLookup. Returns a function that prints it. */
function closing(
  from: ExposedCollection,
  as: string,
  inner: BsonDocument[],
  flow: Flow,
): ((print: () => void) => void) | undefined {
  if (inner === flow.out)
    return (print) =>
      flow.andThen(() => {
        countGaps(valueAt(flow.shape, [as]), from.tree, flow.scope.meter)
        print()
      })
  if (!from.rewritten) return undefined
  const barrier = barrierOf(from, inner)
  const found = new Flow(flow.whole, flow.variables, false, inner, barrier, shapeOf(from, barrier), from.tops, {
    isRead: false,
  })
  return (print) => found.closeGaps(from.tree, print)
}

/** Makes a projection of the known fields of the document, and the exposed fields of the documents that were found. */
function beside(projection: BsonDocument, as: string, flow: Flow): BsonDocument {
  const { kids, open }: Shape = flow.shape
  if (kids === null || open || as.includes('.')) {
    throw refusedStage(
      '$graphLookup',
      'in $facet, and on servers before MongoDB 5.1, the fields of the documents must be known',
      'Put a $project that names the fields before $graphLookup, and write a name without dots in as.',
    )
  }
  const fields: Record<string, Bson> = kids.has('_id') ? {} : { _id: 0 }
  for (const name of kids.keys()) if (name !== as) fields[name] = 1
  for (const [path, flag] of Object.entries(projection)) if (flag === 1) fields[`${as}.${path}`] = 1
  return fields
}
