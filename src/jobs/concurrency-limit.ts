// How much of one kind of work may be under way at once in this process, of one thing and of all together: what takes long
// and keeps a connection or the store busy. Nobody waits for a slot: whoever comes too early is told when to come again.
import { AppError } from '../errors.ts'

export interface ConcurrencyLimit {
  /** Held until it is disposed. Throws RATE_LIMITED, with `retryAfter`, where as many are held already. */
  take(key: string): Disposable
}

interface Limits {
  /** Of one key. */
  readonly each: number
  readonly all: number
  readonly retryAfterSeconds: number
  /** What is under way, as a sentence. */
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
