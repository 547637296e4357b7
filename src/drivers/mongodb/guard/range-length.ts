// The number of elements that $range creates. If the query does not determine the number, the printed form fails in the
// database when the bound is exceeded. mongod builds the whole array in memory, and a cancel does not interrupt it.
import { arrayOf } from './read-arguments.ts'
import { numberOf } from './parse-ejson.ts'
import { isArray, isDocument, type Bson } from '../query.ts'
import { Broken, refusedLimit } from './refusal.ts'

export const RANGE_MAX = 10_000

/** Elements of a range with constant ends; undefined if an end is computed. Throws Refusal if there are too many. */
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

/** The most elements, by the absolute values of start and end. */
export function itemsBetween(value: Bson | undefined, start: number, end: number): number {
  const step = numberOf(endsOf(value)[2])
  return Math.ceil((start + end) / Math.max(1, Math.abs(step ?? 1)))
}

/** Whether the range is within the bound for any stored values. */
export function isShort(value: Bson | undefined): boolean {
  const [start, end] = endsOf(value).map((each) => certainBound(each, 0))
  return writtenItems(value) !== undefined || itemsBetween(value, start ?? 0, end ?? 0) <= RANGE_MAX
}

/** Start, end and step. Throws Broken. */
function endsOf(value: Bson | undefined): readonly Bson[] {
  const ends = arrayOf('$range', value)
  if (ends.length < 2 || ends.length > 3) throw new Broken('$range takes a start, an end and an optional step')
  return ends.length === 2 ? [...ends, 1] : ends
}

/** The same range, in a form that fails if it has too many elements. */
export function capped(ends: readonly Bson[]): Bson {
  const [start = 0, end = 0, step = 1] = ends
  // Negative if the step points away from the end. The range is then empty.
  const steps = { $divide: [{ $subtract: ['$$vt_to', '$$vt_from'] }, '$$vt_by'] }
  // The database fails a step of 0 with a distinct error code.
  const range = { $range: ['$$vt_from', '$$vt_to', { $cond: [{ $lte: [steps, RANGE_MAX] }, '$$vt_by', 0] }] }
  return { $let: { vars: { vt_from: start, vt_to: end, vt_by: step }, in: range } }
}

/**
 * The largest absolute value of an expression, derived from the query alone. Infinity if it depends on stored values.
 */
function certainBound(value: Bson | undefined, depth: number): number {
  const number = numberOf(value)
  if (number !== undefined) return Math.abs(number)
  if (!isDocument(value) || depth > 8) return Infinity
  const [[name, operand] = ['', null]] = Object.entries(value)
  const all = (isArray(operand) ? operand : [operand]).map((each) => certainBound(each, depth + 1))
  return boundOf(name, operand, all, Infinity)
}

/**
 * The largest absolute value that an operator returns. Derived from the bounds of its arguments (in order) and from
 * their number of elements or characters.
 */
export function boundOf(name: string, operand: Bson, all: readonly number[], size: number): number {
  const [first = Infinity, second = Infinity, third = Infinity] = all
  switch (name) {
    case '$size':
    case '$strLenCP':
    case '$strLenBytes':
    case '$indexOfCP':
    case '$indexOfBytes':
    case '$indexOfArray':
      return size
    case '$dayOfMonth':
    case '$dayOfWeek':
    case '$month':
    case '$hour':
    case '$minute':
    case '$second':
    case '$week':
    case '$isoWeek':
      return 60
    case '$dayOfYear':
      return 366
    case '$year':
    case '$isoWeekYear':
      return 9999
    case '$add':
    case '$subtract':
      return all.reduce((total, each) => total + each, 0)
    case '$multiply':
      return all.reduce((total, each) => total * each, 1)
    case '$divide': {
      const by = numberOf(isArray(operand) ? operand[1] : undefined)
      return by === undefined ? Infinity : first / Math.abs(by)
    }
    case '$mod':
      return second
    // The minimum may be far below 0.
    case '$min':
    case '$max':
    case '$ifNull':
      return Math.max(...all)
    case '$cond':
      return isArray(operand) ? Math.max(second, third) : Infinity
    case '$abs':
    case '$toInt':
    case '$toLong':
    case '$toDouble':
      return first
    case '$ceil':
    case '$floor':
    case '$trunc':
    case '$round':
      return first + 1
    default:
      return Infinity
  }
}
