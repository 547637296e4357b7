// Reads and writes long results in time slices, and yields to the event loop between two slices. Slices are counted in
// bytes, so that a short result has only one.
import { setImmediate } from 'node:timers/promises'

/** The number of bytes in a slice. Reading and writing a slice takes about 5 ms. */
export const SLICE_BYTES = 128 * 1024

/** Runs sliced work without a pause. */
export function runToEnd<T>(work: Generator<undefined, T>): T {
  let step = work.next()
  while (step.done !== true) step = work.next()
  return step.value
}

export class TimeSlices {
  readonly #signal: AbortSignal | null
  /** The number of times that run() has yielded to the event loop. */
  count = 0

  constructor(signal: AbortSignal | null) {
    this.#signal = signal
  }

  /** Yields to the event loop whenever the work yields. Throws the signal's reason, and the errors of the work. */
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
   * Returns true if `at`, the current position, is at least SLICE_BYTES bytes after the last position for which isDue()
   * returned true. Before the first such position, measures from 0.
   */
  isDue(at: number): boolean {
    if (at - this.#began < SLICE_BYTES) return false
    this.#began = at
    return true
  }
}
