// Protects two kinds of operations that a stolen session must not do: deletions, and adding a way to sign in. Both
// kinds need a recent sign-in. A deletion also needs the name of its target.
import { AppError } from '../errors.ts'
import type { Caller } from './caller.ts'

/** The maximum age of a recent sign-in (docs/errors.md#reauthentication_required). */
const RECENT_MS = 600_000

/**
 * Throws REAUTHENTICATION_REQUIRED if `confirmed` is false, if the session signed in over 10 minutes ago, or if the
 * caller is no session. `what` tells the caller which text to send as `confirm`.
 */
export function requireConfirmed(caller: Caller, confirmed: boolean, what: string, now: number): void {
  if (!confirmed) throw new AppError('REAUTHENTICATION_REQUIRED', `To confirm the deletion, send ${what} as "confirm".`)
  requireRecent(caller.kind === 'session' ? caller.signedInAt : '', now, 'delete')
}

/**
 * Throws REAUTHENTICATION_REQUIRED if `signedInAt` (ISO 8601) is over 10 minutes ago or is no time. `act` is the
 * refused action, a verb.
 */
export function requireRecent(signedInAt: string, now: number, act: string): void {
  if (now - Date.parse(signedInAt) <= RECENT_MS) return
  throw new AppError(
    'REAUTHENTICATION_REQUIRED',
    `Sign in again before you ${act}: this sign-in is over 10 minutes old.`,
  )
}
