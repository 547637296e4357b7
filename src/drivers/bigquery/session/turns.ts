// Long answers are read and written in turns: between two of them other requests have the event loop. Counted in bytes, so
// that a short answer costs no turn.
import { setImmediate } from 'node:timers/promises'

/** Reading and writing this much takes about 5 ms. */
export const TURN_BYTES = 128 * 1024

/** What yields between two turns, run without a pause. */
export function atOnce<T>(work: Generator<undefined, T>): T {
  let step = work.next()
  while (step.done !== true) step = work.next()
  return step.value
}

export class Turns {
  readonly #signal: AbortSignal | null
  /** How often it gave way. */
  count = 0

  constructor(signal: AbortSignal | null) {
    this.#signal = signal
  }

  /** Gives way wherever the work yields. Throws the signal's reason, and what the work throws. */
  async run<T>(work: Generator<undefined, T>): Promise<T> {
    for (let step = work.next(); ; step = work.next()) {
      if (step.done === true) return step.value
      this.count++
      await setImmediate()
      this.#signal?.throwIfAborted()
    }
  }
}

/** Tells when to yield, by the places reached in one text. */
export class Pace {
  #began = 0

  /** True once for each turn. */
  isDue(at: number): boolean {
    if (at - this.#began < TURN_BYTES) return false
    this.#began = at
    return true
  }
}
