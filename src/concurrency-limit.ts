// Limits how much slow work of one kind runs at the same time in this process, per key and in total. Work does not wait
// for a slot: over the limit, it is refused immediately, and the refusal says when to retry.
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
