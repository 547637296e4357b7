// Adds up what all expressions of a query make and search for one row. PostgreSQL frees the values of a row only after
// the row, and checks for a cancel only between rows: 1,000 calls on a value of a megabyte took 6 GB, and outlived the
// timeout by 16 s. This file limits what comes from constants. Only the database knows how long stored and collected
// values are: for these, the sums say how low the limits in the printed text must be.
import { Refusal } from '../refusal.ts'

/** What expressions make and search. */
export interface Made {
  /** Bytes that come from constants. */
  readonly own: number
  /** Copies of stored values, of parameters and of collected values. */
  readonly copies: number
  /** The copies of values that are collected from rows. */
  readonly collected: number
  /** For each search of a stored value for a constant: the bytes of the constant. */
  readonly sought: number
  /** The same for collected values. */
  readonly soughtCollected: number
  /** Steps of searches in values that come from constants, and of divisions of such numbers. */
  readonly steps: number
  /** Products and quotients of stored numbers. */
  readonly squares: number
  /** For each product of a stored number and a constant: the digits of the constant. */
  readonly digits: number
  /** Calls whose work only the database can bound. */
  readonly bounded: number
  /** Bytes of collected values that calls take: the sum of the limits of all calls. */
  readonly taken: number
}

/** The limit on the bytes from constants in all values of a row. */
const OWN_MAX = 201_326_592
/** The limit on copies. A parameter has at most 65,536 bytes. */
const COPIES_MAX = 6_000
/** The limit on the bytes of all copies of stored values in a row. */
const STORED_MAX = 134_217_728
/** The limit on the bytes of all copies of collected values. A collected text counts twice when it is collected. */
const COLLECTED_MAX = 536_870_912
/** The limits on all searches for constants, in bytes × bytes. */
const SOUGHT_MAX = 536_870_912
const SOUGHT_COLLECTED_MAX = 2_147_483_648
const STEPS_MAX = 1_073_741_824
/** The bytes of collected values that all calls may take together: 64 calls of 4 MB. */
const TAKEN_MAX = 268_435_456
/** Stored values of at least this length need no limit: a query then makes few copies of them. */
const LONG_ENOUGH = 4_194_304
/** The digits of two numbers, multiplied, that a division takes one step for. */
export const DIGITS_OF_A_STEP = 40
/** Stored numbers with at least this many digits need no limit: a query then computes few products of them. */
const MANY_DIGITS = 40_000
/** So many calls may each do all the work that their bound allows. */
const FREE_CALLS = 4
/** A bound up to this size is of a call whose work is the square of the size. */
const SQUARED_BOUND = 5_000
const FREE_SQUARED_CALLS = 16

const NOTHING: Made = {
  own: 0,
  copies: 0,
  collected: 0,
  sought: 0,
  soughtCollected: 0,
  steps: 0,
  squares: 0,
  digits: 0,
  bounded: 0,
  taken: 0,
}

export function isNothing(made: Made): boolean {
  return Object.values(made).every((count) => count === 0)
}

/** Copies of parts of values, by partOf(). All parts of one value together are not longer than the value. */
export type Parts = ReadonlyMap<string, number>

/** Returns the key of a part of a value. */
export function partOf(value: string, name: string): string {
  return `${value}\0${name}`
}

export class MadeValues {
  #made = NOTHING
  /** The copies of each part, and for each value, the most copies of one of its parts. */
  readonly #ofPart = new Map<string, number>()
  readonly #ofValue = new Map<string, number>()

  /** Adds what an expression makes. Throws Refusal. */
  add(more: Partial<Made>): void {
    this.#made = sum(this.#made, { ...NOTHING, ...more })
    const { own, copies, steps } = this.#made
    if (own > OWN_MAX) throw tooMuch(`make ${Math.round(own)} bytes from constants`, OWN_MAX)
    if (copies > COPIES_MAX) throw tooMuch(`make ${Math.round(copies)} copies of values`, COPIES_MAX)
    if (steps > STEPS_MAX) throw tooMuch(`take ${Math.round(steps)} steps that cannot be cancelled`, STEPS_MAX)
  }

  /** Adds what an expression makes that PostgreSQL evaluates so many times more. Throws Refusal. */
  addAgain(made: Made, times: number): void {
    if (times > 0) this.add(eachOf(made, made, (count) => count * times))
  }

  /** Adds copies of values, of which `parts` are copies of parts of values. Throws Refusal. */
  addCopies(own: number, times: number, isCollected: boolean, parts: Parts = new Map()): void {
    let copies = times
    for (const [part, count] of parts) copies += this.#copiesOf(part, count) - count
    copies = Math.max(copies, 0)
    this.add({ own, copies, collected: isCollected ? copies : 0 })
  }

  /** Returns how many copies of the whole value the copies of a part add at most. */
  #copiesOf(part: string, times: number): number {
    const value = part.slice(0, part.indexOf('\0'))
    const count = (this.#ofPart.get(part) ?? 0) + times
    const most = this.#ofValue.get(value) ?? 0
    this.#ofPart.set(part, count)
    this.#ofValue.set(value, Math.max(most, count))
    return Math.max(count - most, 0)
  }

  /** The copies of values, and the bytes from constants, so far. */
  get copies(): number {
    return this.#made.copies
  }

  get own(): number {
    return this.#made.own
  }

  /** Returns what `run` adds, and the result of `run`. */
  during<T>(run: () => T): { result: T; made: Made } {
    const before = this.#made
    const result = run()
    return { result, made: eachOf(this.#made, before, (now, then) => now - then) }
  }

  /**
   * Runs alternatives, of which PostgreSQL evaluates one for a row: the greatest counts. What comes from constants is
   * added, because the planner computes the constants of all alternatives.
   */
  either<T>(alternatives: readonly (() => T)[]): T[] {
    const before = this.#made
    let greatest = before
    const results = alternatives.map((run) => {
      this.#made = { ...before, own: this.#made.own, steps: this.#made.steps }
      const result = run()
      greatest = eachOf(greatest, this.#made, Math.max)
      return result
    })
    this.#made = greatest
    return results
  }

  /** The maximum length of a stored value in bytes. Undefined if the query makes few copies of stored values. */
  get storedMax(): number | undefined {
    const { copies, sought } = this.#made
    const most = Math.floor(Math.min(STORED_MAX / copies, SOUGHT_MAX / sought))
    return most < LONG_ENOUGH ? most : undefined
  }

  /** The maximum number of digits of a stored number. Undefined if the query computes few products of stored numbers. */
  get digitsMax(): number | undefined {
    const { squares, digits } = this.#made
    const product = STEPS_MAX * DIGITS_OF_A_STEP
    const most = Math.floor(Math.min(Math.sqrt(product / squares), product / digits))
    return most < MANY_DIGITS ? most : undefined
  }

  /** The maximum number of bytes that the query may collect. */
  get collectedMax(): number {
    const { collected, soughtCollected } = this.#made
    return Math.floor(Math.min(COLLECTED_MAX / collected, SOUGHT_COLLECTED_MAX / soughtCollected))
  }

  /** Returns the limit on a collected value of one call, lowered so that all calls together take at most TAKEN_MAX. */
  takenShareOf(most: number): number {
    return Math.floor(most * Math.min(1, TAKEN_MAX / this.#made.taken))
  }

  /** Returns a bound of one call, lowered so that all such calls together do little more than FREE_CALLS of them. */
  shareOf(most: number): number {
    const { bounded } = this.#made
    if (most <= SQUARED_BOUND) return Math.floor(most * Math.sqrt(Math.min(1, FREE_SQUARED_CALLS / bounded)))
    return Math.floor(most * Math.min(1, FREE_CALLS / bounded))
  }
}

function sum(a: Made, b: Made): Made {
  return eachOf(a, b, (x, y) => x + y)
}

/** Combines each count of two sums. */
export function eachOf(a: Made, b: Made, by: (x: number, y: number) => number): Made {
  return {
    own: by(a.own, b.own),
    copies: by(a.copies, b.copies),
    collected: by(a.collected, b.collected),
    sought: by(a.sought, b.sought),
    soughtCollected: by(a.soughtCollected, b.soughtCollected),
    steps: by(a.steps, b.steps),
    squares: by(a.squares, b.squares),
    digits: by(a.digits, b.digits),
    bounded: by(a.bounded, b.bounded),
    taken: by(a.taken, b.taken),
  }
}

function tooMuch(what: string, limit: number): Refusal {
  const why = `the expressions of the query ${what} for one row; the limit is ${limit}`
  const hint = 'Compute fewer values in one query: ask for some columns at a time.'
  return new Refusal('limit', 'size', why, hint, undefined)
}
