// The guard runs on the main thread. It counts its steps, so that no query can cost more than the budget, which takes
// about 20 ms.
import { refusedLimit } from './refusal.ts'

/** In steps. The largest published queries need 20,000 steps. */
const WORK_MAX = 400_000

/** One step is, for example, a token that is read, a name that is looked up in a scope, or a column that is listed. */
export class Work {
  #spent = 0

  get spent(): number {
    return this.#spent
  }

  /** Throws Refusal (limit) if the budget is used up. */
  spend(steps: number): void {
    this.#spent += steps
    if (this.#spent > WORK_MAX) {
      const why = `reading the query takes over ${WORK_MAX} steps, more than the bound of ${WORK_MAX}`
      throw refusedLimit(
        'work',
        why,
        -1,
        'Split the query: nest less deeply, and name fewer columns and tables at once.',
      )
    }
  }
}
