// Opens all rooms (composition-root.ts) and two doors to them: REST, and the agent connector.
import type { Logger } from 'pino'
import type { Authenticator } from './auth/authenticate.ts'
import type { Config } from './config.ts'
import type { Route } from './contract/route-type.ts'
import { ROUTES } from './contract/key-routes.ts'
import { SESSION_ROUTES } from './contract/signed-in-routes.ts'
import { mountConnector, type ConnectorDoor } from './connector/mcp-route.ts'
import { holdConnections } from './http/connections.ts'
import type { DocumentTransport } from './oauth/client-documents.ts'
import { openAccessLog } from './http/access-log.ts'
import { openMetrics, metricsRoutes } from './http/metrics-endpoint.ts'
import { errorBodyOf } from './http/error-responses.ts'
import { openRequestIds } from './http/request-id.ts'
import { openSideServer, healthRoutes, type SideRoutes } from './http/second-listener.ts'
import { readiness } from './readiness.ts'
import { readingsOf } from './exported-metrics.ts'
import { createServer } from './http/server.ts'
import { openOperations } from './operations/all-operations.ts'
import { bind, type AnyDefinition, type Operations } from './operations/order-of-checks.ts'
import { openRouteOperations } from './operations/without-token.ts'
import { sharedDepsOf, openRooms, type RoomsOptions } from './composition-root.ts'
import { delay, drainServer } from './shutdown.ts'

export interface AppOptions {
  readonly config: Config
  readonly log: Logger
  /** The folder of the built console, if it is not beside the service. */
  readonly consoleDir?: string
  /** Conformance tests of the connector replace the authentication, and the server behind the route. */
  readonly connector?: Partial<Pick<ConnectorDoor, 'authenticator' | 'sdk'>>
  readonly documents?: DocumentTransport
  readonly passwords?: RoomsOptions['passwords']
  readonly more?: {
    readonly routes: Readonly<Record<string, Route>>
    /** For tests of the HTTP layer. */
    readonly operations: Readonly<Record<string, AnyDefinition>>
  }
}

export interface App extends AsyncDisposable {
  /**
   * Shuts down in three steps. For config.drainDelayMs, requests are accepted, but the readiness probe fails. Then, for
   * up to config.graceMs, running requests may finish, but no request is accepted. Then queries that still run are
   * cancelled in the database, answered with 503 and audited. `hurry` ends the first two steps. Disposing the app skips
   * them.
   */
  drain(hurry: AbortSignal): Promise<void>
  /** Returns the address, for example `http://127.0.0.1:3000`. */
  listen(): Promise<string>
  /** Loads and compiles modules, so that the first calls need not wait for them. Never rejects. */
  warm(signal: AbortSignal): Promise<void>
  /** Null if the first account needs no setup token. */
  setupToken(): Promise<string | null>
  isNew(): Promise<boolean>
  /** Copies the SQLite store, with all audit rows so far. Null on PostgreSQL. */
  readonly copyTo: ((path: string) => Promise<void>) | null
  readonly authenticator: Authenticator
  readonly operations: Operations
}

/** Opens everything except the main port. If something fails, closes what is open and throws. */
export async function createApp(options: AppOptions): Promise<App> {
  const { config, log, documents, passwords } = options
  await using opened = new AsyncDisposableStack()
  let listening = `http://${config.host}:${config.port}`
  const origin = () => config.publicUrl ?? listening
  const given = {
    ...(documents === undefined ? {} : { documents }),
    ...(passwords === undefined ? {} : { passwords }),
  }
  const rooms = opened.use(await openRooms({ config, log, origin, ...given }))
  const { store, signIn } = rooms
  const shared = sharedDepsOf(rooms)
  const operations = openOperations(shared, rooms)
  const more = options.more === undefined ? {} : bind(shared, options.more.routes, options.more.operations)
  const readings = () => readingsOf(rooms, connections)
  const metrics = config.metricsAddr === null ? null : opened.use(openMetrics(readings))
  let draining = false
  const ready = readiness({ store, audit: rooms.audit, isDraining: () => draining })
  const tracing = config.otel === null ? null : opened.use((await import('./tracing.ts')).openTracing(config.otel))
  const requestIds = openRequestIds(config.trustProxy !== false)
  const server = createServer({
    authenticator: rooms.authenticator,
    routes: { ...ROUTES, ...SESSION_ROUTES, ...options.more?.routes },
    operations: { ...operations, ...more },
    signIn,
    oauth: rooms.oauth,
    open: openRouteOperations(rooms),
    isDraining: () => draining,
    ready,
    ...(options.consoleDir === undefined ? {} : { consoleDir: options.consoleDir }),
    trustProxy: config.trustProxy,
    corsOrigins: config.corsOrigins,
    metrics,
    accessLog: config.accessLog ? openAccessLog(log) : null,
    tracing,
    requestIds,
    log,
  })
  const { authenticator } = rooms
  mountConnector(server, {
    publicUrl: config.publicUrl,
    loopback: config.loopback,
    corsOrigins: config.corsOrigins,
    authenticator,
    operations,
    origin,
    log,
    ...options.connector,
  })
  opened.defer(() => server.close())
  const maxPerAddress = config.trustProxy === false ? config.connectionsPerAddressMax : null
  const connections = holdConnections(server.server, { max: config.connectionsMax, maxPerAddress }, requestIds.next)
  const side = new Map<string, SideRoutes>()
  if (metrics !== null && config.metricsAddr !== null) side.set(config.metricsAddr, metricsRoutes(metrics))
  if (config.healthAddr !== null) {
    const others = side.get(config.healthAddr)
    side.set(config.healthAddr, { ...others, ...healthRoutes(ready, (error, id) => errorBodyOf(error, log, id)) })
  }
  for (const [address, routes] of side) {
    const listener = opened.use(await openSideServer(address, routes, requestIds.next))
    log.info({ address: listener.address, paths: Object.keys(routes) }, 'listening for probes and collectors')
  }

  let drained: Promise<void> | undefined
  const drain = (hurry: AbortSignal): Promise<void> =>
    (drained ??= (async () => {
      draining = true
      await delay(server.server.listening ? config.drainDelayMs : 0, hurry)
      await drainServer(server, connections, rooms.running, config.graceMs, hurry)
    })())

  const held = opened.move()
  return {
    async listen() {
      listening = await server.listen({ host: config.host, port: config.port })
      if (config.smtp !== null && config.publicUrl === null && !config.loopback) {
        log.warn({ origin: listening }, 'VITRINE_PUBLIC_URL is not set: links in mails start with this origin')
      }
      return listening
    },
    async warm(signal) {
      try {
        for (const driver of rooms.drivers.values()) await driver.warm?.(signal)
        if (!signal.aborted) await signIn.warm()
      } catch (err) {
        log.error({ err }, 'warming up failed')
      }
    },
    authenticator: rooms.authenticator,
    operations,
    drain,
    copyTo:
      store.copyTo &&
      (async (path) => {
        await rooms.audit.flush()
        await store.copyTo?.(path)
      }),
    setupToken: () => signIn.setupToken(),
    isNew: async () => (await store.db.selectFrom('accounts').select('id').limit(1).execute()).length === 0,
    async [Symbol.asyncDispose]() {
      await drain(AbortSignal.abort())
      await held.disposeAsync()
    },
  }
}
