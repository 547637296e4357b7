// Opens the store, the drivers, and the services of the other folders of src/ (“rooms”), in the order of their
// dependencies. Only this file decides which room uses which other room. Tests open the rooms directly.
import { newestTime } from './audit/reading/newest-rows.ts'
import { openAudit } from './audit/audit.ts'
import { attempts } from './auth/attempt-counter.ts'
import { authenticator } from './auth/authenticate.ts'
import type { Call } from './auth/caller.ts'
import { openKeyWarnings } from './auth/key-expiry-warnings.ts'
import { openNotices } from './auth/security-mail.ts'
import { networkOf } from './auth/client-network.ts'
import { openExports } from './audit/reading/within-reach.ts'
import { openTests } from './datasources/test-datasource.ts'
import { openDescriptions } from './descriptions/description-cache.ts'
import { openQueryEvidence } from './descriptions/query-evidence.ts'
import { openLeases, type LeaseOptions } from './datasources/connection-pool.ts'
import { resumeProfiles } from './introspection/profile-job.ts'
import { isWithin, knownReach, reach } from './datasources/require-reach.ts'
import { openReintrospection } from './introspection/scheduled-introspection.ts'
import { resumeGeneration } from './documentation/generate-job.ts'
import { withdrawHidden } from './documentation/withdraw-texts.ts'
import { openModel } from './documentation/write-by-model.ts'
import type { TryQuery } from './documentation/write-proposals.ts'
import { openDrivers } from './drivers/index.ts'
import { openCatalogs } from './exposure/catalog-cache.ts'
import { wasNarrowed } from './exposure/exposure.ts'
import { openReplays, resumePreviews } from './what-if/preview.ts'
import type { DatasourceId, TeamId } from './ids.ts'
import { openJobs } from './jobs/jobs.ts'
import { openMail } from './mail/send-mail.ts'
import { openBudget } from './query/budget.ts'
import { openDrafts } from './query/check-rate-limit.ts'
import { openQueryMeter } from './query/query-metrics.ts'
import { openRedisCounter as openRedisBudget } from './query/redis-budget.ts'
import { openRunning } from './query/running-queries.ts'
import { tryQuery } from './query/try-example-query.ts'
import { openSecrets, requireKeyBefore, requireKeyOf, rootKeysOf } from './secrets.ts'
import { removeAllHidden } from './store/delete-team.ts'
import { openStore } from './store/open.ts'
import { expiredInvitations } from './teams/expired-invitations.ts'
import { endAllInvitationsBy } from './teams/invitations.ts'
import { membershipsOf, requireMembership, type Membership } from './teams/require-membership.ts'
import { reachedBy, reachedIdsOf } from './teams/team-counts.ts'
import { settingsOf } from './teams/team-settings.ts'
import type { Transport } from './outbound-request.ts'
import type { Config } from './config.ts'
import { openOAuth } from './oauth/oauth.ts'
import type { DocumentTransport } from './oauth/client-documents.ts'
import type { PasswordHash } from './sign-in/better-auth.ts'
import { openSignIn } from './sign-in/sign-in.ts'
import { openUnverifiedAccounts } from './sign-in/unverified-accounts.ts'
import { openClockDoubt, watchClock } from './clock-doubt.ts'
import { openConcurrencyLimit } from './concurrency-limit.ts'
import { openDeliverer } from './webhooks/delivery-worker.ts'
import { admit } from './operations/admit.ts'
import type { SharedDeps } from './operations/order-of-checks.ts'

export interface RoomsOptions {
  readonly config: Config
  readonly log: RoomsLog
  readonly origin: () => string
  /** Milliseconds since 1970. */
  readonly now?: () => number
  readonly leases?: Partial<LeaseOptions>
  readonly documents?: DocumentTransport
  readonly transport?: Partial<Transport>
  readonly passwords?: PasswordHash
}

interface RoomsLog {
  info(detail: object, message: string): void
  warn(detail: object, message: string): void
  error(detail: object, message: string): void
}

export type Rooms = Awaited<ReturnType<typeof openRooms>>

/** If a room cannot be opened, closes the opened rooms and throws. */
export async function openRooms(options: RoomsOptions) {
  const { config, log, origin, now = Date.now, leases: leaseOptions = {}, documents, transport, passwords } = options
  await using opened = new AsyncDisposableStack()
  const lost = (err: unknown) => log.error({ err }, 'a background write failed')
  const store = opened.use(await openStore(config, { lost, log, admit: (db) => requireKeyBefore(db, config) }))
  await requireKeyOf(store, await rootKeysOf(config, false))
  removeAllHidden(store)
  const secrets = await openSecrets(config, { db: store.db })
  const drivers = opened.use(
    await openDrivers({
      allowApplicationDefault: config.allowApplicationDefault,
      allowEndpoint: config.allowBigQueryEndpoint,
      alarm: (err) => log.error({ err, printedSha256: err.textSha256 }, 'a dry run disagrees with the guard'),
    }),
  )
  const retentionDays = async (teamId: TeamId | null) =>
    (await settingsOf({ store, config }, teamId)).auditRetentionDays
  const clock = openClockDoubt(
    () => Date.now(),
    () => performance.now(),
    // Read before this process writes any row.
    await newestTime(store),
  )
  opened.use(watchClock(clock, log))
  const audit = opened.use(openAudit({ store, key: secrets.derive('audit chain'), log, retentionDays, clock }))
  const mail = opened.use(openMail({ config, log }))
  const keyWarnings = opened.use(openKeyWarnings({ store, mail, origin, log }))
  const unverified = opened.use(openUnverifiedAccounts({ store, audit, mail, log, clock, now }))
  const leases = opened.use(
    openLeases({ store, secrets, log, connectOptions: { allowPrivateHosts: config.allowPrivateHosts } }, leaseOptions),
  )
  const jobs = opened.use(await openJobs({ store, log, networkOf }))
  const catalogs = openCatalogs({ store })
  await catalogs.countMissing()
  const descriptions = openDescriptions({ store, catalogs })
  const evidence = opened.use(openQueryEvidence({ audit, log, now }))
  const replays = openReplays()
  const [exports, tests] = [openExports(networkOf), openTests()]
  resumeProfiles({ config, store, audit, jobs, catalogs, leases, drivers })
  const tried: TryQuery = (id, query, signal) =>
    tryQuery({ store, config, drivers, catalogs, leases }, id, query, signal)
  const model = config.model === null ? null : openModel(config.model)
  resumeGeneration({ store, audit, jobs, catalogs, drivers, tryQuery: tried, model })
  resumePreviews({ store, audit, jobs, catalogs, drivers, replays })
  opened.use(openReintrospection({ store, audit, jobs, catalogs, leases, drivers, log }))
  const redis = config.redisUrl === null ? null : opened.use(await openRedisBudget(config.redisUrl, log))
  const budget = openBudget({ store, redis })
  const callers = authenticator({ store, origin })
  const running = opened.use(
    openRunning({
      again: async (caller) => {
        const now = await callers.again(caller)
        admit(now, { scope: 'data:read' })
        return now
      },
      reach: (call, at) => reach({ store, drivers, audit }, call, at.teamId, at.id),
      narrowed: (at, version) => wasNarrowed(store, at.row, version),
    }),
  )
  /** Called when datasources were deleted with their team. */
  const ended = async (ids: readonly DatasourceId[]) => {
    await Promise.all(ids.flatMap((id) => [jobs.endAll(id), leases.end(id)]))
  }
  const sending = { allowPrivateHosts: config.allowPrivateHosts, now }
  const webhooks = opened.use(openDeliverer({ store, catalogs, secrets, sending, log }))
  const tries = attempts(store, now)
  const notices = openNotices({ store, mail, tries, origin, log })
  const signIn = openSignIn({
    ...{ store, audit, config, secrets, mail, origin, log, tries, notices, now, clock },
    ...(transport === undefined ? {} : { transport }),
    ...(passwords === undefined ? {} : { passwords }),
  })
  const oauth = openOAuth({
    store,
    audit,
    config,
    secrets,
    log,
    origin,
    tries,
    now,
    reached: reachedBy,
    identify: (request) => signIn.identify(request),
    ...(documents === undefined ? {} : { documents }),
  })
  const held = opened.move()
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
    evidence,
    budget,
    drafts: openDrafts(now),
    authenticator: callers,
    running,
    meter: openQueryMeter(),
    webhooks,
    sending,
    webhookTests: openConcurrencyLimit(WEBHOOK_TESTS, networkOf),
    redis,
    ended,
    endInvitationsOf: endAllInvitationsBy,
    invitations: expiredInvitations({ store, clock, now }),
    membershipsOf: (call: Call) => membershipsOf({ store }, call),
    // Not from the cached rows, because an account may have 300 teams of 500 datasources.
    reachableIds: async (call: Call, reader: Membership) =>
      [...(await reachedIdsOf(store.db, reader))].filter((id) => isWithin(call.caller, id)),
    mail,
    origin,
    keyWarnings,
    unverified,
    notices,
    tries,
    signIn,
    oauth,
    now,
    reached: reachedBy,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const WEBHOOK_TESTS = { each: 2, all: 20, retryAfterSeconds: 5, why: 'Other tests are still running.' }

export function sharedDepsOf(rooms: Rooms): SharedDeps {
  const { authenticator, audit } = rooms
  return {
    authenticator,
    audit,
    places: {
      team: (call, teamId, need) => requireMembership(rooms, call, teamId, need),
      datasource: (call, teamId, id, need) => reach(rooms, call, teamId, id, need),
      knownDatasource: (caller, teamId, id) => knownReach(rooms, caller, teamId, id),
    },
  }
}
