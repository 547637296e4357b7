// Who may call an operation: the caller's scope, and that its key or session has not ended meanwhile. An operation that
// declares no scope takes no API key; that is the default here, in code, and not a list somewhere.
import { holds, type Authenticator, type Caller } from '../auth/caller.ts'
import type { Route } from '../contract/route.ts'
import { AppError } from '../errors.ts'

/** Throws SCOPE_REQUIRED. A door may check this before it reads a body. */
export function admit(caller: Caller, { scope }: Pick<Route, 'scope'>): void {
  if (scope === undefined) {
    if (caller.kind !== 'session') {
      throw new AppError('SCOPE_REQUIRED', 'API keys cannot be used for this endpoint')
    }
    return
  }
  if (!holds(caller, scope)) {
    throw new AppError('SCOPE_REQUIRED', `This API key does not have the scope ${scope}.`, {
      extra: { requiredScope: scope },
    })
  }
}

/** A body may take half a minute to arrive. For so long a caller that was authenticated before it is trusted. */
const KNOWN_MS = 1_000

/**
 * The caller as of now, admitted. A caller who sent a body slowly is looked up again, and so is every session, because
 * what a session changes stays. `knownAt`: when the door authenticated the caller, by performance.now(). Throws
 * UNAUTHENTICATED where the key or session has ended, SCOPE_REQUIRED.
 */
export async function admitNow(
  authenticator: Pick<Authenticator, 'again'>,
  caller: Caller,
  knownAt: number,
  route: Pick<Route, 'scope'>,
): Promise<Caller> {
  const isFresh = route.scope !== undefined && performance.now() - knownAt < KNOWN_MS
  const now = isFresh ? caller : await authenticator.again(caller)
  admit(now, route)
  return now
}
