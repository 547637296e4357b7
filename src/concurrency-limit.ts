// Limits how much slow work of one kind runs at the same time in this process: for each key (such as a team), and in
// all. If there is too much, a ConcurrencyLimit refuses further work, and says when to try again. A FairLimit lets it
// wait.
import { AppError } from './errors.ts'

export interface ConcurrencyLimit {
  /**
   * The work may run until the result is disposed. Throws RATE_LIMITED with `retryAfter` if too much work is running.
   */
  take(key: string): Disposable
}

interface Limits {
  /** The maximum for each key. */
  readonly each: number
  readonly all: number
  readonly retryAfterSeconds: number
  /** A sentence about the work that is running. */
  readonly why: string
}

export function openConcurrencyLimit({ each, all, retryAfterSeconds: retryAfter, why }: Limits): ConcurrencyLimit {
  const held = new Map<string, number>()
  let total = 0
  const add = (key: string, by: 1 | -1) => {
    const count = (held.get(key) ?? 0) + by
    if (count === 0) held.delete(key)
    else held.set(key, count)
    total += by
  }
  return {
    take(key) {
      if ((held.get(key) ?? 0) >= each || total >= all) {
        throw new AppError('RATE_LIMITED', `${why} Wait ${retryAfter} s.`, { extra: { retryAfter } })
      }
      add(key, 1)
      return { [Symbol.dispose]: () => add(key, -1) }
    },
  }
}

export interface FairLimit {
  /**
   * Waits until the work may run, which is until the result is disposed. Work with the same key runs in the order of
   * arrival, and the keys take turns. Returns null if the work could not begin within `waitMs`. Without `waitMs`, waits
   * as long as needed.
   */
  take(key: string): Promise<Disposable>
  take(key: string, waitMs: number): Promise<Disposable | null>
}

/** `each` is the maximum for each key, and `all` is the maximum in all. */
export function openFairLimit(limits: { readonly each: number; readonly all: number }): FairLimit {
  return new FairSlots(limits)
}

class FairSlots implements FairLimit {
  readonly #each: number
  readonly #all: FifoSlots
  readonly #ofKeys = new Map<string, FifoSlots>()

  constructor({ each, all }: { readonly each: number; readonly all: number }) {
    this.#each = each
    this.#all = new FifoSlots(all)
  }

  take(key: string): Promise<Disposable>
  take(key: string, waitMs: number): Promise<Disposable | null>
  async take(key: string, waitMs?: number): Promise<Disposable | null> {
    const until = waitMs === undefined ? null : performance.now() + waitMs
    const ofKey = this.#ofKeys.get(key) ?? new FifoSlots(this.#each)
    this.#ofKeys.set(key, ofKey)
    const leave = () => {
      ofKey.release()
      if (ofKey.isUnused && this.#ofKeys.get(key) === ofKey) this.#ofKeys.delete(key)
    }
    if (!(await ofKey.take(until))) return null
    if (!(await this.#all.take(until))) {
      leave()
      return null
    }
    return {
      [Symbol.dispose]: () => {
        this.#all.release()
        leave()
      },
    }
  }
}

/** Slots are given in the order of arrival. */
class FifoSlots {
  #taken = 0
  readonly #max: number
  /** The work that waits. The oldest comes first. */
  readonly #waiting = new Set<(isTaken: boolean) => void>()

  constructor(max: number) {
    this.#max = max
  }

  get isUnused(): boolean {
    return this.#taken === 0 && this.#waiting.size === 0
  }

  /** Returns false if no slot was free until the time `until`. */
  async take(until: number | null): Promise<boolean> {
    if (this.#taken < this.#max) {
      this.#taken++
      return true
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#waiting.add(resolve)
    if (until === null) return await promise
    const timer = setTimeout(() => {
      this.#waiting.delete(resolve)
      resolve(false)
    }, until - performance.now())
    try {
      return await promise
    } finally {
      clearTimeout(timer)
    }
  }

  /** The slot goes to the work that has waited for longest. */
  release(): void {
    const [next] = this.#waiting
    if (next === undefined) return void this.#taken--
    this.#waiting.delete(next)
    next(true)
  }
}
