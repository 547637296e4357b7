// Long results are read and written in slices, and the event loop gets a turn between two slices. A slice is a number
// of bytes, so a short result has only one slice.
import { setImmediate } from 'node:timers/promises'

/** Reading and writing a slice takes about 5 ms. */
export const SLICE_BYTES = 128 * 1024

/** Does all slices without a pause. */
export function runToEnd<T>(work: Generator<undefined, T>): T {
  let step = work.next()
  while (step.done !== true) step = work.next()
  return step.value
}

export class TimeSlices {
  readonly #signal: AbortSignal | null
  /** How often run() has yielded to the event loop. */
  count = 0

  constructor(signal: AbortSignal | null) {
    this.#signal = signal
  }

  /** Gives the event loop a turn whenever the work yields. Throws the signal's reason, and the errors of the work. */
  async run<T>(work: Generator<undefined, T>): Promise<T> {
    for (let step = work.next(); ; step = work.next()) {
      if (step.done === true) return step.value
      this.count++
      await setImmediate()
      this.#signal?.throwIfAborted()
    }
  }
}

/** Decides when to yield, by the position in a text. */
export class SlicePace {
  #began = 0

  /**
   * Returns true if the position `at` is at least SLICE_BYTES after 0, or after the last position for which this
   * function returned true.
   */
  isDue(at: number): boolean {
    if (at - this.#began < SLICE_BYTES) return false
    this.#began = at
    return true
  }
}
