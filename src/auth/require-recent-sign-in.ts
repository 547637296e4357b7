// Protects operations that a stolen session must not do: deleting something and adding another way to sign in. Both
// need a recent sign-in. A deletion also needs the name of its target.
import { AppError } from '../errors.ts'
import type { Caller } from './caller.ts'

/** The maximum age of a recent sign-in (docs/errors.md#reauthentication_required). */
const RECENT_MS = 600_000

/** Throws REAUTHENTICATION_REQUIRED without the right `confirm`, or if the session signed in over 10 minutes ago. */
export function requireConfirmed(caller: Caller, confirmed: boolean, what: string, now: number): void {
  if (!confirmed) throw new AppError('REAUTHENTICATION_REQUIRED', `To confirm the deletion, send ${what} as "confirm".`)
  requireRecent(caller.kind === 'session' ? caller.signedInAt : '', now, 'delete')
}

/** Throws REAUTHENTICATION_REQUIRED if the session signed in over 10 minutes ago, or never, to do `act`. */
export function requireRecent(signedInAt: string, now: number, act: string): void {
  if (now - Date.parse(signedInAt) <= RECENT_MS) return
  throw new AppError(
    'REAUTHENTICATION_REQUIRED',
    `Sign in again before you ${act}: this sign-in is over 10 minutes old.`,
  )
}
