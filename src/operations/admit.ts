// Decides who may call an operation: checks the scope, and that the key or session is still valid. An operation without
// a scope accepts no API key. That default is in code, not in a list.
import type { Authenticator } from '../auth/authenticate.ts'
import { holds, type Caller } from '../auth/caller.ts'
import type { Route } from '../contract/route-type.ts'
import { AppError } from '../errors.ts'

/** Throws SCOPE_REQUIRED. REST and the connector may call it before they read a body. */
export function admit(caller: Caller, { scope }: Pick<Route, 'scope'>): void {
  if (scope === undefined) {
    if (caller.kind !== 'session') {
      throw new AppError('SCOPE_REQUIRED', 'API keys cannot be used for this endpoint')
    }
    return
  }
  if (!holds(caller, scope)) {
    const message =
      caller.kind === 'grant'
        ? `This agent was not granted the scope ${scope}.`
        : `This API key does not have the scope ${scope}.`
    throw new AppError('SCOPE_REQUIRED', message, {
      extra: { requiredScope: scope },
    })
  }
}

/** A body may take half a minute to arrive. Within this time, the caller is not looked up again. */
const KNOWN_MS = 1_000

/**
 * Returns the caller's current state, if admitted. The caller is looked up again after a slow body. Sessions are always
 * looked up again, because their changes are permanent. `knownAt`: when the caller was authenticated, by
 * performance.now(). Throws UNAUTHENTICATED if the key or session has ended, and SCOPE_REQUIRED.
 */
export async function admitNow(
  authenticator: Pick<Authenticator, 'again'>,
  caller: Caller,
  knownAt: number,
  route: Pick<Route, 'scope'>,
): Promise<Caller> {
  const now = isFresh(knownAt, route) ? caller : await authenticator.again(caller)
  admit(now, route)
  return now
}

/** Returns whether admitNow() would admit this caller without looking it up again. */
export function isAdmitted(caller: Caller, knownAt: number, route: Pick<Route, 'scope'>): boolean {
  return route.scope !== undefined && isFresh(knownAt, route) && holds(caller, route.scope)
}

function isFresh(knownAt: number, { scope }: Pick<Route, 'scope'>): boolean {
  return scope !== undefined && performance.now() - knownAt < KNOWN_MS
}
