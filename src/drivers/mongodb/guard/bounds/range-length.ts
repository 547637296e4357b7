// mongod builds the whole array of a $range in memory, and a cancel does not interrupt this. So this file computes how
// many elements a $range has. If the number depends on stored values, this file prints a form that fails in the
// database above the bound.
import { arrayOf } from '../body/read-arguments.ts'
import { constant, isConstant, most, NONE, plus, product, scaled, type Amount } from './amount.ts'
import { together, type Extent } from './value-size.ts'
import { numberOf } from '../body/parse-ejson.ts'
import { isArray, isDocument, type Bson } from '../../confined-query.ts'
import { Broken, refusedLimit } from '../refusals/refusal.ts'

const RANGE_MAX = 10_000

/**
 * Returns the number of elements, or undefined if the start, the end or the step is computed. Throws Refusal if there
 * are too many elements.
 */
export function writtenItems(value: Bson | undefined): number | undefined {
  const [start, end, step] = endsOf(value).map(numberOf)
  if (start === undefined || end === undefined || step === undefined) return undefined
  const items = Math.ceil(Math.abs((end - start) / step))
  if (!Number.isFinite(items)) return 0
  if (items <= RANGE_MAX) return items
  throw refusedLimit(
    '$range',
    `$range makes ${items} elements; the limit is ${RANGE_MAX}`,
    'Use a shorter range or a larger step.',
  )
}

/**
 * Returns the maximum number of elements. `start` and `end` are the largest absolute values. Above the bound, the range
 * fails in the database.
 */
export function itemsBetween(value: Bson | undefined, start: Amount | null, end: Amount | null): Amount {
  if (start === null || end === null) return constant(RANGE_MAX)
  const step = numberOf(endsOf(value)[2])
  const items = plus(scaled(plus(start, end), 1 / Math.max(1, Math.abs(step ?? 1))), 1)
  return isConstant(items) ? constant(Math.min(items.constant, RANGE_MAX)) : items
}

/** True if the range is within the bound, whatever the stored values are. */
export function isShort(value: Bson | undefined): boolean {
  if (writtenItems(value) !== undefined) return true
  const [start = null, end = null] = endsOf(value).map((each) => certainBound(each, 0))
  if (start === null || end === null) return false
  const step = numberOf(endsOf(value)[2]) ?? 1
  return (start.constant + end.constant) / Math.max(1, Math.abs(step)) <= RANGE_MAX
}

/** Throws Broken if there are too few or too many. */
function endsOf(value: Bson | undefined): readonly Bson[] {
  const ends = arrayOf('$range', value)
  if (ends.length < 2 || ends.length > 3) throw new Broken('$range takes a start, an end and an optional step')
  return ends.length === 2 ? [...ends, 1] : ends
}

/** Prints the same range, but it fails if it has too many elements. */
export function capped(ends: readonly Bson[]): Bson {
  const [start = 0, end = 0, step = 1] = ends
  // If the step points away from the end, this number is negative, and the range is empty.
  const steps = { $divide: [{ $subtract: ['$$vt_to', '$$vt_from'] }, '$$vt_by'] }
  // A step of 0 fails in the database with its own error code.
  const range = { $range: ['$$vt_from', '$$vt_to', { $cond: [{ $lte: [steps, RANGE_MAX] }, '$$vt_by', 0] }] }
  return { $let: { vars: { vt_from: start, vt_to: end, vt_by: step }, in: range } }
}

/** Returns the largest absolute value, or null if it depends on stored values. */
function certainBound(value: Bson | undefined, depth: number): Amount | null {
  const number = numberOf(value)
  if (number !== undefined) return constant(Math.abs(number))
  if (!isDocument(value) || depth > 8) return null
  const [[name, operand] = ['', null]] = Object.entries(value)
  const all = (isArray(operand) ? operand : [operand]).map((each) => certainBound(each, depth + 1))
  return boundOf(name, operand, all, null)
}

/** Returns the largest absolute value of the operator's result. */
export function numberBound(name: string, operand: Bson, args: readonly Extent[]): Amount | null {
  const { bytes, items } = together(args)
  const isList = name === '$size' || name === '$indexOfArray'
  const bounds = args.map((arg) => arg.number)
  return boundOf(name, operand, bounds, isList ? items : bytes)
}

/** A date is a number of milliseconds with 64 bits, so its year is limited. */
const YEAR_MAX = 300_000_000
const SMALL_NUMBERS = new Set(
  '$dayOfMonth $dayOfWeek $hour $isoDayOfWeek $isoWeek $minute $month $second $week'.split(' '),
)
const LENGTHS = new Set('$indexOfArray $indexOfBytes $indexOfCP $size $strLenBytes $strLenCP'.split(' '))

/**
 * Returns null if the largest absolute value is unknown. `all` has the bounds of the arguments, in their order. `size`
 * is the number of elements or bytes of all arguments.
 */
function boundOf(name: string, operand: Bson, all: readonly (Amount | null)[], size: Amount | null): Amount | null {
  const [first = null, second = null, third = null] = all
  if (LENGTHS.has(name)) return size
  if (SMALL_NUMBERS.has(name)) return constant(60)
  switch (name) {
    case '$dayOfYear':
      return constant(366)
    case '$year':
    case '$isoWeekYear':
      return constant(YEAR_MAX)
    case '$add':
    case '$subtract':
      return known(all, (bounds) => plus(...bounds))
    case '$multiply':
      return known(all, (bounds) => bounds.reduce(product, constant(1)))
    case '$divide': {
      const by = numberOf(isArray(operand) ? operand[1] : undefined)
      return by === undefined || by === 0 ? null : known([first], ([bound = NONE]) => scaled(bound, 1 / Math.abs(by)))
    }
    case '$mod':
      return second
    // The smallest argument may have the largest absolute value.
    case '$min':
    case '$max':
    case '$ifNull':
      return known(all, (bounds) => most(...bounds))
    case '$cond':
      return isArray(operand) ? known([second, third], (bounds) => most(...bounds)) : null
    case '$abs':
    case '$toInt':
    case '$toLong':
    case '$toDouble':
      return first
    case '$ceil':
    case '$floor':
      return known([first], ([bound = NONE]) => plus(bound, 1))
    case '$trunc':
      return first
    // A second argument makes the bound unknown: with -4, $round makes 10,000 of 6,000.
    case '$round':
      return isArray(operand) && operand.length > 1 ? null : known([first], ([bound = NONE]) => plus(bound, 1))
    default:
      return null
  }
}

function known(all: readonly (Amount | null)[], by: (bounds: readonly Amount[]) => Amount): Amount | null {
  const bounds = all.flatMap((bound) => bound ?? [])
  return bounds.length === all.length && bounds.length > 0 ? by(bounds) : null
}
