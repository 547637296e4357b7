// One operation of the route tables on its way through the door: gate, place, preconditions, query and body by schema, handler, answer.
// All operations go this one way; what is particular to one is in its table entry, or in its room.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator, Call, Caller } from '../auth/caller.ts'
import type { Route } from '../contract/route.ts'
import { AppError } from '../errors.ts'
import { callerNow, gate } from './gate.ts'
import type { Prebuilt, Streamed } from './handler.ts'
import { hangUpOf } from './hang-up.ts'
import { place } from './place.ts'
import type { Placed, Places } from './place.ts'
import { readBody, readQuery } from './read.ts'
import { answer, answerPrebuilt, answerStreamed } from './reply.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation id; absent on public routes. */
    readonly operation?: string
    /** A body may hold any name as a key. */
    readonly namesAsKeys?: boolean
  }
}

/** What any handler gets; each handler's own type is bound to its route by Handlers. */
interface AnyAt extends Placed {
  readonly call: Call
  readonly params: Readonly<Record<string, string>>
  readonly query: unknown
  readonly body: unknown
  readonly ifNoneMatch: string | undefined
}
/** As AnyHandler, before there is a query or a body. */
type AnyPrecondition = { hold(at: Omit<AnyAt, 'query' | 'body'>): Promise<void> }['hold']
/** Declared as a method, as the compiler then lets a handler of one route stand for a handler of any. */
export type AnyHandler = { handle(at: AnyAt): Promise<unknown> }['handle']

/** Who keeps what became of a call that found its place: the audit. A room that has told already is not heard twice. */
export interface Witness {
  answered(call: Call, placed: Placed): void
  refused(call: Call, placed: Placed, error: unknown): void
}

/** What an operation needs of the house behind the door. */
export interface House {
  readonly handlers: Readonly<Record<string, AnyHandler>>
  /** Of few operations. */
  readonly preconditions: Readonly<Record<string, AnyPrecondition | undefined>>
  readonly authenticator: Authenticator
  readonly places: Places
  readonly witness: Witness
}

/** Mounts one operation. Throws where it has no handler. */
export function mountOperation(app: FastifyInstance, house: House, id: string, route: Route): void {
  const handle = house.handlers[id]
  if (handle === undefined) throw new Error(`no handler for the route ${id}`)
  const hold = house.preconditions[id]
  app.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    ...(route.bodyLimit === undefined ? {} : { bodyLimit: route.bodyLimit }),
    config: { operation: id, namesAsKeys: route.namesAsKeys === true },
    onRequest: gate(house.authenticator, route),
    handler: async (request, reply) => {
      const call = callOf(id, route, request, reply, await callerNow(house.authenticator, route, request))
      const params = paramsOf(request.params)
      const placed = await place(house.places, call, route, params)
      const value = await witnessed(house.witness, route, call, placed, async () => {
        const ifNoneMatch = request.headers['if-none-match']
        const at = { ...placed, call, params, ifNoneMatch }
        if (route.rawBody === true) return await handleRaw(handle, at, route, request)
        await hold?.(at)
        return await handle({ ...at, query: readQuery(route, request.query), body: readBody(route, request.body) })
      })
      if (reply.raw.destroyed) return reply.hijack()
      if (isStreamed(route, value)) return await answerStreamed(reply, value)
      if (route.prebuilt !== true) return answer(reply, route, value)
      if (!isPrebuilt(value)) throw new TypeError(`${id} must answer with JSON already written`)
      return answerPrebuilt(reply, route.status ?? 200, value, request.headers['if-none-match'])
    },
  })
}

function callOf(action: string, route: Route, request: FastifyRequest, reply: FastifyReply, caller: Caller): Call {
  const call = { caller, action, signal: hangUpOf(reply.raw), client: clientOf(request) }
  // Behind proxies an address costs something to find: no query needs it.
  return route.scope === undefined ? { ...call, address: request.ip } : call
}

const CLIENT_LENGTH_MAX = 200

/** The program behind the call, as it names itself; what is not plain is shown as '?'. */
function clientOf(request: FastifyRequest): string | undefined {
  return request.headers['user-agent']?.slice(0, CLIENT_LENGTH_MAX).replaceAll(/[^\x20-\x7e]/g, '?')
}

/**
 * A raw body is read by its room, after 404 and 409. So are parameters that nobody knows: the room is handed no body,
 * refuses that where a body has its turn, and what is told is the parameter.
 */
async function handleRaw(
  handle: AnyHandler,
  at: Omit<AnyAt, 'query' | 'body'>,
  route: Route,
  request: FastifyRequest,
): Promise<unknown> {
  const surplus = surplusOf(route, request.query)
  try {
    return await handle({ ...at, query: {}, body: surplus === null ? request.body : undefined })
  } catch (error) {
    throw surplus !== null && error instanceof AppError && error.code === surplus.code ? surplus : error
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

/** A change is kept by its room, in its own transaction; a prebuilt answer by the room that wrote it. */
async function witnessed(
  witness: Witness,
  route: Route,
  call: Call,
  placed: Placed,
  work: () => Promise<unknown>,
): Promise<unknown> {
  const inDatasource = route.place === 'datasource'
  try {
    const value = await work()
    if (route.method === 'GET' && inDatasource && route.prebuilt !== true) witness.answered(call, placed)
    return value
  } catch (error) {
    if (route.method !== 'GET' || inDatasource) witness.refused(call, placed, error)
    throw error
  }
}

function paramsOf(params: unknown): Record<string, string> {
  if (typeof params !== 'object' || params === null) return {}
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
}

function isStreamed(route: Route, value: unknown): value is Streamed {
  return route.streams !== undefined && typeof value === 'object' && value !== null && 'parts' in value
}

function isPrebuilt(value: unknown): value is Prebuilt {
  return typeof value === 'object' && value !== null && 'json' in value
}
