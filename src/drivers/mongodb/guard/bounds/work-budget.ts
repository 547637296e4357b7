// Counts the guard's own work for one query: nodes visited, names of paths followed, fields copied. If this work grows
// faster than the body, the query is refused before it delays other requests.
import { refusedLimit } from '../refusals/refusal.ts'

/** The limit for one query in a guard thread. A body of 20,000 plain values takes about 60,000 units. */
export const WORK_MAX = 200_000

/** The main thread has used up its budget for this query. A guard thread then judges the query from the start. */
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

  /** Throws TooMuchHere if the budget of the main thread is used up, and Refusal if the limit for one query is. */
  spend(units: number): void {
    this.#spent += units
    if (this.#spent <= this.#max) return
    if (this.#isHere) throw new TooMuchHere()
    throw refusedLimit(
      'work',
      `checking the query takes more than ${this.#max} steps`,
      'Name fewer fields, use fewer stages after them, or split the query.',
    )
  }
}
