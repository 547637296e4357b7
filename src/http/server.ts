// The REST door: every route of the tables, mounted in one way (operation.ts). Order of a request: known route (404,
// 405), token (401), scope (403), body as JSON (413, 415, 400), then the operation. The door decides nothing else.
import { fastify } from 'fastify'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Authenticator } from '../auth/caller.ts'
import type { Route } from '../contract/route.ts'
import type { AppError } from '../errors.ts'
import type { Operation } from '../operations/operations.ts'
import { docsRoutes } from './docs.ts'
import { refusalOf, textOf, VALUES_MAX, VALUES_MAX_OF_LARGE } from './json-body.ts'
import type { Metrics } from './metrics.ts'
import { mountOperation } from './operation.ts'
import { publicRoutes } from './public.ts'
import { refuse } from './reply.ts'
import { roundedParams } from './rounded.ts'
import { signInRoutes } from './sign-in-bridge.ts'
import type { SignInDoor } from './sign-in-bridge.ts'
import { unknownRoute } from './unknown.ts'

const BODY_BYTES = 1 << 20
/** Longer than any id or invitation of ours, and than most databases let a table's name be. */
const PARAM_LENGTH_MAX = 1024
/** For a whole request to arrive; an answer may take longer. */
const REQUEST_MS = 30_000
const HEADERS_MS = 15_000
/** How often Node looks for requests that are late; its default of 30 s would let them take twice as long. */
const LATE_LOOK_MS = 1_000
/** After the last answer on a broken connection the caller may read it for so long, then the socket is destroyed. */
const LINGER_MS = 1_000
/** Longer than the idle time of common load balancers, so that they close first. */
const KEEP_ALIVE_MS = 72_000
const CONNECTIONS_MAX = 4096
/**
 * Without a byte in either direction: longer than a query at its limits takes with its waits. Whoever does not read their
 * answer would have it kept in memory for ever.
 */
const STALLED_MS = 90_000

export interface Door {
  readonly authenticator: Authenticator
  /** Each route has an operation of its name. */
  readonly routes: Readonly<Record<string, Route>>
  readonly operations: Readonly<Record<string, Operation>>
  readonly signIn: SignInDoor
  /** Rejects or says false while the service cannot answer. */
  readonly ready: () => Promise<boolean>
  /** As config.ts tells. */
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
    connectionTimeout: STALLED_MS,
    http: { connectionsCheckingInterval: LATE_LOOK_MS },
    return503OnClosing: false,
    trustProxy: door.trustProxy === true ? isInFront : door.trustProxy,
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    frameworkErrors: (error, _request, reply) => void refuse(reply, door.log, error),
    clientErrorHandler: (error, socket) => {
      if (!socket.writable) return void socket.destroy()
      socket.end('code' in error && error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? LATE : BROKEN)
      // Ending alone is not enough: a caller that never closes its side would keep the socket.
      setTimeout(() => socket.destroy(), LINGER_MS).unref()
    },
  })
  app.server.headersTimeout = HEADERS_MS
  app.server.maxConnections = CONNECTIONS_MAX
  app.decorateRequest('caller', null)
  app.decorateRequest('knownAt', 0)
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

  for (const [id, route] of Object.entries(door.routes)) {
    const operation = door.operations[id]
    if (operation === undefined) throw new Error(`there is no operation for the route ${id}`)
    mountOperation(app, door.authenticator, id, route, operation)
  }
  const open = [...publicRoutes(app, door.ready), ...docsRoutes(app), ...signInRoutes(app, door.signIn)]
  const refusal = unknownRoute([...Object.values(door.routes), ...open])
  // Before any body is read: Fastify would ask a request with the method QUERY for one first.
  app.addHook('onRequest', async (request) => {
    if (request.is404) throw refusal(request.method, request.url)
  })
  return app
}

/** Of the proxies behind a request the nearest, which added the last address: those before it are the caller's own claims. */
function isInFront(_address: string, hop: number): boolean {
  return hop === 0
}

/** JSON and nothing else, also where the body is empty: whether a route needs one is for readBody. */
function readJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  // Of the few routes whose schemas look no key up in an object.
  const parseNames = app.getDefaultJsonParser('ignore', 'ignore')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) return done(null, undefined)
    const text = typeof body === 'string' ? body : textOf(body)
    const parseAny = request.routeOptions.config.namesAsKeys === true ? parseNames : parse
    const parsed = (refusal: AppError | null) =>
      refusal === null ? void parseAny(request, text, checked) : void done(refusal)
    const checked: typeof done = (error, value) => done(error ?? roundedParams(text), value)
    const refusal = refusalOf(text, valuesMaxOf(request))
    if (refusal instanceof Promise) refusal.then(parsed, done)
    else parsed(refusal)
  })
}

function valuesMaxOf({ routeOptions }: FastifyRequest): number {
  return (routeOptions.bodyLimit ?? 0) > BODY_BYTES ? VALUES_MAX_OF_LARGE : VALUES_MAX
}

/** For a connection whose request cannot be read: there is no request to answer through Fastify. */
function lastAnswer(error: string): string {
  const body = JSON.stringify({ error, code: 'INVALID_REQUEST', details: [error] })
  const head = `content-type: application/json; charset=utf-8\r\ncontent-length: ${body.length}\r\nconnection: close`
  return `HTTP/1.1 400 Bad Request\r\n${head}\r\n\r\n${body}`
}

const BROKEN = lastAnswer('This is not a valid HTTP request.')
const LATE = lastAnswer('The request did not arrive in time. Send it whole within 30 seconds.')
