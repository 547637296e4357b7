// What a bounded sample of a column's values tells, counted value by value as they come and then forgotten: shares,
// most common values, ends, looks. One for all kinds of database; values are those of an answer, by the one rule.
import { lookOf } from './looks.ts'
import type { ColumnProfile, Scalar } from './driver.ts'

/** How the values of a column are put in order; null: they are not. */
export type Order = 'number' | 'time' | null

/** Of the whole table, as far as it is known. */
interface Whole {
  /** Null: unknown, or the sample is all of it. */
  readonly rows: number | null
  /** The sample holds every row. */
  readonly complete: boolean
}

/** Told apart at most, so that a sample of many large values stays small. */
const DISTINCT_MAX = 20_000
/** Longer values are never among the most common ones. */
const VALUE_CHARS = 64
const VALUES_MAX = 50

export class ColumnSample {
  readonly #order: Order
  readonly #rows = new Map<Scalar, number>()
  readonly #looks = new Map<string, number>()
  #nulls = 0
  #count = 0
  #texts = 0
  #characters = 0
  #longest = 0
  #uncounted = false
  #min: Scalar | null = null
  #max: Scalar | null = null

  constructor(order: Order) {
    this.#order = order
  }

  /** `value` is a scalar, null, or undefined for one that is there but is no scalar (an array, a document, bytes). */
  add(value: Scalar | null | undefined): void {
    if (value === null) {
      this.#nulls++
      return
    }
    this.#count++
    if (value === undefined) {
      this.#uncounted = true
      return
    }
    const known = this.#rows.get(value)
    if (known !== undefined || this.#rows.size < DISTINCT_MAX) this.#rows.set(value, (known ?? 0) + 1)
    else this.#uncounted = true
    if (this.#order === null) this.#look(value)
    else this.#stretch(value, this.#order)
  }

  profile(name: string, whole: Whole): ColumnProfile {
    const seen = this.#nulls + this.#count
    return {
      name,
      nullFrac: seen === 0 ? null : this.#nulls / seen,
      distinctCount: this.#uncounted || seen === 0 ? null : this.#distinct(whole),
      values: this.#uncounted ? null : this.#values(whole, seen),
      range: this.#min === null || this.#max === null ? null : { min: this.#min, max: this.#max },
      sample: {
        count: this.#count,
        distinct: this.#rows.size,
        longest: this.#texts === 0 ? null : this.#longest,
        meanLength: this.#texts === 0 ? null : this.#characters / this.#texts,
        looks: Object.fromEntries([...this.#looks].map(([look, count]) => [look, count / Math.max(1, this.#texts)])),
      },
      signals: [],
    }
  }

  #look(value: Scalar): void {
    if (typeof value !== 'string') return
    this.#texts++
    this.#characters += value.length
    this.#longest = Math.max(this.#longest, value.length)
    const look = lookOf(value)
    if (look !== null) this.#looks.set(look, (this.#looks.get(look) ?? 0) + 1)
  }

  #stretch(value: Scalar, order: 'number' | 'time'): void {
    if (!isOrdered(value, order)) return
    if (this.#min === null || compare(value, this.#min) < 0) this.#min = value
    if (this.#max === null || compare(value, this.#max) > 0) this.#max = value
  }

  /**
   * Over the whole table: Duj1 of Haas and Stokes (1998), as PostgreSQL's ANALYZE uses it. `once` values seen once and
   * `seen` in all promise more that were not seen.
   */
  #distinct(whole: Whole): number {
    const distinct = this.#rows.size
    const once = [...this.#rows.values()].filter((rows) => rows === 1).length
    if (whole.complete || whole.rows === null || once === 0) return distinct
    const total = Math.max(whole.rows * (this.#count / Math.max(1, this.#nulls + this.#count)), this.#count)
    return Math.min(
      Math.round(total),
      Math.round((this.#count * distinct) / (this.#count - once + (once * this.#count) / total)),
    )
  }

  #values(whole: Whole, seen: number): NonNullable<ColumnProfile['values']> {
    const factor = whole.complete || whole.rows === null ? 1 : Math.max(1, whole.rows / Math.max(1, seen))
    return [...this.#rows]
      .filter(([value]) => typeof value !== 'string' || value.length <= VALUE_CHARS)
      .sort(([, a], [, b]) => b - a)
      .slice(0, VALUES_MAX)
      .map(([value, rows]) => ({ value, share: rows / Math.max(1, seen), rows: Math.floor(rows * factor) }))
  }
}

const DECIMAL = /^-?\d+(?:\.\d+)?$/
const MOMENT = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?$/

/** NaN, infinities and dates that RFC 3339 cannot say are no ends of a range. */
function isOrdered(value: Scalar, order: 'number' | 'time'): boolean {
  if (order === 'time') return typeof value === 'string' && MOMENT.test(value)
  return typeof value === 'number' || (typeof value === 'string' && DECIMAL.test(value))
}

/** Numbers by value, also those that are texts for their length; times by their text, which sorts as they do. */
export function compare(a: Scalar, b: Scalar): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [left, right] = [String(a), String(b)]
  if (!DECIMAL.test(left) || !DECIMAL.test(right)) return left < right ? -1 : left > right ? 1 : 0
  const negative = left.startsWith('-')
  if (negative !== right.startsWith('-')) return negative ? -1 : 1
  const order = compareDigits(left.replace('-', ''), right.replace('-', ''))
  return negative ? 0 - order : order
}

function compareDigits(a: string, b: string): number {
  const [wholeA = '', partA = ''] = a.split('.')
  const [wholeB = '', partB = ''] = b.split('.')
  const width = Math.max(wholeA.length, wholeB.length)
  const [left, right] = [wholeA.padStart(width, '0') + partA, wholeB.padStart(width, '0') + partB]
  return left < right ? -1 : left > right ? 1 : 0
}
