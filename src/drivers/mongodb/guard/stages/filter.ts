// Confines filters. Operators must be on the list, every path is looked up, values are literals, and the filter is
// printed again. This file also decides whether a filter can run before the projection, because there it can use
// indexes (docs/guard/mongodb.md#how-it-is-confined). A step is a unit of work in the database, about 50 ns
// (step-meter.ts).
import { arrayOf, fieldsOf, textOf, wholeOf } from '../body/read-arguments.ts'
import { reasonAgainst } from '../allowed/expression-list.ts'
import { computed } from '../expressions/computed-value.ts'
import { numberOf } from '../body/parse-ejson.ts'
import { literal } from '../body/literal.ts'
import { within } from '../refusals/error-place.ts'
import { isArray, isDocument, partsIn, Scalar, type Bson, type BsonDocument } from '../../confined-query.ts'
import { Broken, refusedLimit, refusedOperator } from '../refusals/refusal.ts'
import { constant, NONE, plus, product, scaled, type Amount, sizeOf } from '../bounds/amount.ts'
import { valuesFound, type Extent, isStored, longestAt } from '../bounds/value-size.ts'
import { DOCUMENT_MAX, worstOf } from '../bounds/measured-work.ts'
import {
  BYTE_STEPS,
  comparedWith,
  COMPARISON_STEPS,
  mostOf,
  NO_TEXT,
  readByCollation,
  sumOf,
  textsOf as textsOfValue,
  type Compared,
} from '../bounds/collation.ts'
import { Conjunction, type Meter, type Planned } from '../bounds/step-meter.ts'
import { searchSteps, STEP_READS } from '../bounds/operator-steps.ts'
import { parsePattern, WORK_EACH, type ParsedPattern } from '../body/pattern-tree.ts'
import { hold, locate, type Located, type Scope } from '../documents/scope.ts'
import { isPlace, valueAt } from '../documents/document-shape.ts'
import { suggested } from '../refusals/suggestions.ts'

const LIST_MAX = 2000

export interface Filter {
  readonly printed: BsonDocument
  /**
   * True if the whole filter may run before the projection. It has only exposed paths, no array index and no $expr, and
   * needs few enough steps. It matches the same documents as after the projection.
   */
  readonly hoistable: boolean
  /**
   * The top-level conditions that may run before the projection. Every document that matches the filter also matches
   * them.
   */
  readonly early: BsonDocument
}

interface Walk {
  readonly scope: Scope
  hoistable: boolean
  /**
   * The additional steps of a condition that runs after the projection. Only there can the query have computed the
   * tested value.
   */
  computed: Amount
  /** The additional steps of a condition that runs before the projection, for stored texts that a collation reads. */
  trusted: number
  readonly planned: Plan
}

/** Counts the parts of a condition while it is confined. */
interface Plan extends Planned {
  all: Conjunction
  readonly alternatives: number[]
  readonly branches: number[]
  readonly paths: Set<string>
  choices: number
  chosen: number
  /** The tests so far, and the values in their lists. */
  tests: number
  values: number
}

/** The steps that all filters before the projection may still take for one document. */
export interface EarlySteps {
  left: number
}

/** The steps that all conditions before the projection may take together for one document, whatever its size. */
export const EARLY_STEPS_MAX = 24_000_000

/**
 * `early` has the steps that conditions before the projection may still take. If it is null, the whole filter must run
 * after the projection. Throws Broken if the filter is malformed, and Refusal if it is not allowed.
 */
export function filter(value: Bson | undefined, scope: Scope, early: EarlySteps | null = null): Filter {
  const printed: Record<string, Bson> = {}
  const first: Record<string, Bson> = {}
  let hoistable = true
  const all = documentOf(value)
  for (const [name, below] of Object.entries(all)) {
    if (name === '$comment') continue
    const planned: Plan = {
      all: new Conjunction(),
      alternatives: [],
      branches: [],
      paths: new Set(),
      tests: 0,
      values: 0,
      choices: 0,
      chosen: 0,
    }
    const walk: Walk = { scope, hoistable: true, computed: NONE, trusted: 0, planned }
    const [, { steps }] = scope.meter.workOf(() => {
      printed[name] = within(all, name, () => conditionOf(name, below, '', walk))
    })
    const most = worstOf(steps, DOCUMENT_MAX) + walk.trusted
    // A condition that may take too many steps runs later, after mongod has measured the document.
    const isEarly = walk.hoistable && early !== null && most <= early.left
    if (isEarly) {
      first[name] = printed[name] ?? null
      early.left -= most
    } else {
      hoistable = false
      scope.meter.step(walk.computed)
    }
    // A condition that cannot run before the projection is confined again after it, and is counted then.
    if (isEarly || early === null) within(all, name, () => scope.meter.plan(all, name, planned))
  }
  return { printed, hoistable, early: first }
}

function documentOf(value: Bson | undefined): BsonDocument {
  if (!isDocument(value)) throw new Broken('a filter must be an object')
  return value
}

/** Inside an $elemMatch, `above` is the path of the array with a dot at its end. Elsewhere it is empty. */
function conditions(value: Bson | undefined, above: string, walk: Walk): BsonDocument {
  const printed: Record<string, Bson> = {}
  const all = documentOf(value)
  for (const [name, below] of Object.entries(all)) {
    if (name === '$comment') continue
    printed[name] = within(all, name, () => conditionOf(name, below, above, walk))
  }
  return printed
}

function conditionOf(name: string, below: Bson, above: string, walk: Walk): Bson {
  if (name === '$and' || name === '$or' || name === '$nor') {
    const { planned } = walk
    const { tests, values, chosen } = planned
    const all = alternatives(name, below)
    const isCompared = name === '$or' && !isOneList(all, walk.scope)
    const confined = (branch: Bson): BsonDocument => {
      const before = planned.values
      const printed = conditions(branch, above, walk)
      if (isCompared && isAlone(branch)) {
        planned.alternatives.push(planned.values - before)
        if (hasArray(branch)) planned.branches.push(1)
      }
      return printed
    }
    const branches = isCompared ? either(all, planned, confined) : all.map(confined)
    // mongod rewrites a $nor of one branch to $not, and an $or inside the $nor to $in.
    if (name === '$nor') planned.all.exclude(planned.values - values)
    if (name === '$or' && branches.length > 1) {
      planned.choices++
      planned.chosen = chosen + planned.tests - tests
    }
    return branches
  }
  if (name === '$expr' && above === '') {
    walk.hoistable = false
    const { meter } = walk.scope
    countCompared(below, walk.planned, meter)
    const [{ printed }, { bytes }] = meter.workOf(() => computed(below, walk.scope))
    // mongod computes constant parts before it plans the filter.
    const steps = sortedSteps(meter, { bytes: bytes.constant, marks: 0 })
    walk.planned.all.condition(0, bytes.constant, { steps })
    return printed
  }
  if (name.startsWith('$')) throw refusedName(name)
  return condition(above + name, below, walk)
}

function alternatives(name: string, value: Bson): readonly Bson[] {
  if (!isArray(value)) throw refusedOperator(name, 'it takes an array of filters', `Write {"${name}": [{…}, {…}]}.`)
  if (value.length === 0) throw new Broken(`${name} takes at least one filter`)
  return value
}

/** Reads each branch of an $or. Counts its conditions separately, if there are several branches. */
function either<T>(branches: readonly Bson[], planned: Plan, read: (branch: Bson) => T): readonly T[] {
  if (branches.length < 2) return branches.map(read)
  const { all } = planned
  const apart: Conjunction[] = []
  const made = branches.map((branch) => {
    planned.all = new Conjunction()
    apart.push(planned.all)
    return read(branch)
  })
  planned.all = all
  all.either(apart)
  return made
}

/**
 * Returns whether mongod rewrites an $or to one $in, and plans it as one condition. Otherwise, the planner sorts all
 * values for each branch.
 */
function isOneList(branches: readonly Bson[], { meter }: Scope): boolean {
  const [path, ...others] = new Set(branches.map(equalPath))
  return path !== null && others.length === 0 && !meter.readsSeries
}

/** Returns the path if a condition only compares it with a value that may be in the list of an $in. */
function equalPath(branch: Bson): string | null {
  const [first, ...others] = isDocument(branch) ? Object.entries(branch) : []
  const [path, value] = first ?? []
  if (path === undefined || value === undefined || path.startsWith('$') || others.length > 0) return null
  const isEq = isDocument(value) && Object.keys(value).join() === '$eq'
  const operand = isEq ? (value['$eq'] ?? null) : value
  if (isArray(operand) || (isDocument(operand) && Object.keys(operand).some((name) => name.startsWith('$'))))
    return null
  return isEq && operand instanceof Scalar && operand.of.kind === '$regularExpression' ? null : path
}

/**
 * Returns whether a branch of an $or may be tests of one path for the planner, which merges such branches. mongod drops
 * tests that are always true, so only tests count here that it cannot drop.
 */
function isAlone(branch: Bson): boolean {
  const tests = new Map<string, Set<string>>()
  findTests(branch, tests)
  const [names = new Set()] = tests.values()
  const isRange = (names.has('$gt') || names.has('$gte')) && (names.has('$lt') || names.has('$lte'))
  return tests.size < 2 && !isRange
}

/** Returns whether a branch of an $or compares a path with an array. */
function hasArray(branch: Bson): boolean {
  return Object.entries(isDocument(branch) ? branch : {}).some(([path, value]) => {
    if (path === '$and') return isArray(value) && value.some(hasArray)
    const isList = ([name, operand]: readonly [string, Bson]): boolean => name !== '$in' && isArray(operand)
    return isArray(value) || (isDocument(value) && Object.entries(value).some(isList))
  })
}

/** Adds the names of the tests of each path to `found`. */
function findTests(branch: Bson, found: Map<string, Set<string>>): void {
  for (const [path, value] of Object.entries(isDocument(branch) ? branch : {})) {
    if (path === '$and' && isArray(value)) for (const each of value) findTests(each, found)
    if (path.startsWith('$')) continue
    const operators = isDocument(value) ? Object.entries(value).filter(([name]) => name.startsWith('$')) : []
    const names = operators.length > 0 ? operators.filter(isKept).map(([name]) => name) : ['$eq']
    if (names.length > 0) found.set(path, new Set([...(found.get(path) ?? []), ...names]))
  }
}

/** Returns false if the test may be true for all values. An empty $in or $all is always false. */
function isKept([name, operand]: readonly [string, Bson]): boolean {
  if (name === '$options') return false
  if (name === '$nin') return isArray(operand) && operand.length > 0
  if (name === '$not') return !isDocument(operand) || Object.entries(operand).every((test) => isPlain(test))
  return !(operand instanceof Scalar && (operand.of.kind === '$minKey' || operand.of.kind === '$maxKey'))
}

/** Returns whether a value may pass the test, and another value may fail it. */
function isPlain([name, operand]: readonly [string, Bson]): boolean {
  if (name === '$in') return isArray(operand) && operand.length > 0
  return (COMPARISONS.has(name) || name === '$regex') && isKept([name, operand])
}

const COMPARISONS = new Set(['$eq', '$gt', '$gte', '$lt', '$lte'])

/**
 * Counts the comparisons and the $or in an $expr. mongod makes conditions of them, even of those inside a $cond that it
 * replaces by one of its parts.
 */
function countCompared(value: Bson, planned: Plan, meter: Meter): void {
  if (isArray(value)) for (const each of value) countCompared(each, planned, meter)
  if (!isDocument(value)) return
  for (const [name, below] of Object.entries(value)) {
    if (COMPARISONS.has(name) || name === '$in') {
      const values = name === '$in' ? listed(below) : 1
      planned.tests++
      planned.alternatives.push(values)
      if (values > 1 && meter.readsSeries) countRewritten(values, planned)
      else
        planned.all.condition(values, bytesIn(below), {
          steps: sortedSteps(meter, textsIn(below)),
        })
    }
    const { tests, chosen } = planned
    if (name === '$or' && isArray(below)) either(below, planned, (branch) => countCompared(branch, planned, meter))
    else if (name !== '$literal') countCompared(below, planned, meter)
    if (name === '$or' && isArray(below) && below.length > 1) {
      planned.choices++
      planned.chosen = chosen + planned.tests - tests
    }
  }
}

/** Returns whether mongod can compute the expression before it reads a document. */
function readsNothing(expression: Bson): boolean {
  if (typeof expression === 'string') return !expression.startsWith('$')
  return partsIn(expression).every(readsNothing)
}

/** Returns the length of the list of an $in: 1 if it is computed for each document, and LIST_MAX for a computed constant. */
function listed(args: Bson): number {
  const list = isArray(args) ? args[1] : undefined
  const values = isDocument(list) && '$literal' in list ? list['$literal'] : list
  if (isArray(values)) return values.length
  return isDocument(values) && readsNothing(values) ? LIST_MAX : 1
}

const HINT =
  'Filter operators: $eq $ne $gt $gte $lt $lte $in $nin $exists $type $mod $regex $options $all $elemMatch $size $not $bitsAllClear $bitsAllSet $bitsAnyClear $bitsAnySet $geoWithin $geoIntersects; at the top also $and $or $nor $expr.'

const OPERATORS =
  '$eq $ne $gt $gte $lt $lte $in $nin $exists $type $mod $regex $options $all $elemMatch $size $not $bitsAllClear $bitsAllSet $bitsAnyClear $bitsAnySet $geoWithin $geoIntersects $and $or $nor $expr'.split(
    ' ',
  )

function refusedName(name: string): Error {
  return refusedOperator(name, reasonAgainst(name), suggested(name, OPERATORS, HINT))
}

/** Counts `times` tests of each value at the path, and the regular expressions. */
function countTests(
  found: Located,
  walk: Walk,
  { times = 1, patterns = [], texts = NO_TEXTS, conditions = 1, isRewritten = false }: Tests,
): void {
  const { meter } = walk.scope
  walk.planned.tests += conditions
  walk.planned.values += texts.count
  const steps = sortedSteps(meter, texts.total)
  if (isRewritten) countRewritten(texts.count, walk.planned)
  else walk.planned.all.condition(texts.count, texts.size, { steps, conditions })
  const tested = measuredAt(found, walk)
  const { bytes, isSingle } = tested
  const indexes = found.components.filter((name, n) => n > 0 && isPlace(name)).length
  if (indexes > INDEXES_MAX)
    throw refusedLimit(
      'array indexes',
      `a path has ${indexes} array indexes; the limit is ${INDEXES_MAX}`,
      'Compare elements in $expr with $arrayElemAt.',
    )
  const values = isSingle ? constant(1) : plus(1, valuesFound(tested, found.components))
  // mongod reads an array index as the index of an element and as a name, so each index doubles the steps.
  meter.step(scaled(values, times * 2 ** indexes))
  countCollated(tested, values, texts, walk)
  const isMeasured = !isSingle && tested.place !== null && isStored(tested.place)
  const longest = isMeasured ? sizeOf(longestAt(tested.place)) : bytes
  for (const pattern of patterns) {
    meter.work.spend(WORK_EACH * pattern.length)
    meter.step(
      plus(
        pattern.compiling,
        pattern.folding,
        scaled(values, PATTERN_STEPS),
        searchSteps(pattern, { bytes, longest, run: longest, starts: values }),
      ),
    )
  }
}

/** The conditions of a branch of the $or. A measurement needs two, and the time needs six. */
const CONDITIONS_REWRITTEN = 6

/** Counts the $in of a query that reads a time series as the $or to which mongod rewrites it. */
function countRewritten(values: number, planned: Plan): void {
  const conditions = CONDITIONS_REWRITTEN * values
  planned.choices++
  planned.tests += conditions
  planned.chosen += conditions
  planned.all.rewritten(values)
}

/** Returns the steps to read texts of the query once by the collation, if there is one. */
function sortedSteps({ collation }: Meter, { bytes, marks }: Pick<Compared, 'bytes' | 'marks'>): number {
  return collation === null ? 0 : bytes * BYTE_STEPS + marks
}

/**
 * A collation may ignore characters. A comparison then reads a whole text of the query for each of the `values`. If the
 * query has computed the other text, the comparison reads that text as a whole too, however short the first text is.
 */
function countCollated(tested: Extent, values: Amount, { count, rounds, longest, total }: Texts, walk: Walk): void {
  const { meter } = walk.scope
  const { bytes, ignored, marks } = longest
  if (meter.collation === null || bytes === 0) return
  // When mongod parses the query, it sorts the list.
  const parsed = count * COMPARISON_STEPS + total.ignored * BYTE_STEPS + total.marks
  meter.step(Math.log2(count + 1) * parsed)
  if (marks > 0) meter.step(scaled(values, rounds * marks))
  const perByte = rounds * BYTE_STEPS
  const share = Math.max((bytes + ignored) / (bytes + TEXT_IN_ARRAY), ignored / TEXT_IN_ARRAY)
  meter.step(tested.isSingle ? perByte * (bytes + ignored) : scaled(tested.bytes, perByte * share))
  walk.trusted += perByte * TRUSTED
  walk.computed = plus(walk.computed, scaled(readByCollation(textsOfValue(tested), meter.collation), rounds))
}

/** The bytes of a text in an array, besides its characters. */
const TEXT_IN_ARRAY = 8
/** The bytes of ignored characters in a stored text. Stored texts are trusted to have no more. */
const TRUSTED = 65_536

/** The texts of the query with which a test compares each value. */
interface Texts {
  readonly count: number
  /** The approximate size of all values. */
  readonly size: number
  /** The number of texts that are compared with one value. */
  readonly rounds: number
  readonly longest: Compared
  readonly total: Compared
}

const NO_TEXTS: Texts = { count: 0, size: 0, rounds: 0, longest: NO_TEXT, total: NO_TEXT }

function textsOf(name: string, operand: Bson): Texts {
  const isList = isArray(operand) && LISTS.has(name)
  const each = isList ? operand.map(textsIn) : [textsIn(operand)]
  const count = each.length
  const rounds = name === '$all' ? count : isList ? Math.log2(count + 2) : 1
  const size = bytesIn(operand)
  return { count, size, rounds, longest: each.reduce(mostOf, NO_TEXT), total: each.reduce(sumOf, NO_TEXT) }
}

const LISTS = new Set(['$in', '$nin', '$all'])

function textsIn(value: Bson): Compared {
  if (typeof value === 'string') return comparedWith(value)
  const parts = partsIn(value)
  return parts.map(textsIn).reduce(sumOf, NO_TEXT)
}

/** An expression cannot contain an array index, so the whole array counts as tested. */
function measuredAt({ components }: Located, { scope }: Walk): Extent {
  const end = components.findIndex(isPlace)
  return valueAt(scope.shape, end === -1 ? components : components.slice(0, end))
}

interface Tests {
  readonly times?: number
  readonly patterns?: readonly ParsedPattern[]
  readonly texts?: Texts
  /** The number of conditions that mongod makes of the test. */
  readonly conditions?: number
  /** True if mongod rewrites the test to an $or. */
  readonly isRewritten?: boolean
}

const PATTERN_STEPS = 3
const INDEXES_MAX = 3

/** Returns the approximate size of a value of the query. */
function bytesIn(value: Bson): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (isArray(value)) return value.reduce<number>((all, each) => all + bytesIn(each), 0)
  if (value instanceof Scalar && value.of.kind === '$binary') return value.of.base64.length
  if (!isDocument(value)) return 8
  return Object.entries(value).reduce((all, [name, each]) => all + Buffer.byteLength(name) + 2 + bytesIn(each), 0)
}

function condition(path: string, value: Bson, walk: Walk): Bson {
  const found = locate(path, walk.scope)
  walk.planned.paths.add(path)
  const operators = isDocument(value) && Object.keys(value).some((name) => name.startsWith('$'))
  if (operators) return tests(path, value, found, walk)
  markPath(found, walk)
  countTests(found, walk, { times: comparing(value), patterns: patternsOf(value), texts: textsOf('$eq', value) })
  return compared(value, found, walk)
}

function patternsOf(operand: Bson, name = '', options = ''): readonly ParsedPattern[] {
  if (isArray(operand)) return operand.flatMap((each) => patternsOf(each))
  if (operand instanceof Scalar && operand.of.kind === '$regularExpression')
    return [parsePattern(operand.of.pattern, operand.of.options + options)]
  return name === '$regex' && typeof operand === 'string' ? [parsePattern(operand, options)] : []
}

function markPath(found: Located, walk: Walk): void {
  if (found.kind !== 'whole' || found.numeric) walk.hoistable = false
  hold(found, walk.scope)
}

/** A comparison with null must stay after a projection that shows only a part of an object on the path. */
function compared(value: Bson, found: Located, walk: Walk): Bson {
  if (found.crossed.length > 0 && holdsNull(value)) {
    walk.hoistable = false
    for (const barrier of found.crossed) barrier.raise()
  }
  return literal(value)
}

function holdsNull(value: Bson): boolean {
  if (value === null) return true
  if (value instanceof Scalar) return value.of.kind === '$minKey' || value.of.kind === '$maxKey'
  return isArray(value) && value.some(holdsNull)
}

function tests(path: string, value: BsonDocument, found: Located, walk: Walk): BsonDocument {
  const printed: Record<string, Bson> = {}
  for (const [name, operand] of Object.entries(value)) {
    if (!name.startsWith('$')) {
      throw refusedOperator(
        name,
        'operators and fields of a value cannot be mixed',
        'Write either {"field": {"$operator": …}} or {"field": {"name": value}}.',
      )
    }
    if (name === '$comment') {
      throw refusedOperator(
        name,
        'it does not apply to a field',
        'Put $comment at the top of the filter, or leave it out.',
      )
    }
    const options = typeof value['$options'] === 'string' ? value['$options'] : ''
    printed[name] = within(value, name, () =>
      name === '$elemMatch'
        ? elements(path, operand, found, walk)
        : test({ path, name, operand, options }, found, walk),
    )
    if (name === '$options' && !Object.hasOwn(value, '$regex')) throw new Broken('$options needs a $regex beside it')
  }
  return printed
}

/** `options` are the options of a $regex. */
interface Test {
  readonly path: string
  readonly name: string
  readonly operand: Bson
  readonly options: string
}

function test({ path, name, operand, options: own }: Test, found: Located, walk: Walk): Bson {
  markPath(found, walk)
  // For each array in a list, the planner sorts all intervals again.
  if (name === '$in' && isArray(operand)) walk.planned.all.list(operand.filter(isArray).length)
  // The planner makes an interval between each two excluded values.
  if (name === '$ne') walk.planned.all.exclude(1)
  if (name === '$nin' && isArray(operand)) walk.planned.all.exclude(operand.length)
  countTests(found, walk, {
    times: timesOf(name, operand),
    patterns: patternsOf(operand, name, own),
    texts: textsOf(name, operand),
    conditions: name === '$all' && isArray(operand) ? operand.length : 1,
    isRewritten: name === '$in' && isArray(operand) && operand.length > 1 && walk.scope.meter.readsSeries,
  })
  // mongod parses the stored shape for each test.
  if (name.startsWith('$geo')) {
    const { bytes } = measuredAt(found, walk)
    walk.scope.meter.step(plus(scaled(bytes, CORNER_STEPS), ringSteps(operand)))
    walk.computed = plus(walk.computed, scaled(product(bytes, bytes), 1 / CORNERS_COMPARED))
  }
  switch (name) {
    case '$eq':
    case '$ne':
    case '$gt':
    case '$gte':
    case '$lt':
    case '$lte':
      return compared(operand, found, walk)
    case '$in':
    case '$nin':
      return list(name, operand).map((value) => compared(value, found, walk))
    case '$all':
      return list(name, operand).map((value) => every(path, value, found, walk))
    case '$not':
      return negated(path, operand, found, walk)
    case '$regex':
      return pattern(operand)
    case '$options':
      return options(operand)
    default:
      return plainTest(name, operand)
  }
}

/**
 * The steps for a stored point, which mongod parses for each test. The corners of the query's area are not included.
 */
const POINT_STEPS = 160

/** The steps for each byte of a stored shape. */
const CORNER_STEPS = 2
/**
 * To find crossings, mongod compares each side of a ring with each other side. A pair of sides takes 170 ns, and a
 * corner takes 35 bytes. So a ring of n bytes takes n² / 360 steps.
 */
const CORNERS_COMPARED = 360
const SIDES_STEPS = 3.4
const RING_MAX = 500

/** Returns the steps for the rings of a shape in the query. Throws Refusal if a ring has too many corners. */
function ringSteps(shape: Bson): number {
  if (isDocument(shape)) return Object.values(shape).reduce<number>((all, each) => all + ringSteps(each), 0)
  if (!isArray(shape)) return 0
  const corners = shape.filter((each) => isArray(each) && each.every(isNumber)).length
  if (corners > RING_MAX)
    throw refusedLimit(
      'corners',
      `a shape has ${corners} corners; the limit is ${RING_MAX}`,
      'Simplify the shape, or test its parts in several conditions.',
    )
  return SIDES_STEPS * corners ** 2 + shape.reduce<number>((all, each) => all + ringSteps(each), 0)
}

/** Returns the steps of an operator for each value. For each value of an $all, mongod searches the whole array. */
function timesOf(name: string, operand: Bson): number {
  if (name.startsWith('$geo')) return POINT_STEPS + numbersIn(operand) / 8
  if (name.startsWith('$bits')) return isArray(operand) ? 1 + operand.length : 1 + bytesIn(operand) * 8
  if (!isArray(operand)) return comparing(operand)
  if (name === '$all') return operand.reduce<number>((all, each) => all + comparing(each), 0)
  if (name !== '$in' && name !== '$nin') return comparing(operand)
  return Math.log2(operand.length + 2) * Math.max(1, ...operand.map(comparing))
}

const DECIMAL_STEPS = 5

function comparing(value: Bson): number {
  if (value instanceof Scalar && value.of.kind === '$numberDecimal') return DECIMAL_STEPS
  const parts = partsIn(value)
  // The names of an object's fields are compared, too.
  const own = parts.length === 0 ? value : isDocument(value) ? Object.keys(value) : null
  return 1 + bytesIn(own) / STEP_READS + parts.reduce<number>((all, each) => all + comparing(each), 0)
}

function numbersIn(value: Bson): number {
  if (isArray(value)) return value.reduce<number>((all, each) => all + numbersIn(each), 0)
  return isDocument(value) ? Object.values(value).reduce<number>((all, each) => all + numbersIn(each), 0) : 1
}

function list(name: string, operand: Bson): readonly Bson[] {
  const values = arrayOf(name, operand)
  if (values.length > LIST_MAX) throw refusedLimit(name, `${name} lists more than ${LIST_MAX} values`)
  return values
}

function every(path: string, value: Bson, found: Located, walk: Walk): Bson {
  const inner = isDocument(value) && Object.keys(value).length === 1 ? value['$elemMatch'] : undefined
  return inner === undefined ? compared(value, found, walk) : { $elemMatch: elements(path, inner, found, walk) }
}

function negated(path: string, operand: Bson, found: Located, walk: Walk): Bson {
  if (operand instanceof Scalar && operand.of.kind === '$regularExpression') return operand
  if (!isDocument(operand) || Object.keys(operand).length === 0) {
    throw new Broken('$not takes an object of operators, or a regular expression')
  }
  const { planned } = walk
  const { values } = planned
  const printed = tests(path, operand, found, walk)
  planned.all.exclude(planned.values - values)
  return printed
}

/** An $elemMatch has conditions on the fields of an element, or operators on the element itself. */
function elements(path: string, operand: Bson, found: Located, walk: Walk): Bson {
  if (!isDocument(operand)) throw new Broken('$elemMatch takes an object')
  const names = Object.keys(operand)
  const ofFields = names.every((name) => !name.startsWith('$') || name === '$and' || name === '$or' || name === '$nor')
  if (found.numeric) walk.hoistable = false
  countTests(found, walk, {})
  if (ofFields) return conditions(operand, `${path}.`, walk)
  markPath(found, walk)
  return tests(path, operand, found, walk)
}

function pattern(operand: Bson): Bson {
  if (operand instanceof Scalar && operand.of.kind === '$regularExpression') return operand
  return textOf('$regex', operand)
}

function options(operand: Bson): string {
  const text = textOf('$options', operand)
  if (!/^[imsux]*$/.test(text)) throw new Broken('$options takes only the letters i m s u x')
  return text
}

function plainTest(name: string, operand: Bson): Bson {
  switch (name) {
    case '$exists':
      return literal(operand)
    case '$type':
      return typeNames(operand)
    case '$size':
      return wholeOf(name, operand, 0)
    case '$mod': {
      const numbers = arrayOf(name, operand)
      if (numbers.length !== 2 || !numbers.every(isNumber)) throw new Broken('$mod takes a divisor and a remainder')
      return numbers
    }
    case '$bitsAllClear':
    case '$bitsAllSet':
    case '$bitsAnyClear':
    case '$bitsAnySet':
      return bits(name, operand)
    case '$geoWithin':
    case '$geoIntersects':
      return area(name, operand)
    default:
      throw refusedName(name)
  }
}

function isNumber(value: Bson): boolean {
  return numberOf(value) !== undefined || (value instanceof Scalar && value.of.kind === '$numberDecimal')
}

function typeNames(operand: Bson): Bson {
  const names = isArray(operand) ? operand : [operand]
  if (names.length === 0 || !names.every((name) => typeof name === 'string' || numberOf(name) !== undefined)) {
    throw new Broken('$type takes the name or number of a type, or an array of them')
  }
  return operand
}

function bits(name: string, operand: Bson): Bson {
  if (operand instanceof Scalar && operand.of.kind === '$binary') return operand
  if (isArray(operand)) return operand.map((place) => wholeOf(name, place, 0))
  return wholeOf(name, operand, 0)
}

const SHAPES = new Set(['$geometry', '$box', '$polygon', '$center', '$centerSphere'])

function area(name: string, operand: Bson): Bson {
  const [first, ...others] = isDocument(operand) ? Object.entries(operand) : []
  if (!first || others.length > 0) throw new Broken(`${name} takes an object with one shape`)
  const [kind, value] = first
  if (!SHAPES.has(kind)) {
    throw refusedOperator(kind, `${name} does not take it`, `Shapes of ${name}: ${[...SHAPES].join(' ')}.`)
  }
  if (kind !== '$geometry') return { [kind]: literal(arrayOf(kind, value)) }
  const { type, coordinates, crs, geometries } = fieldsOf(kind, value, ['type'], ['coordinates', 'crs', 'geometries'])
  return {
    $geometry: {
      type: textOf(kind, type),
      ...(coordinates === undefined ? {} : { coordinates: literal(coordinates) }),
      ...(geometries === undefined ? {} : { geometries: literal(geometries) }),
      ...(crs === undefined ? {} : { crs: literal(crs) }),
    },
  }
}
