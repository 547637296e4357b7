// Limits how much slow work of one kind runs at once in this process, per key and in total. Nobody waits for a slot: the
// refusal of a caller over the limit says when to retry.
import { AppError } from './errors.ts'

export interface ConcurrencyLimit {
  /** Takes a slot until it is disposed. Throws RATE_LIMITED with `retryAfter` if no slot is free. */
  take(key: string): Disposable
}

interface Limits {
  /** Per key. */
  readonly each: number
  readonly all: number
  readonly retryAfterSeconds: number
  /** What is running, as a sentence. */
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
