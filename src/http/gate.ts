// Who may come in: the token, then the scope, before anything else of a request is looked at. A route that declares
// no scope takes no API key; that is the default here, in code, and not a list somewhere.
import type { FastifyRequest } from 'fastify'
import type { Authenticator, Caller } from '../auth/caller.ts'
import { holds } from '../auth/caller.ts'
import type { Route } from '../contract/route.ts'
import { AppError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the gate of a route of the tables; null on public routes. */
    caller: Caller | null
    /** When that was; by performance.now(). */
    knownAt: number
  }
}

/** The hook of one route. Throws UNAUTHENTICATED, always the same one, and SCOPE_REQUIRED. */
export function gate(authenticator: Authenticator, route: Route): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    // `/teams/` is no team without a name: the router takes it for one, nobody else does.
    if (hasEmptyParam(request.params)) throw new AppError('NOT_FOUND', 'There is no such route.')
    const caller = await authenticator.authenticate(request.headers.authorization)
    admit(caller, route)
    request.caller = caller
    request.knownAt = performance.now()
  }
}

/** A body may take half a minute to arrive. For so long a caller is taken for who the gate saw. */
const KNOWN_MS = 1_000

/**
 * The caller once the body is there: whoever sends it slowly is looked at again, and so is every session, since what it
 * changes stays. Throws UNAUTHENTICATED where key or session has ended, SCOPE_REQUIRED.
 */
export async function callerNow(authenticator: Authenticator, route: Route, request: FastifyRequest): Promise<Caller> {
  if (request.caller === null) throw new AppError('INTERNAL', 'The gate was passed by.')
  if (route.scope !== undefined && performance.now() - request.knownAt < KNOWN_MS) return request.caller
  const caller = await authenticator.again(request.caller)
  admit(caller, route)
  return caller
}

function hasEmptyParam(params: unknown): boolean {
  return typeof params === 'object' && params !== null && Object.values(params).includes('')
}

function admit(caller: Caller, route: Route): void {
  if (route.scope === undefined) {
    if (caller.kind !== 'session') {
      throw new AppError('SCOPE_REQUIRED', 'API keys cannot be used for this endpoint')
    }
    return
  }
  if (!holds(caller, route.scope)) {
    throw new AppError('SCOPE_REQUIRED', `This API key does not have the scope ${route.scope}.`, {
      extra: { requiredScope: route.scope },
    })
  }
}
