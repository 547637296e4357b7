// Computes the profile of a column from a sample of rows: shares, most common values, range, and the kinds of texts
// (recognize-text.ts). Each row is counted when it is added, and then dropped. Values have the form of a query result.
import { hash } from 'node:crypto'
import { lookOf, type Look } from './recognize-text.ts'
import type { ColumnProfile, Scalar, ValueKind } from './driver.ts'

interface Whole {
  /** Null if the number is unknown, or if the sample is the whole table. */
  readonly rows: number | null
  /** True if the sample has every row. */
  readonly complete: boolean
}

/** How many distinct values are counted. With this limit, a sample of many large values takes little memory. */
const DISTINCT_MAX = 20_000
/** Longer values are not listed among the most common values. */
const VALUE_CHARS = 64
const VALUES_MAX = 50
/** If a column has more distinct values, its most common values are not listed. */
const CATEGORIES_MAX = 1_000

export class ColumnSample {
  readonly #kind: ValueKind
  readonly #rows = new Map<Scalar, number>()
  /** Has only texts that lookOf() recognizes, for example as 'email'. */
  readonly #lookByText = new Map<Scalar, Look>()
  readonly #looks = new Map<Look, number>()
  #seen = 0
  #nulls = 0
  #count = 0
  #texts = 0
  #characters = 0
  #longest = 0
  #uncounted = false
  #unordered = false
  #min: Scalar | null = null
  #max: Scalar | null = null

  constructor(kind: ValueKind) {
    this.#kind = kind
  }

  /** Adds one row. `value` is undefined if it is no scalar: a document or bytes, for example. */
  add(value: Scalar | null | undefined): void {
    this.#seen++
    if (value === null) this.#nulls++
    else if (value === undefined) {
      this.#count++
      this.#uncounted = true
    } else this.#addScalar(value)
  }

  /**
   * Adds one row that has several values, and yields after each value. The set is empty if the row has no value but is
   * not null.
   */
  *addAll(values: ReadonlySet<Scalar>): Generator<undefined, void> {
    this.#seen++
    for (const value of values) {
      this.#addScalar(value)
      yield
    }
  }

  profile(name: string, whole: Whole): ColumnProfile {
    const texts = Math.max(1, this.#texts)
    return {
      name,
      kind: this.#kind,
      nullFrac: this.#seen === 0 ? null : this.#nulls / this.#seen,
      distinctCount: this.#uncounted || this.#seen === 0 ? null : this.#distinct(whole),
      values: this.#uncounted ? null : this.#values(),
      range: this.#min === null || this.#max === null ? null : { min: this.#min, max: this.#max },
      sample: {
        count: this.#count,
        distinct: this.#rows.size,
        longest: this.#texts === 0 ? null : this.#longest,
        meanLength: this.#texts === 0 ? null : this.#characters / texts,
        looks: Object.fromEntries([...this.#looks].map(([look, count]) => [look, count / texts])),
      },
      signals: this.#unordered
        ? [
            this.#kind === 'time'
              ? 'contains infinite times, or times outside the years 1 to 9999'
              : 'contains NaN or infinity',
          ]
        : [],
    }
  }

  #addScalar(value: Scalar): void {
    this.#count++
    const key = typeof value === 'string' && value.length > VALUE_CHARS ? shortened(value) : value
    const seenRows = this.#rows.get(key)
    if (seenRows !== undefined || this.#rows.size < DISTINCT_MAX) this.#rows.set(key, (seenRows ?? 0) + 1)
    else this.#uncounted = true
    const isMoment = this.#kind === 'time' && typeof value === 'string'
    if (typeof value === 'string' && !isMoment) this.#addLook(value, key, seenRows !== undefined)
    // Such a number may be that of a card.
    if (typeof value === 'number' && value > 1e12) this.#addLook(String(value), key, seenRows !== undefined)
    if (this.#kind === 'number' || this.#kind === 'time') this.#extendRange(value, this.#kind)
  }

  #addLook(text: string, key: Scalar, isKnown: boolean): void {
    this.#texts++
    this.#characters += text.length
    this.#longest = Math.max(this.#longest, text.length)
    const look = isKnown ? this.#lookByText.get(key) : (lookOf(text) ?? undefined)
    if (look === undefined) return
    if (!isKnown && this.#lookByText.size < DISTINCT_MAX) this.#lookByText.set(key, look)
    this.#looks.set(look, (this.#looks.get(look) ?? 0) + 1)
  }

  #extendRange(value: Scalar, kind: 'number' | 'time'): void {
    if (!isOrdered(value, kind)) {
      this.#unordered = true
      return
    }
    if (this.#min === null || compare(value, this.#min) < 0) this.#min = value
    if (this.#max === null || compare(value, this.#max) > 0) this.#max = value
  }

  /**
   * Estimates the number of distinct values in the whole table, by Duj1 of Haas and Stokes (1998), as PostgreSQL's
   * ANALYZE does. If many values occur only `once` in the sample, the table has many values that the sample does not
   * have.
   */
  #distinct(whole: Whole): number {
    const distinct = this.#rows.size
    if (whole.complete || whole.rows === null) return distinct
    let once = 0
    for (const rows of this.#rows.values()) if (rows === 1) once++
    if (once === 0) return distinct
    const total = Math.max(whole.rows * (this.#count / Math.max(1, this.#seen)), this.#count)
    return Math.min(
      Math.round(total),
      Math.round((this.#count * distinct) / (this.#count - once + (once * this.#count) / total)),
    )
  }

  #values(): NonNullable<ColumnProfile['values']> {
    if (this.#rows.size > CATEGORIES_MAX) return []
    return [...this.#rows]
      .filter(([value]) => typeof value !== 'string' || value.length <= VALUE_CHARS)
      .sort(([, a], [, b]) => b - a)
      .slice(0, VALUES_MAX)
      .map(([value, rows]) => ({ value, share: rows / Math.max(1, this.#seen), rows }))
  }
}

/**
 * Returns the beginning of a long text and its hash, so that equal texts are counted together. The result is longer
 * than VALUE_CHARS, so it is never listed.
 */
function shortened(text: string): string {
  return text.slice(0, VALUE_CHARS) + hash('sha1', text, 'base64')
}

const DECIMAL = /^-?\d+(?:\.\d+)?$/
const MOMENT = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?$/

/**
 * Returns whether a range may begin or end with the value. NaN, infinities, and dates that RFC 3339 cannot express may
 * not.
 */
export function isOrdered(value: Scalar, kind: ValueKind): boolean {
  if (kind === 'time') return typeof value === 'string' && MOMENT.test(value)
  return typeof value === 'number' || (typeof value === 'string' && DECIMAL.test(value))
}

/**
 * Compares numbers by value, even if they are strings. Compares times as strings, because the alphabetical order of RFC
 * 3339 times is their order in time.
 */
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
