// Confines the accumulators of $group, $bucket and $bucketAuto, and the operators of $setWindowFields. An extent is
// what is known about a value (value-size.ts).
import { fieldsOf, operatorOf, textOf } from '../body/read-arguments.ts'
import { reasonAgainst, type Fields } from '../allowed/expression-list.ts'
import { computed } from './computed-value.ts'
import { constant, plus, scaled } from '../bounds/amount.ts'
import { collatedKeySteps, hashedSteps, keySteps } from '../bounds/operator-steps.ts'
import { anyOf, gatheredList, largest, list, object, SMALL, STORED, type Extent } from '../bounds/value-size.ts'
import { numberOf } from '../body/parse-ejson.ts'
import { GATHERED, isArray, isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { Broken, refusedOperator, shown } from '../refusals/refusal.ts'
import { needVersion, type Scope } from '../documents/scope.ts'
import { sortSpecOf } from './sort-spec.ts'
import { suggested } from '../refusals/suggestions.ts'

type Form = 'expression' | 'nothing' | 'sorted' | Fields

/**
 * How often mongod reads the value of each document as a whole, to copy, compare or hash it. `n` is the argument n, or
 * undefined if it is computed.
 */
type Reads = (n: number | undefined) => number

interface Operator {
  readonly form: Form
  readonly reads: Reads
}

/** Keeps a value, or adds it to a sum. */
const kept: Reads = () => 1
/** Compares each value with the value kept so far. */
const compared: Reads = () => 2
/** Looks up each value, or each element of it, in a set. */
const inSet: Reads = () => 4
/** Compares each value with some of the n values kept so far. */
const amongN: Reads = (n = N_UNKNOWN) => 2 + Math.log2(Math.max(1, n) + 1)
const N_UNKNOWN = 2 ** 16

/** The steps for each output and each document, without the values. */
const OUTPUT_STEPS = 2
/** The steps to make the sort key of $top and similar operators, and the steps for each of its fields. */
const SORT_KEY_STEPS = 10
const SORT_FIELD_STEPS = 10
const AREA_STEPS = 20

const INPUT_N: Fields = { needed: ['input', 'n'], optional: [] }

const each = (names: string, form: Form, reads: Reads): [string, Operator][] =>
  names.split(' ').map((name) => [name, { form, reads }])

const SHARED: readonly (readonly [string, Operator])[] = [
  ...each('$avg $concatArrays $first $last $mergeObjects $push $stdDevPop $stdDevSamp $sum', 'expression', kept),
  ...each('$max $min', 'expression', compared),
  ...each('$addToSet $setUnion', 'expression', inSet),
  ...each('$count', 'nothing', kept),
  ...each('$top $bottom', 'sorted', kept),
  ...each('$topN $bottomN', 'sorted', amongN),
  ...each('$firstN $lastN', INPUT_N, kept),
  ...each('$maxN $minN', INPUT_N, amongN),
  ...each('$median', { needed: ['input', 'method'], optional: [] }, kept),
  ...each('$percentile', { needed: ['input', 'p', 'method'], optional: [] }, kept),
]

const ACCUMULATORS: ReadonlyMap<string, Operator> = new Map(SHARED)

const WINDOW: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ...SHARED,
  ...each('$covariancePop $covarianceSamp $linearFill $locf', 'expression', kept),
  ...each('$denseRank $documentNumber $rank', 'nothing', kept),
  ...each('$derivative $integral', { needed: ['input'], optional: ['unit'] }, kept),
  ...each('$expMovingAvg', { needed: ['input'], optional: ['N', 'alpha'] }, kept),
  ...each('$shift', { needed: ['output', 'by'], optional: ['default'] }, kept),
  ...each('$minMaxScaler', { needed: ['input'], optional: ['min', 'max'] }, compared),
])

export const [ACCUMULATOR_NAMES, WINDOW_NAMES]: readonly [readonly string[], readonly string[]] = [
  [...ACCUMULATORS.keys()],
  [...WINDOW.keys()],
]

/**
 * In a window, an operator that orders values compares each value when it enters the window, and again when it leaves.
 */
const WINDOW_READS = 8
/** In a window, $top and similar operators put a sort key into a tree, which takes longer by this factor. */
const WINDOW_KEYS = 1.5

export interface Accumulated {
  /** For example {$sum: …}. */
  readonly printed: BsonDocument
  /** What is known about the value for one group or window. */
  readonly extent: Extent
  /** Set if the length of the value grows with the number of documents, so that it may need a length check. */
  readonly gathers: 'array' | 'object' | null
  /** True if the accumulated values are stored, and not computed by the query. */
  readonly isStored: boolean
}

/** Throws Broken if the accumulator is malformed, and Refusal if it is not allowed. */
export function accumulator(of: string, value: Bson, scope: Scope): Accumulated {
  const operator = operatorOf(value)
  if (operator === null) throw refusedShape(of, value)
  const found = operand('accumulator', ACCUMULATORS, operator, scope)
  const { isStored } = found
  return { printed: { [operator[0]]: found.printed }, isStored, ...gathered(operator, found.extents, GATHERED) }
}

const ONE_OF = new Set('$first $last $max $min $top $bottom $locf $shift'.split(' '))
const MANY_OF = new Set('$addToSet $push $topN $bottomN $firstN $lastN $maxN $minN'.split(' '))

/** `usual` is the number of documents that $unwind makes of an array with one value for each document. */
function gathered(
  [name, value]: readonly [string, Bson],
  extents: readonly Extent[],
  usual: number,
): Pick<Accumulated, 'extent' | 'gathers'> {
  const each = largest(extents)
  if (ONE_OF.has(name)) return { extent: each, gathers: null }
  if (MANY_OF.has(name)) {
    const n = numberOf(isDocument(value) ? value['n'] : undefined)
    // The cost estimate does not lower the number of documents at a $group. So if each group has few values, this
    // counts as one.
    const few = usual === GATHERED ? 1 : usual
    if (n !== undefined && n <= FEW)
      return { extent: list(each, constant(n), Math.max(1, Math.min(n, few))), gathers: null }
    return { extent: gatheredList(each, usual), gathers: 'array' }
  }
  // If all names are constant, the merged object has only these fields. Otherwise, each document may add a field.
  if (name === '$mergeObjects')
    return each.fields === null ? { extent: STORED, gathers: 'object' } : { extent: object(each.fields), gathers: null }
  if (name === '$concatArrays' || name === '$setUnion')
    return { extent: gatheredList(anyOf(each), usual * each.usual), gathers: 'array' }
  return { extent: name === '$percentile' ? list(SMALL, each.items) : SMALL, gathers: null }
}

/** An array of at most this many elements needs no length check. */
const FEW = 100

export interface Windowed extends Accumulated {
  /** True if mongod may read all documents of the partition to compute the first value. */
  readonly readsAhead: boolean
  /** True if the values may have the same hash. mongod then compares each value with all previous values. */
  readonly compares: boolean
}

const ONE_BY_ONE = new Set('$denseRank $documentNumber $expMovingAvg $locf $rank $shift'.split(' '))
/** A window that reads only this many documents ahead counts as if it read none ahead. */
const FEW_AHEAD = 100

/** True if the window of a document ends at that document or at most FEW_AHEAD documents later. */
function isNear(window: Bson | undefined): boolean {
  const { documents }: BsonDocument = isDocument(window) ? window : {}
  const last = isArray(documents) ? documents[1] : undefined
  return last === 'current' || (numberOf(last) ?? Infinity) <= FEW_AHEAD
}

/** True if all documents of a partition have the same window. */
function isFull(name: string, window: Bson | undefined): boolean {
  if (window === undefined) return !ONE_BY_ONE.has(name)
  const { documents }: BsonDocument = isDocument(window) ? window : {}
  return isArray(documents) && documents.every((end) => end === 'unbounded')
}

export function windowOperator(value: Bson, scope: Scope, sortKeys: number): Windowed {
  if (!isDocument(value)) throw new Broken('$setWindowFields takes an object for each output')
  const { window, ...rest } = value
  const operator = operatorOf(rest)
  if (operator === null) throw refusedShape('$setWindowFields', rest)
  const [name] = operator
  if ((name === '$rank' || name === '$denseRank') && sortKeys !== 1) {
    throw new Broken(`${name} needs a sortBy with exactly one field`)
  }
  const found = operand('window', WINDOW, operator, scope, isFull(name, window))
  const printed = { [name]: found.printed, ...(window === undefined ? {} : { window: frame(window) }) }
  const { isStored, extents } = found
  const isBounded = isStored || extents.every(({ number }) => number !== null)
  return {
    printed,
    isStored,
    ...gathered(operator, extents, documentsIn(window)),
    readsAhead: !ONE_BY_ONE.has(name) && !isNear(window),
    compares: (name === '$addToSet' || name === '$setUnion') && !isBounded,
  }
}

/**
 * The limit on the elements of all arrays that windows gather for one document. mongod copies them for each document,
 * which takes 160 ns for an element. The newest engine checks for a cancel every 128 documents, so 20,000 elements take
 * 0.4 s.
 */
export const WINDOW_ELEMENTS = 20_000

function documentsIn(window: Bson | undefined): number {
  const { documents }: BsonDocument = isDocument(window) ? window : {}
  const [first, last] = isArray(documents) ? documents.map((end) => (end === 'current' ? 0 : numberOf(end))) : []
  return first === undefined || last === undefined ? WINDOW_ELEMENTS : Math.max(1, last - first + 1)
}

function refusedShape(of: string, value: Bson): Error {
  const names = isDocument(value) ? Object.keys(value).filter((name) => name.startsWith('$')) : []
  const denied = names.find((name) => !ACCUMULATORS.has(name) && !WINDOW.has(name))
  if (denied !== undefined)
    return refusedOperator(denied, reasonAgainst(denied), suggested(denied, ACCUMULATORS.keys(), hint(ACCUMULATORS)))
  return new Broken(`${of} takes one accumulator for each output, such as {"$sum": 1}`)
}

function hint(list: ReadonlyMap<string, Operator>): string {
  return `Allowed here: ${[...list.keys()].sort().join(' ')}.`
}

interface Operand {
  readonly printed: Bson
  readonly extents: readonly Extent[]
  readonly isStored: boolean
}

function operand(
  vocabulary: 'accumulator' | 'window',
  operators: ReadonlyMap<string, Operator>,
  [name, value]: readonly [string, Bson],
  scope: Scope,
  isFull = false,
): Operand {
  const found = operators.get(name)
  if (found === undefined)
    throw refusedOperator(name, reasonAgainst(name), suggested(name, operators.keys(), hint(operators)))
  needVersion(vocabulary, name, scope.exposed)
  const { form, reads } = found
  const n = numberOf(isDocument(value) ? value['n'] : undefined)
  const isOrdered = form === 'sorted' || reads === compared || reads === amongN
  const isMoving = vocabulary === 'window' && !isFull
  const times = reads(n) * (isMoving && isOrdered ? WINDOW_READS : 1)
  scope.meter.step(name === '$integral' ? AREA_STEPS : OUTPUT_STEPS)
  if (form === 'nothing') {
    fieldsOf(name, value, [], [])
    return { printed: {}, extents: [], isStored: false }
  }
  if (form === 'expression') {
    const made = one(value, scope, { times, compares: reads !== kept })
    if (name === '$setUnion') scope.meter.step(plus(...made.extents.map(hashedSteps)))
    return made
  }
  if (form === 'sorted') return sorted(name, value, scope, { times, keys: isMoving ? WINDOW_KEYS : 1 })
  const printed: Record<string, Bson> = {}
  const extents: Extent[] = []
  for (const [field, below] of Object.entries(fieldsOf(name, value, form.needed, form.optional))) {
    const made = one(below, scope, { times, compares: reads !== kept })
    printed[field] = made.printed
    extents.push(...made.extents)
  }
  return { printed, extents, isStored: false }
}

/** Counts `times` reads of the whole value. `compares` is true if these reads are comparisons. */
function one(
  value: Bson | undefined,
  scope: Scope,
  { times, compares }: { readonly times: number; readonly compares: boolean },
): Operand {
  const { printed, extent, shape } = computed(value, scope)
  const { meter } = scope
  meter.step(scaled(keySteps(extent), times))
  if (compares) meter.compareKept(scaled(collatedKeySteps(extent, meter.collation), times))
  return { printed, extents: [extent], isStored: shape.isStored === true }
}

/**
 * Confines $top and similar operators. mongod compares the sort key of each document `times` times. The steps in which
 * it makes the key count `keys` times.
 */
function sorted(
  name: string,
  value: Bson,
  scope: Scope,
  { times, keys }: { readonly times: number; readonly keys: number },
): Operand {
  const many = name.endsWith('N')
  const { sortBy, output, n } = fieldsOf(name, value, many ? ['sortBy', 'output', 'n'] : ['sortBy', 'output'], [])
  if (!isDocument(sortBy)) throw new Broken(`${name} takes an object for sortBy`)
  scope.meter.step(keys * (SORT_KEY_STEPS + SORT_FIELD_STEPS * Object.keys(sortBy).length))
  const made = one(output, scope, { times: 1, compares: false })
  const printed = {
    sortBy: sortSpecOf(name, sortBy, scope, times).printed,
    output: made.printed,
    ...(many ? { n: computed(n, scope).printed } : {}),
  }
  return { printed, extents: made.extents, isStored: false }
}

function frame(window: Bson): Bson {
  const { documents, range, unit } = fieldsOf('window', window, [], ['documents', 'range', 'unit'])
  return {
    ...(documents === undefined ? {} : { documents: bounds(documents) }),
    ...(range === undefined ? {} : { range: bounds(range) }),
    ...(unit === undefined ? {} : { unit: textOf('unit', unit) }),
  }
}

export function bounds(value: Bson): Bson {
  if (!isArray(value) || value.length !== 2) throw new Broken('a window takes two bounds, [lower, upper]')
  for (const bound of value) {
    if (typeof bound === 'string' && !['current', 'unbounded', 'full', 'partition'].includes(bound)) {
      throw new Broken(`${shown(bound)} is not a bound`)
    }
    if (isArray(bound) || isDocument(bound)) throw new Broken('a bound must be a number or a string')
  }
  return value
}
