// What cannot be undone asks twice: the name of what goes, by a person who signed in lately.
import { AppError } from '../errors.ts'
import type { Caller } from './caller.ts'

/** session-interface.md §3. */
const RECENT_MS = 600_000

/** Throws REAUTHENTICATION_REQUIRED without the right `confirm`, or from a session signed in over 10 minutes ago. */
export function requireConfirmed(caller: Caller, confirmed: boolean, what: string, now: number): void {
  if (!confirmed) throw new AppError('REAUTHENTICATION_REQUIRED', `To delete it, send ${what} as "confirm".`)
  if (caller.kind !== 'session' || now - Date.parse(caller.signedInAt) > RECENT_MS) {
    throw new AppError(
      'REAUTHENTICATION_REQUIRED',
      'To delete it, sign in again first: this sign-in is over 10 minutes old.',
    )
  }
}
