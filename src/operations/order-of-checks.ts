// Every call takes these steps in this order: check the scope, find the team or datasource, check preconditions,
// validate the input, run the operation, record the call. The first step that fails decides the error.
import type { Audit } from '../audit/audit.ts'
import type { AuditPlace } from '../audit/make-rows.ts'
import type { Authenticator } from '../auth/authenticate.ts'
import type { Arrival, Call } from '../auth/caller.ts'
import type { Route } from '../contract/route-type.ts'
import { AppError } from '../errors.ts'
import { admitNow, isAdmitted } from './admit.ts'
import type { Answer, Definitions, Input, OperationId } from './operation-types.ts'
import { knownPlace, place, type Placed, type Places } from './find-place.ts'
import { readBody, readQuery } from './validate.ts'

/** Throws an AppError with a code of the table in errors.ts. */
export type Operation = (arrival: Arrival, input: Input) => Promise<unknown>

export type Operations = {
  readonly [N in OperationId]: (arrival: Arrival, input: Input) => Promise<Answer<N>>
}

export interface SharedDeps {
  readonly authenticator: Pick<Authenticator, 'again'>
  readonly places: Places
  readonly audit: Pick<Audit, 'record' | 'refused'>
}

/** Definitions with a more specific type of `at` are assignable to this type, because methods are bivariant. */
type AnyRun = { run(at: AnyAt): Promise<unknown> }['run']
export type AnyDefinition = AnyRun | { require(at: AnyAt): Promise<void>; run(at: AnyAt): Promise<unknown> }

interface AnyAt extends Placed {
  readonly call: Call
  readonly params: Readonly<Record<string, string>>
  readonly query?: unknown
  readonly body?: unknown
}

type Routes = Readonly<Record<string, Route>>

/** Throws if a definition has no route. */
export function bind(shared: SharedDeps, routes: Routes, definitions: Definitions): Operations
export function bind(
  shared: SharedDeps,
  routes: Routes,
  definitions: Readonly<Record<string, AnyDefinition>>,
): Readonly<Record<string, Operation>>
export function bind(
  shared: SharedDeps,
  routes: Routes,
  definitions: Readonly<Record<string, AnyDefinition>>,
): Readonly<Record<string, Operation>> {
  return Object.fromEntries(
    Object.entries(definitions).map(([id, definition]) => {
      const route = routes[id]
      if (route === undefined) throw new Error(`the operation ${id} is not declared`)
      return [id, operation(shared, id, route, definition)]
    }),
  )
}

function operation(shared: SharedDeps, id: string, route: Route, definition: AnyDefinition): Operation {
  const { require, run } = typeof definition === 'function' ? { require: undefined, run: definition } : definition
  const ordinary: Operation = async ({ caller: known, knownAt, ...rest }, { params = {}, query, body }) => {
    const caller = await admitNow(shared.authenticator, known, knownAt, route)
    const call: Call = { caller, action: id, ...rest }
    const placed = await place(shared.places, call, route, params)
    const at = { ...placed, call, params }
    try {
      const value =
        route.rawBody === true
          ? await runWithRawBody(run, at, route, query, body)
          : await runValidated(require, run, at, route, query, body)
      if (isRecordedRead(route)) shared.audit.record(call, { ...placeOf(placed), outcome: 'ANSWERED' })
      return value
    } catch (error) {
      if (isRecordedRefusal(route, placed)) shared.audit.refused(call, placeOf(placed), error)
      throw error
    }
  }
  return isQuick(route) ? quick(shared, id, route, run, ordinary) : ordinary
}

/** True for routes that run or check a query. src/query validates the body and records the call. */
function isQuick(route: Route): boolean {
  return route.rawBody === true && route.method === 'POST' && route.scope !== undefined && route.query === undefined
}

/** Takes the same steps without promises, for speed. If a check fails or a cache lacks something, `ordinary` runs. */
function quick(shared: SharedDeps, id: string, route: Route, run: AnyRun, ordinary: Operation): Operation {
  return (arrival, input) => {
    const { caller, knownAt } = arrival
    const { params = {}, query, body } = input
    const isUsual = isAdmitted(caller, knownAt, route) && (query === undefined || surplusOf(route, query) === null)
    const placed = isUsual ? knownPlace(shared.places, caller, route, params) : null
    if (placed === null) return ordinary(arrival, input)
    const call: Call = { ...arrival, action: id }
    const { membership, reached } = placed
    return run({ membership, reached, call, params, query: NO_QUERY, body })
  }
}

const NO_QUERY = {}

async function runValidated(
  require: AnyRun | undefined,
  run: AnyRun,
  at: AnyAt,
  route: Route,
  query: unknown,
  body: unknown,
): Promise<unknown> {
  await require?.(at)
  return await run({ ...at, query: readQuery(route, query), body: readBody(route, body) })
}

/**
 * Some operations validate their body themselves, after their errors 404 and 409. An unknown query parameter must be
 * reported after these errors too. So in this case, the operation runs without a body. When it refuses the missing
 * body, the error about the parameter is thrown instead.
 */
async function runWithRawBody(run: AnyRun, at: AnyAt, route: Route, query: unknown, body: unknown): Promise<unknown> {
  const surplus = surplusOf(route, query)
  if (surplus === null) return await run({ ...at, query: {}, body })
  try {
    return await run({ ...at, query: {}, body: undefined })
  } catch (error) {
    throw error instanceof AppError && error.code === surplus.code ? surplus : error
  }
}

function surplusOf(route: Route, query: unknown): AppError | null {
  try {
    readQuery(route, query)
    return null
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
}

/** A change is recorded by its operation. A prebuilt answer is recorded by the code that makes it. */
function isRecordedRead(route: Route): boolean {
  return route.method === 'GET' && route.place === 'datasource' && route.prebuilt !== true
}

/** Refused reads of a team are not recorded. */
function isRecordedRefusal(route: Route, { membership }: Placed): boolean {
  if (route.rawBody === true || membership === undefined) return false
  return route.method !== 'GET' || route.place === 'datasource'
}

function placeOf({ membership, reached }: Placed): AuditPlace {
  return {
    ...(membership !== undefined && { teamId: membership.teamId }),
    ...(reached !== undefined && { datasourceId: reached.id }),
  }
}
