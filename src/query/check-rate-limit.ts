// Limits how many drafts a session may check while a user types, because a check asks the database for an estimate.
import { BoundedMap } from '../bounded-map.ts'
import type { Caller } from '../auth/caller.ts'
import { AppError } from '../errors.ts'

export interface Drafts {
  /** Throws RATE_LIMITED if the session has used up its current second. */
  spend(caller: Caller): void
}

const PER_WINDOW = 10
const WINDOW_MS = 1_000
/** The maximum number of sessions that are counted. The longest inactive sessions are removed first. */
const SESSIONS_MAX = 10_000

export function openDrafts(now: () => number = Date.now): Drafts {
  const windows = new BoundedMap<string, { readonly endsAt: number; count: number }>(SESSIONS_MAX)
  return {
    spend(caller) {
      const who = caller.kind === 'session' ? caller.sessionId : caller.accountId
      const at = now()
      let window = windows.get(who)
      if (window === undefined || window.endsAt <= at) {
        window = { endsAt: at + WINDOW_MS, count: 0 }
        windows.set(who, window)
      }
      if (window.count >= PER_WINDOW) {
        const message = `A session may check ${PER_WINDOW} drafts a second. Wait 1 s.`
        throw new AppError('RATE_LIMITED', message, { extra: { retryAfter: 1 } })
      }
      window.count++
    },
  }
}
