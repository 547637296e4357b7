// Limits the work for one query. The guard counts its steps, so that no text of any shape can cost more than the
// budget. The guard runs on the main thread, where the budget is about 15 ms.
import { refusedLimit } from './refusal.ts'

/** The budget in steps. The largest published queries need 20,000 steps. */
const WORK_MAX = 400_000

/** A step is, for example, one token read, one name looked up in one scope, one column listed, or one part printed. */
export class Work {
  #spent = 0

  get spent(): number {
    return this.#spent
  }

  /** Throws Refusal (limit) when the budget is exhausted. */
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
