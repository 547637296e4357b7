// How many elements $range makes. Where the query does not say, the printed form fails in the database beyond the bound:
// mongod makes the array at once, whatever memory that takes, and no cancel reaches it there.
import { arrayOf } from './arguments.ts'
import { numberOf } from './lift.ts'
import { isArray, isDocument, type Bson } from '../query.ts'
import { refusedLimit } from './refusal.ts'
import { ITEMS } from './extent.ts'
import { Broken } from './refusal.ts'

export const RANGE_MAX = 10_000

/** Elements at most; Infinity where only the database can tell. Throws Refusal where the query itself says too many. */
export function rangeItems(value: Bson | undefined): number {
  const ends = arrayOf('$range', value)
  if (ends.length < 2 || ends.length > 3) throw new Broken('$range takes a start, an end and perhaps a step')
  const [from = 0, to = 0, by = 1] = ends
  const [start, end, step] = [numberOf(from), numberOf(to), numberOf(by)]
  if (start !== undefined && end !== undefined && step !== undefined) {
    const items = Math.ceil(Math.abs((end - start) / step))
    if (items <= RANGE_MAX || !Number.isFinite(items)) return Number.isFinite(items) ? items : 0
    throw refusedLimit(
      '$range',
      `$range makes ${items} elements; ${RANGE_MAX} is the most`,
      'Make a shorter range, or one with a larger step.',
    )
  }
  const items = (boundOf(from, 0) + boundOf(to, 0)) / Math.max(1, Math.abs(step ?? 1))
  return items <= RANGE_MAX ? Math.ceil(items) : Infinity
}

/** The same range, which fails where it would have too many elements. */
export function capped(ends: readonly Bson[]): Bson {
  const [start = 0, end = 0, step = 1] = ends
  const length = { $abs: [{ $subtract: ['$$vt_to', '$$vt_from'] }] }
  const most = { $multiply: [{ $abs: ['$$vt_by'] }, RANGE_MAX] }
  // A step of 0 is an error of the database, with a number of its own.
  const range = { $range: ['$$vt_from', '$$vt_to', { $cond: [{ $lte: [length, most] }, '$$vt_by', 0] }] }
  return { $let: { vars: { vt_from: start, vt_to: end, vt_by: step }, in: range } }
}

/** What no value of an expression is beyond, on either side of 0. */
function boundOf(value: Bson | undefined, depth: number): number {
  const number = numberOf(value)
  if (number !== undefined) return Math.abs(number)
  if (!isDocument(value) || depth > 8) return Infinity
  const [[name, operand] = ['', null]] = Object.entries(value)
  const all = (isArray(operand) ? operand : [operand]).map((each) => boundOf(each, depth + 1))
  const [first = Infinity, second = Infinity, third = Infinity] = all
  switch (name) {
    // A stored array: its length is bounded as documents are.
    case '$size':
    case '$strLenCP':
    case '$strLenBytes':
    case '$indexOfCP':
    case '$indexOfBytes':
    case '$indexOfArray':
      return ITEMS
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
    case '$divide':
      return numberOf(isArray(operand) ? operand[1] : undefined) === undefined ? Infinity : first / second
    case '$mod':
      return second
    case '$min':
      return Math.min(...all)
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
