// Limits how much slow work of one kind runs at the same time in this process. A ConcurrencyLimit limits it per key and
// in total, and refuses work over the limit immediately; the refusal says when to retry. A FairLimit lets work wait.
import { AppError } from './errors.ts'

export interface ConcurrencyLimit {
  /** Takes a slot until it is disposed. Throws RATE_LIMITED with `retryAfter` if no slot is free. */
  take(key: string): Disposable
}

interface Limits {
  /** The maximum per key. */
  readonly each: number
  readonly all: number
  readonly retryAfterSeconds: number
  /** A sentence that names the work that is running. */
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
   * Waits for a slot, and takes it until it is disposed. Work of one key gets its slots in order of arrival, and the keys
   * take turns. Returns null if no slot was free within `waitMs`. Without `waitMs`, it waits without limit.
   */
  take(key: string): Promise<Disposable>
  take(key: string, waitMs: number): Promise<Disposable | null>
}

/** `each` is the maximum per key, and `all` the maximum in total. */
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

/** Slots that are given in order of arrival. */
class FifoSlots {
  #taken = 0
  readonly #max: number
  /** The work that waits, oldest first. */
  readonly #waiting = new Set<(isTaken: boolean) => void>()

  constructor(max: number) {
    this.#max = max
  }

  get isUnused(): boolean {
    return this.#taken === 0 && this.#waiting.size === 0
  }

  /** Returns false if no slot was free at the time `until`. */
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

  /** Gives the slot to the work that has waited for longest. */
  release(): void {
    const [next] = this.#waiting
    if (next === undefined) return void this.#taken--
    this.#waiting.delete(next)
    next(true)
  }
}
