// Confines the stages that make one document of many ($group, $bucket, $bucketAuto, $sortByCount, $count), and
// $setWindowFields, $densify and $fill.
import { accumulator, bounds, WINDOW_ELEMENTS, windowOperator } from '../expressions/accumulator.ts'
import { plus, scaled, type Amount } from '../bounds/amount.ts'
import { arrayOf, fieldsOf, textOf, wholeOf } from '../body/read-arguments.ts'
import { computed, type Computed } from '../expressions/computed-value.ts'
import { collatedKeySteps, isSmall, keySteps } from '../bounds/operator-steps.ts'
import type { Flow } from './pipeline-state.ts'
import { dateCheck, type Gathered } from '../bounds/runtime-checks.ts'
import { set } from './projection-stages.ts'
import { checkName, outputPath } from '../body/field-names.ts'
import { unitsOfBuckets, unitsOfGroup } from '../bounds/held-memory.ts'
import { checkReadAgain, checkUnchecked, UNBOUNDED } from '../bounds/unchecked-steps.ts'
import { isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { within } from '../refusals/error-place.ts'
import { Broken, refusedLimit, refusedOperator, shown, type Refusal } from '../refusals/refusal.ts'
import { resolve, type Scope } from '../documents/scope.ts'
import { checkWeight, closed, shapeWith, valueAt, WHOLE, type Shape } from '../documents/document-shape.ts'
import { largest, object, SMALL, type Extent } from '../bounds/value-size.ts'
import { countKey, sortSpecOf } from '../expressions/sort-spec.ts'

/** Sets the known fields and the columns. `written` are the names in the query, without a `count` that MongoDB adds. */
function made(flow: Flow, id: Shape, outputs: Outputs, written: readonly string[] = [...outputs.shapes.keys()]): void {
  const shape = closed(new Map([['_id', id], ...outputs.shapes]))
  checkWeight(shape)
  flow.shape = shape
  flow.columns = ['_id', ...written]
}

interface Outputs {
  readonly printed: BsonDocument
  readonly shapes: ReadonlyMap<string, Shape>
  /** True if an output merges objects, and the query computes the names of their fields. */
  readonly merges: boolean
}

const COUNT: Outputs = { merges: false, printed: {}, shapes: new Map([['count', shapeWith(SMALL)]]) }

/** `written` is the object in the body that contains the outputs. */
function outputs(of: string, value: BsonDocument, flow: Flow, written = value): Outputs {
  const printed: Record<string, Bson> = {}
  const shapes = new Map<string, Shape>()
  let merges = false
  for (const [name, below] of Object.entries(value)) {
    const found = within(written, name, () => {
      checkName(of, name)
      return accumulator(of, below, flow.scope)
    })
    printed[name] = found.printed
    shapes.set(name, shapeWith(found.extent))
    if (found.gathers === 'object' && !found.isStored) merges = true
  }
  return { printed, shapes, merges }
}

/** Confines the key by which documents are grouped. */
function keyed(value: Bson | undefined, scope: Scope): Computed {
  const key = computed(value, scope)
  scope.meter.step(keySteps(key.extent))
  scope.meter.compareKept(collatedKeySteps(key.extent, scope.meter.collation))
  return key
}

export function group(value: Bson, flow: Flow): void {
  if (!isDocument(value) || value['_id'] === undefined) throw new Broken('$group takes an object with _id')
  const { _id: id, ...rest } = value
  const { scope } = flow
  const key = within(value, '_id', () => keyed(id, scope))
  const found = outputs('$group', rest, flow, value)
  flow.out.push({ $group: { _id: key.printed, ...found.printed } })
  flow.held.stage(unitsOfGroup(id, rest))
  made(flow, key.shape, found)
}

export function bucket(value: Bson, flow: Flow): void {
  const read = fieldsOf('$bucket', value, ['groupBy', 'boundaries'], ['default', 'output'])
  const { scope } = flow
  const bounds = arrayOf('$bucket', read['boundaries'])
  const ends = bounds.map((bound) => computed(bound, scope))
  const { collation } = scope.meter
  const collated = (extent: Extent): Amount => collatedKeySteps(extent, collation)
  // Without a collation, a comparison reads no more of the key than of the boundary.
  for (const { extent } of ends) scope.meter.step(scaled(plus(keySteps(extent), collated(extent)), 2))
  const printed = {
    // For each boundary that it compares, the server computes groupBy again.
    groupBy: scope.meter.repeat(2 * bounds.length, () => {
      const key = computed(read['groupBy'], scope)
      scope.meter.step(collated(key.extent))
      return key.printed
    }),
    boundaries: ends.map((end) => end.printed),
    ...(read['default'] === undefined ? {} : { default: computed(read['default'], scope).printed }),
  }
  const written = outputsOf('$bucket', read['output'])
  flow.held.stage(unitsOfGroup('$', written ?? { count: { $sum: 1 } }))
  const output = written === null ? null : outputs('$bucket', written, flow)
  flow.out.push({ $bucket: { ...printed, ...(output === null ? {} : { output: output.printed }) } })
  made(flow, WHOLE, output ?? COUNT, output === null ? [] : undefined)
}

export function bucketAuto(value: Bson, flow: Flow): void {
  const read = fieldsOf('$bucketAuto', value, ['groupBy', 'buckets'], ['output', 'granularity'])
  const { granularity } = read
  const key = keyed(read['groupBy'], flow.scope)
  // Without a collation, mongod's memory limit bounds the time of the sort. With a granularity, mongod fails at the
  // first key that is no number.
  if (flow.scope.meter.collation !== null && granularity === undefined && !isSmall(key.extent)) throw collatedSort()
  const printed = {
    groupBy: key.printed,
    buckets: wholeOf('$bucketAuto', read['buckets'], 1),
    ...(granularity === undefined ? {} : { granularity: textOf('$bucketAuto', granularity) }),
  }
  const written = outputsOf('$bucketAuto', read['output'])
  flow.held.stage(unitsOfBuckets(written ?? {}))
  const [output, sets] = written === null ? [null, []] : uncheckedOutputs(written, flow)
  flow.out.push({ $bucketAuto: { ...printed, ...(output === null ? {} : { output: output.printed }) } })
  // Granularity rounds the ends of a bucket, so the bound of the key does not hold for them.
  const end = { ...key.extent, number: null }
  const ends = object(new Map(['min', 'max'].map((name) => [name, end])))
  made(flow, shapeWith(ends), output ?? COUNT, output === null ? [] : undefined)
  if (sets.length === 0) return
  const united = Object.fromEntries(sets.map((name): [string, Bson] => [name, { $setUnion: [`$${name}`] }]))
  flow.andThen(() => set('$set', united, flow))
}

/**
 * mongod computes the outputs of a $bucketAuto after its sort, and does not check for a cancel there. To add an element
 * to a set, it compares all elements with the same hash. So elements are first gathered in lists, and the sets are made
 * in a later stage. `sets` are the names of these lists.
 */
function uncheckedOutputs(written: BsonDocument, flow: Flow): readonly [Outputs, sets: readonly string[]] {
  const sets: string[] = []
  const listed = Object.entries(written).map(([name, below]): [string, Bson] => {
    if (!isDocument(below) || below['$addToSet'] === undefined) return [name, below]
    const { $addToSet: element, ...rest } = below
    sets.push(name)
    return [name, { $push: element, ...rest }]
  })
  const [found, { steps }] = flow.scope.meter.workOf(() =>
    outputs('$bucketAuto', Object.fromEntries(listed), flow, written),
  )
  checkUnchecked('the outputs of $bucketAuto', steps, 'Compute the values in a $set before $bucketAuto.')
  if (found.merges)
    throw refusedOperator(
      '$mergeObjects',
      'in $bucketAuto, no timeout ends the merge of objects with computed field names',
      'Gather the objects with $push, and merge them with $mergeObjects in a $set after $bucketAuto.',
    )
  return [found, sets]
}

/** The keys of the $bucketAuto may be texts that a collation compares. No cancel ends their sort. */
function collatedSort(): Refusal {
  return refusedLimit(
    'groupBy',
    'groupBy of $bucketAuto may be a text of more than 8 bytes, the limit on a collection with a default collation; no cancel ends the sort of longer texts',
    'Group by a number, a date, a boolean or an ObjectId. For a text, use $bucket with boundaries, or $group and $sort.',
  )
}

function outputsOf(of: string, value: Bson | undefined): BsonDocument | null {
  if (value === undefined) return null
  if (!isDocument(value)) throw new Broken(`${of} takes an object for output`)
  return value
}

export function sortByCount(value: Bson, flow: Flow): void {
  const { scope } = flow
  const key = keyed(value, scope)
  flow.out.push({ $sortByCount: key.printed })
  made(flow, key.shape, COUNT, [])
}

export function count(value: Bson, flow: Flow): void {
  const name = textOf('$count', value)
  checkName('$count', name)
  flow.out.push({ $count: name })
  flow.shape = closed(new Map([[name, shapeWith(SMALL)]]))
  flow.columns = [name]
}

export function setWindowFields(value: Bson, flow: Flow): void {
  const read = fieldsOf('$setWindowFields', value, ['output'], ['partitionBy', 'sortBy'])
  const { partitionBy, output } = read
  if (!isDocument(output)) throw new Broken('$setWindowFields takes an object for output')
  const { scope } = flow
  const sortBy = sortBySpec('$setWindowFields', read['sortBy'], flow)
  const sortKeys = Object.keys(sortBy.sortBy ?? {}).length
  const fields: Record<string, Bson> = {}
  const shapes = new Map<string, Shape>()
  const gathered: Gathered[] = []
  const ahead: Amount[] = []
  for (const [name, below] of Object.entries(output)) {
    outputPath('$setWindowFields', name)
    const [found, { steps }] = scope.meter.workOf(() =>
      within(output, name, () => windowOperator(below, scope, sortKeys)),
    )
    if (found.readsAhead) ahead.push(found.compares ? UNBOUNDED : steps)
    fields[name] = found.printed
    shapes.set(name, shapeWith(found.extent))
    if (found.gathers !== null) gathered.push({ path: name, as: found.gathers })
  }
  flow.out.push({
    $setWindowFields: {
      ...(partitionBy === undefined ? {} : { partitionBy: keyed(partitionBy, scope).printed }),
      ...sortBy,
      output: fields,
    },
  })
  countRanks(output, read['sortBy'], scope)
  checkReadAgain('$setWindowFields', ahead)
  flow.set('$setWindowFields', shapes)
  flow.hold(gathered, Math.floor(WINDOW_ELEMENTS / Math.max(1, gathered.length)))
  if (gathered.length > 0) flow.lookAgain()
  flow.checkSorted('$setWindowFields')
}

/** Without a collation, mongod sorts at most 100 MB, so this many comparisons of keys take little time. */
const RANKS_FREE = 10

/** $rank and $denseRank compare the sort key of each document with that of the previous document. */
function countRanks(output: BsonDocument, sortBy: Bson | undefined, { meter, shape }: Scope): void {
  const isRank = (below: Bson): boolean =>
    isDocument(below) && (Object.hasOwn(below, '$rank') || Object.hasOwn(below, '$denseRank'))
  const ranks = Object.values(output).filter(isRank).length
  if (ranks === 0) return
  for (const path of Object.keys(isDocument(sortBy) ? sortBy : {})) {
    const key = valueAt(shape, path.split('.'))
    meter.step(scaled(keySteps(key), ranks - RANKS_FREE))
    meter.step(scaled(collatedKeySteps(key, meter.collation), ranks))
  }
}

function sortBySpec(of: string, value: Bson | undefined, flow: Flow): { sortBy?: BsonDocument } {
  if (value === undefined) return {}
  if (!isDocument(value)) throw new Broken(`${of} takes an object for sortBy`)
  return { sortBy: sortSpecOf(of, value, flow.scope).printed }
}

function partitionFields(of: string, value: Bson | undefined, flow: Flow): { partitionByFields?: readonly string[] } {
  if (value === undefined) return {}
  const paths = arrayOf(of, value).map((path) => textOf(of, path))
  for (const path of paths) countKey(of, path, resolve(path, flow.scope), flow.scope)
  return { partitionByFields: paths }
}

/** mongod 6.0 adds these units one by one from a bound to the date, without a check for a cancel. */
const MONTHS = new Set(['month', 'quarter', 'year'])
/** The limit on a date in milliseconds, in the year 33,658. */
const DENSIFIED_MAX = 1e15

export function densify(value: Bson, flow: Flow): void {
  const read = fieldsOf('$densify', value, ['field', 'range'], ['partitionByFields'])
  const field = textOf('$densify', read['field'])
  countKey('$densify', field, resolve(field, flow.scope), flow.scope)
  const range = fieldsOf('range', read['range'], ['step', 'bounds'], ['unit'])
  const { step = null, bounds: ends = null, unit } = range
  if (isDocument(step)) throw new Broken('$densify takes a number for step')
  if (typeof ends === 'string' ? ends !== 'full' && ends !== 'partition' : !bounds(ends)) {
    throw new Broken('$densify takes the bounds "full", "partition" or [lower, upper]')
  }
  if (unit !== undefined && MONTHS.has(textOf('$densify', unit))) flow.out.push(dateCheck(field, DENSIFIED_MAX))
  flow.out.push({
    $densify: {
      field,
      ...partitionFields('$densify', read['partitionByFields'], flow),
      range: { step, bounds: ends, ...(unit === undefined ? {} : { unit: textOf('$densify', unit) }) },
    },
  })
  const densified = largest([valueAt(flow.shape, field.split('.')), SMALL])
  flow.set('$densify', [[field, shapeWith({ ...densified, number: null })]])
}

export function fill(value: Bson, flow: Flow): void {
  const read = fieldsOf('$fill', value, ['output'], ['partitionBy', 'partitionByFields', 'sortBy'])
  const { partitionBy, output } = read
  if (!isDocument(output)) throw new Broken('$fill takes an object for output')
  const { scope } = flow
  const fields: Record<string, Bson> = {}
  const shapes = new Map<string, Shape>()
  for (const [name, below] of Object.entries(output)) {
    const stored = valueAt(flow.shape, outputPath('$fill', name))
    const found = filling(below, flow)
    fields[name] = found.printed
    shapes.set(name, shapeWith(largest(found.extent === null ? [stored] : [stored, found.extent])))
  }
  flow.out.push({
    $fill: {
      ...(partitionBy === undefined ? {} : { partitionBy: keyed(partitionBy, scope).printed }),
      ...partitionFields('$fill', read['partitionByFields'], flow),
      ...sortBySpec('$fill', read['sortBy'], flow),
      output: fields,
    },
  })
  flow.set('$fill', shapes)
  flow.checkSorted('$fill')
}

function filling(value: Bson, flow: Flow): { readonly printed: BsonDocument; readonly extent: Extent | null } {
  const { value: constant, method } = fieldsOf('an output of $fill', value, [], ['value', 'method'])
  if ((constant === undefined) === (method === undefined))
    throw new Broken('$fill takes either value or method for a field')
  if (constant !== undefined) {
    const { printed, extent } = computed(constant, flow.scope)
    return { printed: { value: printed }, extent }
  }
  const name = textOf('$fill', method)
  if (name !== 'linear' && name !== 'locf')
    throw new Broken(`$fill: ${shown(name)} is not a method; write linear or locf`)
  return { printed: { method: name }, extent: null }
}
