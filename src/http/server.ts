// The REST door: every route of the tables, mounted in one way. Order of a request: known route (404, 405), token
// (401), scope (403), body as JSON (413, 415, 400), place (404, 403), query and body by schema (400), the handler.
// It decides nothing about anybody: it carries.
import { fastify } from 'fastify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Authenticator, Call } from '../auth/caller.ts'
import type { Route } from '../contract/route.ts'
import { AppError, invalidRequest } from '../errors.ts'
import { docsRoutes } from './docs.ts'
import { gate } from './gate.ts'
import type { Prebuilt } from './handler.ts'
import { hangUpOf } from './hang-up.ts'
import type { Metrics } from './metrics.ts'
import { place } from './place.ts'
import type { Placed, Places } from './place.ts'
import { publicRoutes } from './public.ts'
import { readBody, readQuery } from './read.ts'
import { answer, answerPrebuilt, refuse } from './reply.ts'
import { signInRoutes } from './sign-in-bridge.ts'
import type { SignInDoor } from './sign-in-bridge.ts'
import { unknownRoute } from './unknown.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly operation?: string
  }
}

const BODY_BYTES = 1 << 20
/** Longer than any id or invitation of ours. */
const PARAM_LENGTH_MAX = 512
/** For a whole request to arrive; an answer may take longer. */
const REQUEST_MS = 30_000
const HEADERS_MS = 15_000
/** Longer than the idle time of common load balancers, so that they close first. */
const KEEP_ALIVE_MS = 72_000
const CONNECTIONS_MAX = 4096

/** What any handler gets; each handler's own type is bound to its route by Handlers. */
export interface AnyAt extends Placed {
  readonly call: Call
  readonly params: Readonly<Record<string, string>>
  readonly query: unknown
  readonly body: unknown
  readonly ifNoneMatch: string | undefined
}
/** Declared as a method, as the compiler then lets a handler of one route stand for a handler of any. */
export type AnyHandler = { handle(at: AnyAt): Promise<unknown> }['handle']

/** Who keeps what became of a call that found its place: the audit. A room that has told already is not heard twice. */
export interface Witness {
  answered(call: Call, placed: Placed): void
  refused(call: Call, placed: Placed, error: unknown): void
}

export interface Door {
  readonly routes: Readonly<Record<string, Route>>
  readonly handlers: Readonly<Record<string, AnyHandler>>
  readonly authenticator: Authenticator
  readonly places: Places
  readonly witness: Witness
  readonly signIn: SignInDoor
  /** Rejects or says false while the service cannot answer. */
  readonly ready: () => Promise<boolean>
  /** As Fastify's trustProxy. */
  readonly trustProxy: boolean | string
  /** null: nothing is counted. */
  readonly metrics: Metrics | null
  readonly log: Logger
}

/** The server, not yet listening. */
export function createServer(door: Door): FastifyInstance {
  const app = fastify({
    logger: false, // a log line for each request costs as much as the request
    bodyLimit: BODY_BYTES,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    return503OnClosing: false,
    trustProxy: door.trustProxy,
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    frameworkErrors: (error, _request, reply) => void refuse(reply, door.log, error),
    clientErrorHandler: (_error, socket) => {
      if (socket.writable) socket.end(BROKEN)
      else socket.destroy()
    },
  })
  app.server.headersTimeout = HEADERS_MS
  app.server.maxConnections = CONNECTIONS_MAX
  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff')
  })
  const { metrics } = door
  if (metrics !== null) {
    app.addHook('onResponse', async (request, reply) => {
      metrics.count(request.routeOptions.config.operation ?? 'other', reply.statusCode, reply.elapsedTime)
    })
  }
  app.setErrorHandler((error, _request, reply) => refuse(reply, door.log, error))
  readJsonOnly(app)

  for (const [id, route] of Object.entries(door.routes)) mount(app, door, id, route)
  const open = [...publicRoutes(app, door.ready), ...docsRoutes(app), ...signInRoutes(app, door.signIn)]
  const refusal = unknownRoute([...Object.values(door.routes), ...open])
  app.setNotFoundHandler((request, reply) => refuse(reply, door.log, refusal(request.method, request.url)))
  return app
}

function mount(app: FastifyInstance, door: Door, id: string, route: Route): void {
  const handle = door.handlers[id]
  if (handle === undefined) throw new Error(`no handler for the route ${id}`)
  app.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    bodyLimit: route.bodyLimit ?? BODY_BYTES,
    config: { operation: id },
    onRequest: gate(door.authenticator, route),
    handler: async (request, reply) => {
      const value = await witnessed(door, id, route, request, reply, handle)
      if (reply.raw.destroyed) return reply.hijack()
      if (route.prebuilt !== true) return answer(reply, route, value)
      if (!isPrebuilt(value)) throw new TypeError(`${id} must answer with JSON already written`)
      return answerPrebuilt(reply, route.status ?? 200, value, request.headers['if-none-match'])
    },
  })
}

/** Place, then query, then body (the order of session-interface.md §3), then the handler, all under a witness. */
async function witnessed(
  door: Door,
  id: string,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  handle: AnyHandler,
): Promise<unknown> {
  const caller = request.caller
  if (caller === null) throw new AppError('INTERNAL', 'The gate was passed by.')
  const call: Call = { caller, action: id, signal: hangUpOf(reply.raw) }
  const params = paramsOf(request.params)
  // The room of a raw body reaches by itself and then reads the body; only what it cannot see is refused here.
  const leave = route.rawBody === true && isEmpty(request.query) && isPlain(params)
  const placed = leave ? {} : await place(door.places, call, route, params)
  // A change is kept by its room, in its own transaction; a prebuilt answer by the room that wrote it.
  const isRead = route.method === 'GET' && route.place === 'datasource' && route.prebuilt !== true
  const isKept = route.method !== 'GET' || route.place === 'datasource'
  try {
    const ifNoneMatch = request.headers['if-none-match']
    const read = { query: readQuery(route, request.query), body: readBody(route, request.body) }
    const value = await handle({ ...placed, ...read, call, params, ifNoneMatch })
    if (isRead) door.witness.answered(call, placed)
    return value
  } catch (error) {
    if (isKept) door.witness.refused(call, placed, error)
    throw error
  }
}

/** JSON and nothing else, also where the body is empty: whether a route needs one is for readBody. */
function readJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined)
    else if (typeof body === 'string') void parse(request, body, done)
    else done(invalidRequest(['body: not valid JSON']))
  })
}

function paramsOf(params: unknown): Record<string, string> {
  if (typeof params !== 'object' || params === null) return {}
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
}

function isPlain(params: Readonly<Record<string, string>>): boolean {
  return Object.values(params).every((value) => /^[\w-]{1,200}$/.test(value))
}

function isEmpty(query: unknown): boolean {
  return typeof query !== 'object' || query === null || Object.keys(query).length === 0
}

function isPrebuilt(value: unknown): value is Prebuilt {
  return typeof value === 'object' && value !== null && 'json' in value && typeof value.json === 'string'
}

/** For bytes that are no HTTP at all; there is no request to answer through Fastify. */
const BROKEN_BODY = '{"error":"This is not a valid HTTP request.","code":"INVALID_REQUEST"}'
const BROKEN = `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${BROKEN_BODY.length}\r\nconnection: close\r\n\r\n${BROKEN_BODY}`
