// Decides who may call an operation. Only sessions may call an operation without a scope.
import type { Authenticator } from '../auth/authenticate.ts'
import { holds, type Caller } from '../auth/caller.ts'
import type { Route } from '../contract/route-type.ts'
import { AppError } from '../errors.ts'

/** Throws SCOPE_REQUIRED. REST and the connector call this before they read a body. */
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

/** A body may take half a minute to arrive. If it takes longer than this, the caller is looked up again. */
const KNOWN_MS = 1_000

/**
 * Throws SCOPE_REQUIRED, or UNAUTHENTICATED if the key, grant or session has ended. Otherwise returns the current
 * caller. Looks up the caller again if the body was slow, or if the operation has no scope, because such operations
 * make lasting changes. `knownAt` is the time of the authentication by performance.now().
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

/** Returns true if admitNow() would admit this caller without another look-up. */
export function isAdmitted(caller: Caller, knownAt: number, route: Pick<Route, 'scope'>): boolean {
  return route.scope !== undefined && isFresh(knownAt, route) && holds(caller, route.scope)
}

function isFresh(knownAt: number, { scope }: Pick<Route, 'scope'>): boolean {
  return scope !== undefined && performance.now() - knownAt < KNOWN_MS
}
