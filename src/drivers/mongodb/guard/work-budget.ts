// The work that the guard does for one query, counted while it is done: nodes visited, components of paths followed, fields
// copied. What grows faster than the body is refused here, before it holds up the requests of others.
import { refusedLimit } from './refusal.ts'

/** Of any query, in a thread. A body of 20,000 plain values takes some 60,000 units. */
export const WORK_MAX = 200_000

/** More than may be done on the main thread: a thread judges the query from the start. */
export class TooMuchHere extends Error {}

export class Work {
  readonly #max: number
  readonly #isHere: boolean
  #spent = 0

  constructor(max = WORK_MAX, isHere = false) {
    this.#max = max
    this.#isHere = isHere
  }

  get spent(): number {
    return this.#spent
  }

  /** Throws Refusal where the query takes more than its share, TooMuchHere where a thread may go on. */
  spend(units: number): void {
    this.#spent += units
    if (this.#spent <= this.#max) return
    if (this.#isHere) throw new TooMuchHere()
    throw refusedLimit(
      'work',
      `checking the query takes more than ${this.#max} steps`,
      'Name fewer fields at once, with fewer stages behind them, or split the query.',
    )
  }
}
