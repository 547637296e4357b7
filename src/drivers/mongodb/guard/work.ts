// The work that the guard does for one query, counted while it is done: nodes visited, components of paths followed, fields
// copied. What grows faster than the body is refused here, before it holds up the requests of others.
import { refusedLimit } from './refusal.ts'

/** About 20 ms. A body of 20,000 plain values takes some 60,000 units. */
const WORK_MAX = 200_000

export class Work {
  #spent = 0

  get spent(): number {
    return this.#spent
  }

  /** Throws Refusal where the query takes more than its share. */
  spend(units: number): void {
    this.#spent += units
    if (this.#spent <= WORK_MAX) return
    throw refusedLimit(
      'work',
      `checking the query takes more than ${WORK_MAX} steps`,
      'Name fewer fields at once, with fewer stages behind them, or split the query.',
    )
  }
}
