// Composition: opens the store, builds the rooms, mounts the door. The only file that knows everything; nothing is
// decided here.
import { once } from 'node:events'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { openAudit } from './audit/audit.ts'
import { attempts } from './auth/attempts.ts'
import { authenticator, type Call } from './auth/caller.ts'
import { openKeyWarnings } from './auth/key-warnings.ts'
import { openNotices } from './auth/notices.ts'
import { openSignIn } from './sign-in/sign-in.ts'
import type { Config } from './config.ts'
import type { Route } from './contract/route.ts'
import { ROUTES } from './contract/routes.ts'
import { SESSION_ROUTES } from './contract/session-routes.ts'
import { openExports } from './audit/reading/within-reach.ts'
import { reachable } from './datasources/datasources.ts'
import { openTests } from './datasources/connect.ts'
import { deadlineOf } from './datasources/deadline.ts'
import { openDescriptions } from './descriptions/descriptions.ts'
import { openLeases } from './datasources/leases.ts'
import { resumeProfiles } from './introspection/profile.ts'
import { reach } from './datasources/reach.ts'
import { openReintrospection } from './introspection/reintrospection.ts'
import { resumeGeneration } from './documentation/generate.ts'
import { withdrawHidden } from './documentation/withdraw.ts'
import { openModel } from './documentation/model.ts'
import type { TryQuery } from './documentation/write-proposals.ts'
import { openDrivers } from './drivers/index.ts'
import { openCatalogs } from './exposure/catalogs.ts'
import { resumePreviews } from './what-if/preview.ts'
import { openSerialQueue } from './what-if/serial-queue.ts'
import { arrivalsOf, type Arrivals } from './http/arrivals.ts'
import { openMetrics, serveMetrics } from './http/metrics.ts'
import { createServer } from './http/server.ts'
import type { DatasourceId, TeamId } from './ids.ts'
import { openJobs } from './jobs/jobs.ts'
import { bind, openOperations, type AnyDefinition, type House } from './operations/operations.ts'
import { openMail } from './mail/mail.ts'
import { openBudget } from './query/budget.ts'
import { openRunning, type RunningQueries } from './query/running.ts'
import { tryQuery } from './query/try-query.ts'
import { openSecrets, requireKeyBefore, requireKeyOf } from './secrets.ts'
import { openStore } from './store/open.ts'
import { requireMembership, type Membership } from './teams/require-membership.ts'
import { settingsOf } from './teams/settings.ts'

export interface AppOptions {
  readonly config: Config
  readonly log: Logger
  /** Routes beside the tables, for tests of the door itself. */
  readonly more?: {
    readonly routes: Readonly<Record<string, Route>>
    readonly operations: Readonly<Record<string, AnyDefinition>>
  }
}

export interface App extends AsyncDisposable {
  /**
   * Takes no more requests and waits for those under way, for config.graceMs or until `hurry` is aborted. Queries that
   * are left then are cancelled in the database, answered 503 and audited. Disposing drains without a grace.
   */
  drain(hurry: AbortSignal): Promise<void>
  /** Starts to take requests; answers with the address, `http://127.0.0.1:3000`. */
  listen(): Promise<string>
  /** What the first account of a service that others reach must send; null where none is needed. */
  setupToken(): Promise<string | null>
  /** The store holds no account yet. */
  isNew(): Promise<boolean>
}

/** How often a service that drains looks for connections without a request. */
const IDLE_LOOK_MS = 50
/** How long requests that are still being sent may take to arrive, once the service drains. */
const ARRIVAL_MS = 1_000
/** How long refusals at the end of the grace may take to be written before the sockets are closed. */
const LAST_ANSWERS_MS = 2_000

/** Opens everything but the port. Throws an Error of one sentence where it cannot; what was opened is closed again. */
export async function createApp(options: AppOptions): Promise<App> {
  const { config, log } = options
  await using opened = new AsyncDisposableStack()
  const lost = (err: unknown) => log.error({ err }, 'a write was lost')
  const store = opened.use(await openStore(config, { lost, admit: (db) => requireKeyBefore(db, config) }))
  let listening = `http://${config.host}:${config.port}`
  const origin = () => config.publicUrl ?? listening
  const rooms = await openRooms(options, store, opened, origin)

  const signIn = openSignIn(rooms)
  const house: House = {
    authenticator: rooms.authenticator,
    places: {
      team: (call, teamId, need) => requireMembership(rooms, call, teamId, need),
      datasource: (call, teamId, id, need) => reach(rooms, call, teamId, id, need),
    },
    audit: rooms.audit,
  }
  const more = options.more === undefined ? {} : bind(house, options.more.routes, options.more.operations)
  const metrics = config.metricsAddr === null ? null : openMetrics()
  const server = createServer({
    authenticator: rooms.authenticator,
    routes: { ...ROUTES, ...SESSION_ROUTES, ...options.more?.routes },
    operations: { ...openOperations(house, rooms), ...more },
    signIn,
    ready: async () => (await store.db.selectFrom('teams').select('id').limit(1).execute()).length >= 0,
    trustProxy: config.trustProxy,
    metrics,
    log,
  })
  opened.defer(() => server.close())
  const arrivals = arrivalsOf(server.server)

  if (metrics !== null && config.metricsAddr !== null) opened.use(await serveMetrics(metrics, config.metricsAddr))

  let drained: Promise<void> | undefined
  const drain = (hurry: AbortSignal): Promise<void> =>
    (drained ??= drainServer(server, arrivals, rooms.running, config.graceMs, hurry))

  const held = opened.move()
  return {
    async listen() {
      listening = await server.listen({ host: config.host, port: config.port })
      if (config.smtp !== null && config.publicUrl === null && !config.loopback) {
        log.warn({ origin: listening }, 'VITRINE_PUBLIC_URL is not set: the links in mails begin with this')
      }
      signIn.warm().catch((err: unknown) => log.error({ err }, 'sign-in cannot be loaded'))
      return listening
    },
    drain,
    setupToken: () => signIn.setupToken(),
    isNew: async () => (await store.db.selectFrom('accounts').select('id').limit(1).execute()).length === 0,
    async [Symbol.asyncDispose]() {
      await drain(AbortSignal.abort())
      await held.disposeAsync()
    },
  }
}

/** As App.drain() says. */
async function drainServer(
  { server, close }: Pick<FastifyInstance, 'server' | 'close'>,
  arrivals: Arrivals,
  running: RunningQueries,
  graceMs: number,
  hurry: AbortSignal,
): Promise<void> {
  const closed = close()
  // A connection that was busy when the server closed stays open once its answer is out.
  const lateFrom = performance.now() + ARRIVAL_MS
  const idle = setInterval(() => {
    server.closeIdleConnections()
    if (performance.now() >= lateFrom) arrivals.cutOthers()
  }, IDLE_LOOK_MS)
  using grace = deadlineOf(hurry, graceMs)
  await Promise.race([closed, aborted(grace.signal)])
  running.endAll()
  using last = deadlineOf(NEVER, LAST_ANSWERS_MS)
  await Promise.race([closed, aborted(last.signal)])
  server.closeAllConnections()
  await closed
  clearInterval(idle)
}

const NEVER = new AbortController().signal

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** What has a lifetime or a memory, opened in the order in which it is needed and closed in the other. */
async function openRooms(
  { config, log }: AppOptions,
  store: Awaited<ReturnType<typeof openStore>>,
  opened: AsyncDisposableStack,
  origin: () => string,
) {
  const secrets = await openSecrets(config)
  await requireKeyOf(store, secrets)
  const drivers = opened.use(
    await openDrivers({
      allowApplicationDefault: config.allowApplicationDefault,
      allowEndpoint: config.allowBigQueryEndpoint,
      alarm: (err) => log.error({ err, printedSha256: err.textSha256 }, 'a dry run disagrees with the guard'),
    }),
  )
  const retentionDays = async (teamId: TeamId | null) =>
    (await settingsOf({ store, config }, teamId)).auditRetentionDays
  const audit = opened.use(openAudit({ store, key: secrets.derive('audit chain'), log, retentionDays }))
  const mail = opened.use(openMail({ config, log }))
  const keyWarnings = opened.use(openKeyWarnings({ store, mail, origin, log }))
  const leases = opened.use(
    openLeases({ store, secrets, connectOptions: { allowPrivateHosts: config.allowPrivateHosts } }),
  )
  const jobs = opened.use(await openJobs({ store, log }))
  const catalogs = openCatalogs({ store })
  const descriptions = openDescriptions({ store, catalogs })
  const replays = openSerialQueue()
  const [exports, tests] = [openExports(), openTests()]
  resumeProfiles({ config, store, audit, jobs, catalogs, leases, drivers })
  const tried: TryQuery = (id, query, signal) =>
    tryQuery({ store, config, drivers, catalogs, leases }, id, query, signal)
  const model = config.model === null ? null : openModel(config.model)
  resumeGeneration({ store, audit, jobs, catalogs, drivers, tryQuery: tried, model })
  resumePreviews({ store, audit, jobs, catalogs, drivers, replays })
  opened.use(openReintrospection({ store, audit, jobs, catalogs, leases, drivers, log }))
  const budget = await openBudget({ store })
  const callers = authenticator({ store })
  const running = opened.use(
    openRunning({
      again: (caller) => callers.again(caller),
      reach: (call, at) => reach({ store, drivers, audit }, call, at.teamId, at.id),
    }),
  )
  /** Of datasources that went with their team. */
  const ended = async (ids: readonly DatasourceId[]) => {
    await Promise.all(ids.flatMap((id) => [jobs.endAll(id), leases.end(id)]))
  }
  const notices = openNotices({ store, mail, tries: attempts(store), origin, log })
  const people = { mail, origin, keyWarnings, notices }
  return {
    config,
    log,
    store,
    secrets,
    drivers,
    audit,
    leases,
    jobs,
    catalogs,
    tryQuery: tried,
    withdrawHidden,
    model,
    replays,
    exports,
    tests,
    descriptions,
    budget,
    authenticator: callers,
    running,
    ended,
    reachableIds: async (call: Call, reader: Membership) =>
      (await reachable({ store }, call, reader)).map(({ id }) => id),
    ...people,
  }
}
