// Confines the 25 allowed stages (docs/guard/mongodb.md#what-is-allowed). Every other stage is refused with a reason.
import { booleanOf, fieldsOf, textOf, wholeOf } from '../body/read-arguments.ts'
import { asDocument, computed } from '../expressions/computed-value.ts'
import { plus, scaled } from '../bounds/amount.ts'
import { anyOf, STORED, type Extent } from '../bounds/value-size.ts'
import { filter } from './filter.ts'
import { Flow, type Whole } from './pipeline-state.ts'
import { checkName, outputPath } from '../body/field-names.ts'
import type { Held } from '../bounds/held-memory.ts'
import { bucket, bucketAuto, count, densify, fill, group, setWindowFields, sortByCount } from './group-stages.ts'
import { graphLookup, lookup, unionWith } from './join-stages.ts'
import { project, set, unset } from './projection-stages.ts'
import { GATHERED, isArray, isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { Broken, refusedLimit, refusedStage } from '../refusals/refusal.ts'
import { within } from '../refusals/error-place.ts'
import { needVersion, resolve, type Scope } from '../documents/scope.ts'
import { checkWeight, closed, find, shapeWith, valueAt, WHOLE, type Shape } from '../documents/document-shape.ts'
import { sortSpecOf } from '../expressions/sort-spec.ts'
import { suggested } from '../refusals/suggestions.ts'

const STAGES_MAX = 40
const BRANCHES_MAX = 10

type Reader = (value: Bson, flow: Flow) => void

/** How a stage is read, and what it costs besides the steps that its reader counts. */
interface Stage {
  readonly read: Reader
  /** True if the stage neither gathers nor multiplies documents. */
  readonly isStreaming: boolean
  /** The units of memory that the stage holds (held-memory.ts). 'as read' if its reader adds them. */
  readonly holds: number | 'as read'
}

const streaming = (read: Reader, holds: Stage['holds'] = 0): Stage => ({ read, isStreaming: true, holds })
const gathering = (read: Reader, holds: Stage['holds']): Stage => ({ read, isStreaming: false, holds })

const STAGES: ReadonlyMap<string, Stage> = new Map([
  ['$match', streaming(match)],
  ['$project', streaming(project)],
  ['$set', streaming((value, flow) => set('$set', value, flow))],
  ['$addFields', streaming((value, flow) => set('$addFields', value, flow))],
  ['$unset', streaming(unset)],
  ['$sort', gathering(sort, 1)],
  ['$limit', streaming((value, flow) => flow.out.push({ $limit: wholeOf('$limit', value, 1) }))],
  ['$skip', streaming((value, flow) => flow.out.push({ $skip: wholeOf('$skip', value, 0) }))],
  ['$sample', gathering(sample, 1)],
  ['$group', gathering(group, 'as read')],
  ['$bucket', gathering(bucket, 'as read')],
  ['$bucketAuto', gathering(bucketAuto, 'as read')],
  ['$sortByCount', gathering(sortByCount, 1)],
  ['$count', gathering(count, 0)],
  ['$unwind', gathering(unwind, 0)],
  [
    '$replaceRoot',
    streaming((value, flow) =>
      replace('$replaceRoot', fieldsOf('$replaceRoot', value, ['newRoot'], [])['newRoot'], flow),
    ),
  ],
  ['$replaceWith', streaming((value, flow) => replace('$replaceWith', value, flow))],
  ['$redact', streaming(redact)],
  ['$facet', gathering(facet, 'as read')],
  ['$lookup', streaming(lookup, 'as read')],
  // mongod has just read the documents that $unionWith adds.
  ['$unionWith', streaming(unionWith, 'as read')],
  ['$graphLookup', streaming(graphLookup, 'as read')],
  // $setWindowFields and $fill sort, and then hold the documents of a partition.
  ['$setWindowFields', gathering(setWindowFields, 2)],
  ['$densify', gathering(densify, 1)],
  ['$fill', gathering(fill, 2)],
])

export const STAGE_NAMES: readonly string[] = [...STAGES.keys()]

/** Throws Broken if the value is no pipeline, and Refusal if the pipeline is too long. */
export function checkStages(pipeline: Bson, whole: Whole): readonly BsonDocument[] {
  if (!isArray(pipeline)) throw new Broken('a pipeline must be an array of stages')
  if (pipeline.length > STAGES_MAX) throw refusedLimit('stages', `a pipeline has more than ${STAGES_MAX} stages`)
  whole.count(pipeline.length)
  return pipeline.map((stage) => {
    if (!isDocument(stage)) throw new Broken('a stage must be an object with one key')
    stageOf(stage)
    return stage
  })
}

export function stageOf(stage: BsonDocument): readonly [string, Bson] {
  const [first, ...others] = Object.entries(stage)
  if (first === undefined || others.length > 0) throw new Broken('a stage must be an object with one key')
  return first
}

/** Throws Broken if the stage is malformed, and Refusal if it is not allowed. */
export function confineStage(stage: BsonDocument, flow: Flow): void {
  const [name, value] = stageOf(stage)
  within(stage, name, () => {
    const found = STAGES.get(name)
    if (!found) throw refusedStage(name, reasonAgainst(name), suggested(name, STAGES.keys(), HINT))
    needVersion('stage', name, flow.whole.exposed)
    flow.stage(() => found.read(value, flow))
    if (found.holds !== 'as read') flow.held.stage(found.holds)
    if (!found.isStreaming) flow.gather()
  })
}

const HINT = `Allowed stages: ${STAGE_NAMES.join(' ')}.`

const REASONS: readonly (readonly [string, string])[] = [
  ['it writes to the database', '$out $merge'],
  [
    'it reveals things that are not exposed',
    '$collStats $indexStats $planCacheStats $listCatalog $listClusterCatalog $listSearchIndexes $shardedDataDistribution',
  ],
  [
    'it reveals facts about the server and other users',
    '$currentOp $listSessions $listLocalSessions $listCachedAndActiveUsers $listSampledQueries $queryStats $listQueryKnobs $listMqlEntities $operationMetrics $backupCursor $backupCursorExtend',
  ],
  ['it never ends, and it bypasses the exposure', '$changeStream $changeStreamSplitLargeEvent'],
  ['it must be the first stage, where it reads fields that are not exposed', '$geoNear'],
  [
    'it reads indexes or documents that the exposure does not cover',
    '$search $searchBeta $searchMeta $vectorSearch $rankFusion $scoreFusion $score $setMetadata',
  ],
  ['it reads no collection', '$documents $queue $mergeCursors'],
]

function reasonAgainst(name: string): string | null {
  if (name.startsWith('$_')) return 'it is internal to the server'
  const known = REASONS.find(([, names]) => names.split(' ').includes(name))
  return known?.[0] ?? null
}

function match(value: Bson, flow: Flow): void {
  flow.out.push({ $match: filter(value, flow.scope).printed })
}

function sort(value: Bson, flow: Flow): void {
  if (!isDocument(value)) throw new Broken('$sort takes an object of fields')
  flow.out.push({ $sort: sortSpecOf('$sort', value, flow.scope).printed })
}

function sample(value: Bson, flow: Flow): void {
  const { size } = fieldsOf('$sample', value, ['size'], [])
  flow.out.push({ $sample: { size: wholeOf('$sample', size, 0) } })
}

function unwind(value: Bson, flow: Flow): void {
  const read =
    typeof value === 'string'
      ? { path: value }
      : fieldsOf('$unwind', value, ['path'], ['includeArrayIndex', 'preserveNullAndEmptyArrays'])
  const path = textOf('$unwind', read['path'])
  if (!path.startsWith('$') || path.startsWith('$$')) throw new Broken('$unwind takes a path, which starts with one $')
  resolve(path.slice(1), flow.scope)
  const { includeArrayIndex: index, preserveNullAndEmptyArrays: preserve }: BsonDocument = read
  const stage = {
    $unwind: {
      path,
      ...(index === undefined ? {} : { includeArrayIndex: outputPath('$unwind', textOf('$unwind', index)).join('.') }),
      ...(preserve === undefined ? {} : { preserveNullAndEmptyArrays: booleanOf('$unwind', preserve) }),
    },
  }
  const components = path.slice(1).split('.')
  const array = valueAt(flow.shape, components)
  flow.whole.unwinds.set(stage, array.usual)
  flow.out.push(stage)
  const known = find(flow.shape, components)
  if (known.isNamed) flow.set('$unwind', [[path.slice(1), unwound(known.shape, anyOf(array))]])
  else loosenTop(components[0] ?? '', flow)
  if (typeof index === 'string') flow.set('$unwind', [[index, WHOLE]])
}

function unwound(shape: Shape, element: Extent): Shape {
  // An array of objects has become one object, so its fields stay known.
  return {
    ...shape,
    ...shapeWith({ ...element, usual: 1 }),
    kids: shape.kids,
    open: shape.open,
    cut: shape.cut,
  }
}

/** Somewhere in the field, $unwind has replaced an array by one of its elements. So less is known about the field. */
function loosenTop(name: string, flow: Flow): void {
  const shape = flow.shape.kids?.get(name)
  if (shape?.extent !== undefined)
    flow.set('$unwind', [[name, { ...shape, extent: { ...STORED, usual: shape.extent.usual } }]])
}

function replace(name: '$replaceRoot' | '$replaceWith', value: Bson | undefined, flow: Flow): void {
  const { scope } = flow
  const { printed, shape } = computed(value, scope)
  flow.out.push(name === '$replaceRoot' ? { $replaceRoot: { newRoot: printed } } : { $replaceWith: printed })
  checkWeight(shape)
  flow.shape = asDocument(shape)
  flow.columns = isDocument(value) && flow.shape.kids !== null ? [...flow.shape.kids.keys()] : []
}

function redact(value: Bson, flow: Flow): void {
  const { scope } = flow
  const print = (own: Scope): void =>
    void flow.out.push({ $redact: computed(value, { ...own, redacting: true }).printed })
  // $$DESCEND applies the expression to every nested object, which has other fields.
  if (!mentions(value, '$$DESCEND')) return print(scope)
  const { bytes } = valueAt(flow.shape, [])
  const objects = { items: plus(1, scaled(bytes, 1 / OBJECT_LEAST)), bytes: scaled(bytes, LEVELS) }
  const part = scope.meter.element()
  const own = { ...scope, part, shape: { ...scope.shape, open: true } }
  scope.meter.loop(objects, part, () => print(own))
}

/** The minimum bytes of an object inside another object. */
const OBJECT_LEAST = 8
/**
 * Objects are assumed to be nested at most this deep. The bytes of a nested object count again in each enclosing
 * object.
 */
const LEVELS = 20

function mentions(value: Bson, text: string): boolean {
  if (isArray(value)) return value.some((element) => mentions(element, text))
  return isDocument(value) ? Object.values(value).some((below) => mentions(below, text)) : value === text
}

function facet(value: Bson, flow: Flow): void {
  if (!isDocument(value) || Object.keys(value).length === 0) throw new Broken('$facet takes an object of pipelines')
  const branches = Object.entries(value)
  if (branches.length > BRANCHES_MAX) throw refusedLimit('$facet', `$facet has more than ${BRANCHES_MAX} branches`)
  const printed: Record<string, Bson> = {}
  const shapes = new Map<string, Shape>()
  const held: Held[] = []
  for (const [name, pipeline] of branches) {
    checkName('$facet', name)
    const stages = checkStages(pipeline, flow.whole)
    const inner = new Flow(flow.whole, flow.variables, true, [], flow.barrier, flow.shape, flow.columns, {
      isRead: false,
      size: flow.size,
    })
    for (const stage of stages) {
      if (stageOf(stage)[0] === '$facet')
        throw refusedStage(
          '$facet',
          'it cannot be inside another $facet',
          'Put the branches side by side in one $facet.',
        )
      confineStage(stage, inner)
    }
    printed[name] = inner.out
    held.push(inner.held)
    shapes.set(name, { ...WHOLE, extent: { ...STORED, usual: GATHERED } })
  }
  flow.held.facet(held)
  flow.out.push({ $facet: printed })
  flow.shape = closed(shapes)
  flow.columns = branches.map(([name]) => name)
}
