// The REST server. It mounts all routes of the route tables with mount-operation.ts. Requests are checked in this
// order: known route (404, 405), token (401), scope (403), JSON body (413, 415, 400). The operation checks everything
// else.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { fastify } from 'fastify'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Authenticator } from '../auth/authenticate.ts'
import type { Route } from '../contract/route-type.ts'
import type { Operation } from '../operations/order-of-checks.ts'
import type { OpenOperations } from '../operations/without-token.ts'
import { consoleRoutes } from './console-files.ts'
import { allowOrigins } from './cors.ts'
import { docsRoutes } from './api-docs.ts'
import type { AccessLog, Answered } from './access-log.ts'
import type { Metrics } from './metrics-endpoint.ts'
import { mountOperation } from './mount-operation.ts'
import { openRoutes } from './routes-without-token.ts'
import { publicRoutes } from './health-routes.ts'
import { readQueries, type QueryConnections } from './query-connection.ts'
import { quickQuery, type QuickQuery } from './query-short-path.ts'
import { readJsonOnly } from './json-body.ts'
import { openTurns, type Turns } from './one-at-a-time.ts'
import { refusalFor, refuse } from './error-responses.ts'
import { limitBodies } from './request-bodies.ts'
import { REQUEST_ID, type RequestIds } from './request-id.ts'
import { JSON_TYPE } from './send-answer.ts'
import { oauthRoutes, type OAuthDoor } from './oauth-routes.ts'
import { signInRoutes } from './sign-in-routes.ts'
import type { SignInDoor } from './sign-in-routes.ts'
import { unknownRoute } from './unknown-route.ts'
import { malformedBody, unreadableRequests } from './unreadable-requests.ts'

const BODY_BYTES = 1 << 20
/** Ids, invitation tokens and the table names of most databases are shorter. */
const PARAM_LENGTH_MAX = 1024
const REQUEST_MS = 30_000
const HEADERS_MS = 15_000
/** How often Node looks for late requests. By default, a late request could stay for another 30 s. */
const LATE_CHECK_MS = 1_000
/** Longer than the idle timeout of common load balancers, so that they close a connection first. */
const KEEP_ALIVE_MS = 72_000
/** A connection without traffic is closed after this time. The slowest possible query takes less. */
const STALLED_MS = 90_000

export interface Door {
  readonly authenticator: Authenticator
  /** Each route has an operation of the same name. */
  readonly routes: Readonly<Record<string, Route>>
  readonly operations: Readonly<Record<string, Operation>>
  readonly signIn: SignInDoor
  readonly oauth: OAuthDoor
  readonly open: OpenOperations
  /** True after SIGTERM. Then answers ask clients to use another connection. */
  readonly isDraining: () => boolean
  /** Throws a refusal while the service should not get requests. */
  readonly ready: () => Promise<void>
  /** The folder of the built console, if it is not beside the service. */
  readonly consoleDir?: string
  readonly trustProxy: boolean | string
  readonly corsOrigins: ReadonlySet<string>
  /** Null if metrics are off. */
  readonly metrics: Metrics | null
  /** Null if the access log is off. */
  readonly accessLog: AccessLog | null
  /** Records the spans of an answer. Null if requests are not traced. */
  readonly tracing: { request(answered: Answered): void } | null
  readonly requestIds: RequestIds
  readonly log: Logger
}

/** The server does not listen yet. */
export function createServer(door: Door): FastifyInstance {
  const turns = openTurns()
  const app = fastify({
    logger: false, // logging a request costs as much as answering it
    requestIdHeader: REQUEST_ID, // set before Fastify sees the request
    genReqId: door.requestIds.next,
    bodyLimit: BODY_BYTES,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionTimeout: STALLED_MS,
    http: {
      connectionsCheckingInterval: LATE_CHECK_MS,
      // Node would answer these requests before the limits of connections.ts apply. malformedHead() refuses them.
      requireHostHeader: false,
    },
    return503OnClosing: false,
    trustProxy: door.trustProxy === true ? isInFront : door.trustProxy,
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    frameworkErrors: (error, _request, reply) => void refuse(reply, door.log, error),
    clientErrorHandler: unreadableRequests(turns, door.requestIds.next, REQUEST_MS),
  })
  app.server.headersTimeout = HEADERS_MS
  app.decorateRequest('caller', null)
  app.decorateRequest('knownAt', 0)
  app.decorateRequest('refusal', null)
  app.decorateRequest('trace', null)
  if (door.tracing !== null) {
    app.addHook('onRequest', async (request) => {
      request.trace = { query: null }
    })
  }
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff')
    if (door.isDraining()) reply.header('connection', 'close')
  })
  allowOrigins(app, door.corsOrigins)
  const answered = observersOf(door)
  if (answered !== null) {
    app.addHook('onResponse', async (request, reply) => {
      const { id: requestId, method, caller, params, refusal: code, trace } = request
      const traceparent = request.headers['traceparent']
      const traced = { trace, ...(typeof traceparent === 'string' && { traceparent }) }
      const operation = request.routeOptions.config.operation ?? 'other'
      const durationMs = reply.elapsedTime
      answered({ requestId, method, operation, status: reply.statusCode, code, durationMs, caller, params, ...traced })
    })
  }
  app.setErrorHandler((error, _request, reply) => refuse(reply, door.log, error))
  const parse = readJsonOnly(app)
  receive(app, door, turns, answered, parse)

  for (const [id, route] of Object.entries(door.routes)) {
    const operation = door.operations[id]
    if (operation === undefined) throw new Error(`there is no operation for the route ${id}`)
    mountOperation(app, door.authenticator, id, route, operation)
  }
  const open = [
    ...publicRoutes(app, door.ready),
    ...openRoutes(app, door.open),
    ...consoleRoutes(app, door.consoleDir),
    ...docsRoutes(app),
    ...signInRoutes(app, door.signIn),
    ...oauthRoutes(app, door.oauth),
  ]
  const refusal = unknownRoute([...Object.values(door.routes), ...open])
  // This runs before the body is read. Otherwise Fastify would refuse a QUERY request without a body first.
  app.addHook('onRequest', async (request) => {
    if (request.is404) throw refusal(request.method, request.url)
  })
  return app
}

/** Null if metrics, the access log and tracing are all off. */
function observersOf({ metrics, accessLog, tracing, trustProxy }: Door): ((answered: Answered) => void) | null {
  if (metrics === null && tracing === null) return accessLog
  return (answered) => {
    metrics?.count(answered.operation, answered.status, answered.durationMs, answered.code)
    accessLog?.(answered)
    const { traceparent: _untrusted, ...own } = answered
    // Without a proxy, a caller could add its requests to any trace with the header `traceparent`.
    tracing?.request(trustProxy === false ? own : answered)
  }
}

/** Gives each request an id. The short path answers the requests that it can, and Fastify answers the others. */
function receive(
  app: FastifyInstance,
  door: Door,
  turns: Turns,
  answered: ((answered: Answered) => void) | null,
  parse: (body: Buffer) => unknown,
): void {
  const { authenticator, requestIds, log } = door
  const { runQuery: route } = door.routes
  const { runQuery: operation } = door.operations
  const refusal = (error: unknown, requestId: string) => refusalFor(error, log, requestId)
  const quick: QuickQuery | null =
    route === undefined || operation === undefined
      ? null
      : { authenticator, id: 'runQuery', route, operation, parse, refusal, answered, isTraced: door.tracing !== null }
  // While the server closes, every answer must tell the client so. Only Fastify does this.
  const isOpen = (): boolean => app.server.listening && !door.isDraining()
  const take = quick === null ? null : quickQuery(quick, isOpen)
  if (quick !== null) readFromSockets(app.server, { door: quick, isOpen, requestIds })
  const ordinary = app.server.listeners('request')
  app.server.removeAllListeners('request')
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const requestId = requestIds.of(request)
    const refused = malformedHead(request)
    if (refused !== null) {
      const headers = { 'content-type': JSON_TYPE, [REQUEST_ID]: requestId, connection: 'close' }
      return void response.writeHead(refused.status, headers).end(malformedBody(refused.why))
    }
    if (take !== null && isOpen() && take(request, response, requestId)) return
    // Set here, so that the header is also in the event streams of the agent connector.
    response.setHeader(REQUEST_ID, requestId)
    for (const each of ordinary) each.call(app.server, request, response)
  }
  app.server.on('request', turns.listener(listener))
  limitBodies(app.server)
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
}

/**
 * Refuses requests that HTTP/1.1 forbids: without a Host header or with several (RFC 9112, 3.2), or with an unknown
 * expectation (RFC 9110, 10.1.1). Returns null for other requests.
 */
function malformedHead(request: IncomingMessage): { readonly status: number; readonly why: string } | null {
  const { rawHeaders, headers, httpVersion } = request
  let hosts = 0
  for (let n = 0; n < rawHeaders.length; n += 2) if (rawHeaders[n]?.toLowerCase() === 'host') hosts++
  if (hosts > 1) return { status: 400, why: 'The request has several Host headers. Send one.' }
  if (hosts === 0 && httpVersion === '1.1') return { status: 400, why: 'The request has no Host header. Send one.' }
  if (headers.expect === undefined || headers.expect.toLowerCase() === '100-continue') return null
  return { status: 417, why: 'The service does not support this Expect header. Omit it.' }
}

/** query-connection.ts sees each new connection first. */
function readFromSockets(server: Server, deps: Pick<QueryConnections, 'door' | 'isOpen' | 'requestIds'>): void {
  const ordinary = server.listeners('connection')
  server.removeAllListeners('connection')
  const handOver = (socket: Socket): void => {
    for (const listener of ordinary) listener.call(server, socket)
  }
  const more = { server, ordinary: handOver, keepAliveMs: KEEP_ALIVE_MS, stalledMs: STALLED_MS }
  server.on('connection', readQueries({ ...deps, ...more }))
}

/** Trusts only the nearest proxy, which added the last address. A caller may have forged the others. */
function isInFront(_address: string, hop: number): boolean {
  return hop === 0
}
