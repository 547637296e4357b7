// How often somebody may try: a fixed window a key, in this process. It slows guessing down and bounds what hashing
// passwords may cost; it never says whether an account exists.
import { AppError } from '../errors.ts'

interface Allowance {
  readonly limit: number
  readonly windowMs: number
}

export interface Attempts {
  /** Counts one try. Throws RATE_LIMITED, with `retryAfter` in whole seconds, past the limit. */
  spend(key: string, allowance: Allowance): void
  /** Takes the tries of a key back: a sign-in that worked. */
  clear(key: string): void
}

interface Window {
  count: number
  endsAt: number
}

const KEPT_MAX = 50_000

export function attempts(now: () => number = Date.now): Attempts {
  const windows = new Map<string, Window>()
  return {
    spend(key, { limit, windowMs }) {
      const at = now()
      let window = windows.get(key)
      if (window === undefined || window.endsAt <= at) {
        window = { count: 0, endsAt: at + windowMs }
        // To the end of the order: the oldest windows are the first to be dropped.
        windows.delete(key)
        windows.set(key, window)
        const oldest = windows.keys().next()
        if (windows.size > KEPT_MAX && !oldest.done) windows.delete(oldest.value)
      }
      window.count++
      if (window.count <= limit) return
      const retryAfter = Math.max(1, Math.ceil((window.endsAt - at) / 1000))
      throw new AppError('RATE_LIMITED', `Too many tries: wait ${retryAfter} s.`, { extra: { retryAfter } })
    },
    clear: (key) => void windows.delete(key),
  }
}
