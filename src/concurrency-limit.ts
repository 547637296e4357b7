// Limits how much slow work of one kind runs at the same time in this process. A ConcurrencyLimit limits it per key and
// in total, and refuses work over the limit immediately; the refusal says when to retry. A FifoLimit lets work wait.
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

export interface FifoLimit {
  /**
   * Waits for a slot, in order of arrival, and takes it until it is disposed. Returns null if no slot was free within
   * `waitMs`. Without `waitMs`, it waits without limit.
   */
  take(): Promise<Disposable>
  take(waitMs: number): Promise<Disposable | null>
}

export function openFifoLimit(max: number): FifoLimit {
  return new Slots(max)
}

class Slots implements FifoLimit {
  #free: number
  /** The work that waits, oldest first. */
  readonly #waiting = new Set<(slot: Disposable) => void>()

  constructor(max: number) {
    this.#free = max
  }

  take(): Promise<Disposable>
  take(waitMs: number): Promise<Disposable | null>
  async take(waitMs?: number): Promise<Disposable | null> {
    if (this.#free > 0) return this.#slot()
    const { promise, resolve } = Promise.withResolvers<Disposable | null>()
    this.#waiting.add(resolve)
    if (waitMs === undefined) return await promise
    const timer = setTimeout(() => {
      this.#waiting.delete(resolve)
      resolve(null)
    }, waitMs)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
    }
  }

  #slot(): Disposable {
    this.#free--
    return { [Symbol.dispose]: () => this.#release() }
  }

  #release(): void {
    this.#free++
    const [next] = this.#waiting
    if (next === undefined) return
    this.#waiting.delete(next)
    next(this.#slot())
  }
}
