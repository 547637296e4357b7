// Shows what another exposure would change. A preview judges the audited queries of the last days twice: with the
// current exposure, and with the proposed one. It changes no exposure and queries no datasource. It runs as a job.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalog, Driver, QueryBody } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import { openFairLimit, type FairLimit } from '../concurrency-limit.ts'
import { AppError, invalidRequest } from '../errors.ts'
import type { DatasourceId, JobId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Store } from '../store/open.ts'
import { ownerOfTeam, type TeamOwner } from '../teams/team-owner.ts'
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
  /** TURN_MS, unless a test sets another time. */
  readonly turnMs?: number
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
/** After this time, a preview waits for its next turn, so that a long preview does not delay a short one. */
const TURN_MS = 2_000
const IDS_MAX = 100
/**
 * Previews with a turn, for all teams of one owner, and in total. `waiting` is how many wait for their first turn. Other
 * requests run after each query that a preview judges, so many previews would delay them.
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
    using turns = new Turns(deps, await ownerIn(deps.store, id), ended)
    try {
      await turns.first()
      return await replay(deps, { id, tables, days }, progress, turns)
    } catch (error) {
      if (error instanceof AppError || !turns.tooLong) throw error
      throw new AppError('QUERY_TIMEOUT', 'The preview took too long. Request fewer days.', { cause: error })
    }
  })
}

/** The turns of one preview. Measures how long the preview works, without the time in which it waits for a turn. */
class Turns implements Disposable {
  readonly signal: AbortSignal
  readonly #replays: FairLimit
  readonly #turnMs: number
  readonly #owner: TeamOwner
  readonly #ended: AbortSignal
  readonly #late = new AbortController()
  #leftMs = PREVIEW_MS
  #began = 0
  #turn: Disposable | null = null
  #timer: NodeJS.Timeout | undefined

  constructor({ replays, turnMs = TURN_MS }: PreviewDeps, owner: TeamOwner, ended: AbortSignal) {
    this.#replays = replays
    this.#turnMs = turnMs
    this.#owner = owner
    this.#ended = ended
    this.signal = AbortSignal.any([ended, this.#late.signal])
  }

  get tooLong(): boolean {
    return this.#late.signal.aborted
  }

  async first(): Promise<void> {
    await this.#take(false)
  }

  /** Call this between two queries. If others wait, they work next. */
  async next(): Promise<void> {
    if (performance.now() - this.#began < this.#turnMs) return
    this[Symbol.dispose]()
    await this.#take(true)
  }

  async #take(hasBegun: boolean): Promise<void> {
    const { account, team: lane } = this.#owner
    const turn = await this.#replays.take(account, { signal: this.#ended, lane, hasBegun })
    if (turn === null)
      throw new AppError('OVERLOADED', 'Too many previews are waiting. Start it again in a few minutes.')
    this.#turn = turn
    this.#began = performance.now()
    this.#timer = setTimeout(() => this.#late.abort(), this.#leftMs)
  }

  [Symbol.dispose](): void {
    if (this.#turn === null) return
    clearTimeout(this.#timer)
    this.#leftMs -= performance.now() - this.#began
    this.#turn[Symbol.dispose]()
    this.#turn = null
  }
}

async function ownerIn(store: Store, id: DatasourceId): Promise<TeamOwner> {
  const row = await store.db.selectFrom('datasources').select('team_id').where('id', '=', id).executeTakeFirst()
  if (row === undefined) throw deleted()
  return await ownerOfTeam(store, row.team_id)
}

function deleted(): AppError {
  return new AppError('CONFLICT', 'This datasource was deleted in the meantime.')
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
  turns: Turns,
): Promise<Preview> {
  const { signal } = turns
  const row = await deps.store.db
    .selectFrom('datasources')
    .select(['id', 'team_id', 'type', 'catalog_version', 'exposure_version'])
    .where('id', '=', order.id)
    .executeTakeFirst()
  const driver = row === undefined ? undefined : deps.drivers.get(row.type)
  if (row === undefined || driver === undefined) throw deleted()
  const [full, exposed] = await Promise.all([deps.catalogs.full(row), deps.catalogs.exposed(row)])
  if (full === null || exposed === null) throw notIntrospected()
  // Drivers cache checked queries by catalog object. With a copy of the catalog, the preview does not evict the entries
  // of real queries.
  const owner = await ownerOfTeam(deps.store, row.team_id)
  const sides: Sides = { driver, owner, now: { ...exposed }, then: cut(full, order.tables) }
  const since = new Date(Date.now() - order.days * DAY_MS).toISOString()
  const scope = { id: row.id, teamId: row.team_id, since }
  const total = await countAudited(deps.store, scope, signal)
  const outcomes = new BoundedMap<string, Outcome>(OUTCOMES_MAX)
  const found = { nowRefused: nothing(), nowAllowed: nothing(), cannotTell: nothing() }
  let done = 0
  progress(0, total)
  for await (const page of auditedQueries(deps.store, scope, signal)) {
    for (const query of page) {
      await turns.next()
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
  readonly owner: TeamOwner
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
  { driver, owner, now, then }: Sides,
  body: QueryBody | null,
  signal: AbortSignal,
): Promise<Outcome> {
  if (body === null) return 'cannotTell'
  const proposed = await judge(driver, body, then, owner, signal)
  if (proposed.kind === 'malformed') return 'cannotTell'
  const present = await judge(driver, body, now, owner, signal)
  if (proposed.kind === present.kind) return 'same'
  return proposed.kind === 'confined' ? 'nowAllowed' : 'nowRefused'
}
