// Long answers are read and written in turns: between two of them other requests have the event loop. Counted in bytes, so
// that a short answer costs no turn.
import { setImmediate } from 'node:timers/promises'

/** Reading and writing this much takes about 5 ms. */
const TURN_BYTES = 128 * 1024

export class Turns {
  readonly #signal: AbortSignal | null
  #began = 0
  /** How often it gave way. */
  count = 0

  constructor(signal: AbortSignal | null) {
    this.#signal = signal
  }

  /** Another text begins. */
  begin(): void {
    this.#began = 0
  }

  /** Whether next() is to be awaited before what follows `at`. */
  isDue(at: number): boolean {
    return at - this.#began >= TURN_BYTES
  }

  /** Throws the signal's reason. */
  async next(at: number): Promise<void> {
    this.#began = at
    this.count++
    await setImmediate()
    this.#signal?.throwIfAborted()
  }
}
