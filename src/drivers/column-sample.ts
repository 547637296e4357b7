// What a bounded sample of a column's values tells, counted value by value as they come and then forgotten: shares,
// most common values, ends, looks. One for all kinds of database; values are those of an answer, by the one rule.
import { hash } from 'node:crypto'
import { lookOf, type Look } from './looks.ts'
import type { ColumnProfile, Scalar, ValueKind } from './driver.ts'

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
/** Of more different values none is common enough to be looked for. */
const CATEGORIES_MAX = 1_000

export class ColumnSample {
  readonly #kind: ValueKind
  readonly #rows = new Map<Scalar, number>()
  /** The look of each text that has one. */
  readonly #known = new Map<Scalar, Look>()
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

  /** A row's value: a scalar, null, or undefined for one that is there but is no scalar (a document, bytes). */
  add(value: Scalar | null | undefined): void {
    this.#seen++
    if (value === null) this.#nulls++
    else if (value === undefined) {
      this.#count++
      this.#uncounted = true
    } else this.#take(value)
  }

  /** A row that has several values or, though it is not null, none; each told once. */
  addAll(values: ReadonlySet<Scalar>): void {
    this.#seen++
    for (const value of values) this.#take(value)
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
        ? [this.#kind === 'time' ? 'holds infinite or far-off times' : 'holds NaN or infinity']
        : [],
    }
  }

  #take(value: Scalar): void {
    this.#count++
    const key = typeof value === 'string' && value.length > VALUE_CHARS ? shortened(value) : value
    const known = this.#rows.get(key)
    if (known !== undefined || this.#rows.size < DISTINCT_MAX) this.#rows.set(key, (known ?? 0) + 1)
    else this.#uncounted = true
    const isMoment = this.#kind === 'time' && typeof value === 'string'
    if (typeof value === 'string' && !isMoment) this.#look(value, key, known !== undefined)
    // A number of 13 digits or more may be a card's.
    if (typeof value === 'number' && value > 1e12) this.#look(String(value), key, known !== undefined)
    if (this.#kind === 'number' || this.#kind === 'time') this.#stretch(value, this.#kind)
  }

  #look(text: string, key: Scalar, isKnown: boolean): void {
    this.#texts++
    this.#characters += text.length
    this.#longest = Math.max(this.#longest, text.length)
    const look = isKnown ? this.#known.get(key) : (lookOf(text) ?? undefined)
    if (look === undefined) return
    if (!isKnown && this.#known.size < DISTINCT_MAX) this.#known.set(key, look)
    this.#looks.set(look, (this.#looks.get(look) ?? 0) + 1)
  }

  #stretch(value: Scalar, kind: 'number' | 'time'): void {
    if (!isOrdered(value, kind)) {
      this.#unordered = true
      return
    }
    if (this.#min === null || compare(value, this.#min) < 0) this.#min = value
    if (this.#max === null || compare(value, this.#max) > 0) this.#max = value
  }

  /**
   * Over the whole table: Duj1 of Haas and Stokes (1998), as PostgreSQL's ANALYZE uses it. `once` values seen once and
   * `seen` in all promise more that were not seen.
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

/** Told apart as well as the whole, and still too long for a value. */
function shortened(text: string): string {
  return text.slice(0, VALUE_CHARS) + hash('sha1', text, 'base64')
}

const DECIMAL = /^-?\d+(?:\.\d+)?$/
const MOMENT = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?$/

/** NaN, infinities and dates that RFC 3339 cannot say are no ends of a range. */
export function isOrdered(value: Scalar, kind: ValueKind): boolean {
  if (kind === 'time') return typeof value === 'string' && MOMENT.test(value)
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
