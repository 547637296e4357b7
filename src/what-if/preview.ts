// Shows what another exposure would change. A preview judges the audited queries of the last days twice: with the
// current exposure, and with the proposed one. It changes no exposure and queries no datasource. It runs as a job.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalog, Driver, QueryBody } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import { openFairLimit, type FairLimit } from '../concurrency-limit.ts'
import { ownerOf } from '../datasources/datasource-owner.ts'
import { AppError, invalidRequest } from '../errors.ts'
import type { DatasourceId, JobId, TeamId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Store } from '../store/open.ts'
import { auditedQueries, countAudited, type AuditedQuery } from './read-audited-queries.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import { cut, type ShownTable } from '../exposure/cut-catalog.ts'
import type { ExposurePlace } from '../exposure/exposure.ts'
import { freeze, type RequestedTable } from '../exposure/freeze-names.ts'
import { orderJob } from '../jobs/start-job.ts'
import { notIntrospected } from '../exposure/require-usable.ts'
import { bodyOf, judge } from './replay-query.ts'

export interface PreviewDeps {
  readonly store: Store
  readonly audit: Audit
  readonly jobs: Jobs
  readonly catalogs: Catalogs
  readonly drivers: ReadonlyMap<DatasourceType, Driver>
  readonly replays: FairLimit
}

interface Replayed {
  readonly count: number
  readonly auditIds: readonly string[]
}

/**
 * Only the current exposure allows the queries in `nowRefused`, and only the proposed one allows those in `nowAllowed`.
 * The queries in `cannotTell` cannot be judged again.
 */
export interface Preview {
  readonly nowRefused: Replayed
  readonly nowAllowed: Replayed
  readonly cannotTell: Replayed
}

const KIND = 'preview'
/** The timeout of one preview, without its time in the queue. */
const PREVIEW_MS = 10 * 60_000
const IDS_MAX = 100
/**
 * Concurrent previews for all teams of one owner, and in total. `waiting` is how many wait. Other requests run after
 * each query that a preview judges, so many previews would delay them.
 */
const REPLAYS = { each: 1, all: 2, waiting: 200 }
/** The maximum number of different previews of one datasource that wait or run. */
const AT_ONCE_MAX = 3
/** Equal queries are judged once. Remembers the outcomes of at most this many different queries. */
const OUTCOMES_MAX = 50_000
const DAY_MS = 86_400_000

/**
 * If an equal preview waits or runs, returns the id of its job. Throws NOT_CONNECTED before the first introspection,
 * INVALID_REQUEST if the proposed exposure cannot be saved, and CONFLICT if too many previews wait or run.
 */
export async function previewExposure(
  deps: PreviewDeps,
  call: Call,
  at: ExposurePlace,
  request: { readonly tables: readonly RequestedTable[]; readonly days: number },
): Promise<{ readonly jobId: JobId }> {
  const [catalog, saved] = await Promise.all([deps.catalogs.full(at.row), deps.catalogs.shown(at.row)])
  if (catalog === null) throw notIntrospected()
  const { tables, problems } = freeze(request.tables, catalog, saved)
  if (problems.length > 0) throw invalidRequest(problems, 'The exposure cannot be previewed.')
  await deps.audit.flush()
  const input = { tables, days: request.days }
  const busy = `${AT_ONCE_MAX} previews of this datasource are already running. Wait for one to finish, or cancel one.`
  return await orderJob(deps, call, at, { kind: KIND, input, atMost: AT_ONCE_MAX, busy })
}

const Input = z.object({
  tables: z.array(z.object({ schema: z.string(), table: z.string(), columns: z.array(z.string()) })),
  days: z.number(),
})

export function openReplays(): FairLimit {
  return openFairLimit(REPLAYS)
}

/** Lets previews resume after a restart. Call this once, before the first preview. */
export function resumePreviews(deps: PreviewDeps): void {
  deps.jobs.resumable(KIND, (id, input) => async (progress, ended) => {
    const { tables, days } = Input.parse(input)
    using turn = await deps.replays.take(await ownerIn(deps.store, id), { signal: ended })
    if (turn === null)
      throw new AppError('OVERLOADED', 'Too many previews are waiting. Start it again in a few minutes.')
    const tooLong = AbortSignal.timeout(PREVIEW_MS)
    try {
      return await replay(deps, { id, tables, days }, progress, AbortSignal.any([ended, tooLong]))
    } catch (error) {
      if (error instanceof AppError || !tooLong.aborted) throw error
      throw new AppError('QUERY_TIMEOUT', 'The preview took too long. Request fewer days.', { cause: error })
    }
  })
}

async function ownerIn({ db }: Pick<Store, 'db'>, id: DatasourceId): Promise<string> {
  const row = await db.selectFrom('datasources').select(ownerOf).where('id', '=', id).executeTakeFirst()
  return row?.owner ?? ''
}

interface Order {
  readonly id: DatasourceId
  readonly tables: readonly ShownTable[]
  readonly days: number
}

async function replay(
  deps: PreviewDeps,
  order: Order,
  progress: (done: number, total: number) => void,
  signal: AbortSignal,
): Promise<Preview> {
  const row = await deps.store.db
    .selectFrom('datasources')
    .select(['id', 'team_id', 'type', 'catalog_version', 'exposure_version'])
    .where('id', '=', order.id)
    .executeTakeFirst()
  const driver = row === undefined ? undefined : deps.drivers.get(row.type)
  if (row === undefined || driver === undefined)
    throw new AppError('CONFLICT', 'This datasource was deleted in the meantime.')
  const [full, exposed] = await Promise.all([deps.catalogs.full(row), deps.catalogs.exposed(row)])
  if (full === null || exposed === null) throw notIntrospected()
  // Drivers cache checked queries by catalog object. With a copy of the catalog, the preview does not evict the entries
  // of real queries.
  const sides: Sides = { driver, teamId: row.team_id, now: { ...exposed }, then: cut(full, order.tables) }
  const since = new Date(Date.now() - order.days * DAY_MS).toISOString()
  const scope = { id: row.id, teamId: row.team_id, since }
  const total = await countAudited(deps.store, scope, signal)
  const outcomes = new BoundedMap<string, Outcome>(OUTCOMES_MAX)
  const found = { nowRefused: nothing(), nowAllowed: nothing(), cannotTell: nothing() }
  let done = 0
  progress(0, total)
  for await (const page of auditedQueries(deps.store, scope, signal)) {
    for (const query of page) {
      const outcome = await outcomeOf(sides, query, outcomes, signal)
      if (outcome !== 'same') {
        found[outcome].count++
        if (found[outcome].auditIds.length < IDS_MAX) found[outcome].auditIds.push(query.id)
      }
      progress(++done, Math.max(done, total))
    }
  }
  return found
}

function nothing(): { count: number; readonly auditIds: string[] } {
  return { count: 0, auditIds: [] }
}

type Outcome = 'same' | keyof Preview

interface Sides {
  readonly driver: Driver
  readonly teamId: TeamId
  /** The catalog, cut to the current exposure. */
  readonly now: Catalog
  /** The catalog, cut to the proposed exposure. */
  readonly then: Catalog
}

async function outcomeOf(
  sides: Sides,
  { text, params, code }: AuditedQuery,
  outcomes: BoundedMap<string, Outcome>,
  signal: AbortSignal,
): Promise<Outcome> {
  // A query that could not be parsed then cannot be parsed now.
  if (code === 'INVALID_QUERY') return 'same'
  if (text === null) return 'cannotTell'
  const key = createHash('sha256')
    .update(JSON.stringify([text, params]))
    .digest('base64')
  const known = outcomes.get(key)
  if (known !== undefined) return known
  const outcome = await judged(sides, bodyOf(sides.driver, text, params), signal)
  outcomes.set(key, outcome)
  return outcome
}

async function judged(
  { driver, teamId, now, then }: Sides,
  body: QueryBody | null,
  signal: AbortSignal,
): Promise<Outcome> {
  if (body === null) return 'cannotTell'
  const proposed = await judge(driver, body, then, teamId, signal)
  if (proposed.kind === 'malformed') return 'cannotTell'
  const present = await judge(driver, body, now, teamId, signal)
  if (proposed.kind === present.kind) return 'same'
  return proposed.kind === 'confined' ? 'nowAllowed' : 'nowRefused'
}
