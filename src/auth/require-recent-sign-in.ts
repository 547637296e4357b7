// A stolen session must not be enough to delete something or to add a way to sign in. So both need a recent sign-in,
// and a deletion must be confirmed with the name of what is deleted.
import { AppError } from '../errors.ts'
import type { Caller } from './caller.ts'

/** The maximum age of a sign-in (docs/errors.md#reauthentication_required). */
const RECENT_MS = 600_000

/**
 * Throws REAUTHENTICATION_REQUIRED. `what` is what the caller must send as `confirm`, for example "its e-mail address".
 */
export function requireConfirmed(caller: Caller, confirmed: boolean, what: string, now: number): void {
  if (!confirmed) throw new AppError('REAUTHENTICATION_REQUIRED', `To confirm the deletion, send ${what} as "confirm".`)
  requireRecent(caller.kind === 'session' ? caller.signedInAt : '', now, 'delete')
}

/** Throws REAUTHENTICATION_REQUIRED. `signedInAt` is in ISO 8601. `act` is a verb for the error text. */
export function requireRecent(signedInAt: string, now: number, act: string): void {
  if (now - Date.parse(signedInAt) <= RECENT_MS) return
  throw new AppError(
    'REAUTHENTICATION_REQUIRED',
    `Sign in again before you ${act}: this sign-in is over 10 minutes old.`,
  )
}
