// Protects irreversible operations: they need the name of the target and a recent sign-in.
import { AppError } from '../errors.ts'
import type { Caller } from './caller.ts'

/** docs/errors.md#reauthentication_required. */
const RECENT_MS = 600_000

/** Throws REAUTHENTICATION_REQUIRED without the right `confirm`, or if the session signed in over 10 minutes ago. */
export function requireConfirmed(caller: Caller, confirmed: boolean, what: string, now: number): void {
  if (!confirmed) throw new AppError('REAUTHENTICATION_REQUIRED', `To confirm the deletion, send ${what} as "confirm".`)
  if (caller.kind !== 'session' || now - Date.parse(caller.signedInAt) > RECENT_MS) {
    throw new AppError(
      'REAUTHENTICATION_REQUIRED',
      'Sign in again before you delete: this sign-in is over 10 minutes old.',
    )
  }
}
