// Reads and writes the jobs table, which all processes share. A process that runs a job updates its row at intervals (a
// heartbeat). A job without a heartbeat is abandoned, because its process has ended.
import type { Transaction } from 'kysely'
import type { AccountId, DatasourceId, JobId } from '../ids.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'
import type { JobTable, Tables } from '../store/tables.ts'
import { hasEnded, INTERRUPTED, type JobFilter, type JobState } from './job-types.ts'

export type JobStore = Pick<Store, 'db' | 'dialect' | 'append'>

/** `input` is JSON, or null if the kind is not resumable. */
export interface NewJob {
  readonly id: JobId
  readonly datasourceId: DatasourceId
  readonly kind: string
  readonly input: string | null
  /** Null if the service starts the job. */
  readonly startedBy: AccountId | null
}

export interface LostJob extends Omit<NewJob, 'input' | 'startedBy'> {
  readonly input: string
  readonly heard: string
}

/** The jobs of this process. Their newest state may not be stored yet. */
export interface OwnJobs {
  has(id: JobId): boolean
  /** True if the work has ended, even if its end is not stored yet. */
  isOver(id: JobId): boolean
  /** If it throws, the job is not inserted. */
  admit(): void
}

interface Reached {
  readonly done: number
  readonly total: number
  readonly step: string | null
}

/** A job without a heartbeat for this long is abandoned. */
const SILENCE_MS = 60_000
const KEPT_DAYS = 30
const LISTED_MAX = 100
/** How many jobs of a datasource that have ended are kept, and how many others are deleted with each new job. */
const ENDED_KEPT = 100
const DELETED_AT_ONCE = 8

export class JobRows {
  readonly #store: JobStore
  /** Every job that was running before this time is abandoned, because only one process uses a SQLite store. */
  readonly #startedAt = iso(Date.now())

  constructor(store: JobStore) {
    this.#store = store
  }

  /** Sets abandoned jobs to FAILED, unless they are resumable. Deletes jobs that have not changed for KEPT_DAYS. */
  async bury(): Promise<void> {
    await this.#store.append(async (tx) => {
      await tx
        .updateTable('jobs')
        .set({ state: 'FAILED', error: INTERRUPTED, updated_at: iso(Date.now()) })
        .where('state', 'in', ['QUEUED', 'RUNNING'])
        .where('updated_at', '<=', this.#lastHeard())
        .where('input', 'is', null)
        .execute()
      const old = iso(Date.now() - KEPT_DAYS * 86_400_000)
      await tx.deleteFrom('jobs').where('updated_at', '<', old).execute()
    })
  }

  /**
   * Inserts the job and returns its id. If a job of the same kind, datasource and input runs, returns its id instead.
   * Returns null if `atMost` jobs of the kind already run for the datasource. Throws the errors of `own.admit()`. The
   * transaction makes this safe for several processes.
   */
  async claim(job: NewJob, atMost: number, own: OwnJobs): Promise<JobId | null> {
    return await this.#store.append(async (tx) => {
      const running = await this.#running(tx, job, own)
      const same = running.find((other) => other.isSame)
      if (same !== undefined) return same.id
      if (running.length >= atMost) return null
      own.admit()
      await this.#trim(tx, job.datasourceId)
      const { id, datasourceId, kind, input, startedBy } = job
      const at = iso(Date.now())
      const row = { id, datasource_id: datasourceId, kind, done: 0, total: 0, result: null, error: null, input }
      await tx
        .insertInto('jobs')
        .values({ ...row, state: 'RUNNING', started_by: startedBy, created_at: at, updated_at: at })
        .execute()
      return id
    })
  }

  /** Keeps the jobs that ended last. Otherwise jobs that fail at once could fill the table. */
  async #trim(tx: Transaction<Tables>, datasourceId: DatasourceId): Promise<void> {
    const old = await tx
      .selectFrom('jobs')
      .select('id')
      .where('datasource_id', '=', datasourceId)
      .where('state', 'not in', ['QUEUED', 'RUNNING'])
      .orderBy('updated_at', 'desc')
      .orderBy('id', 'desc')
      .offset(ENDED_KEPT)
      .limit(DELETED_AT_ONCE)
      .execute()
    if (old.length === 0) return
    const ids = old.map(({ id }) => id)
    await tx.deleteFrom('jobs').where('id', 'in', ids).execute()
  }

  /** First sets abandoned jobs to FAILED, unless they are resumable. */
  async #running(tx: Transaction<Tables>, { datasourceId, kind, input }: NewJob, own: OwnJobs) {
    const rows = await tx
      .selectFrom('jobs')
      .select(['id', 'updated_at'])
      // The input may be large, so the database compares it.
      .select((eb) => [
        eb('input', 'is not', null).as('goes_on'),
        (input === null ? eb('input', 'is', null) : eb('input', '=', input)).as('is_same'),
      ])
      .where('datasource_id', '=', datasourceId)
      .where('kind', '=', kind)
      .where('state', 'in', ['QUEUED', 'RUNNING'])
      .orderBy('created_at')
      .execute()
    const isDead = (row: (typeof rows)[number]) =>
      !own.has(row.id) && !isTrue(row.goes_on) && row.updated_at <= this.#lastHeard()
    for (const { id } of rows.filter(isDead)) {
      const set = { state: 'FAILED', error: INTERRUPTED, updated_at: iso(Date.now()) } as const
      await tx.updateTable('jobs').set(set).where('id', '=', id).execute()
    }
    return rows
      .filter((row) => !isDead(row) && !own.isOver(row.id))
      .map((row) => ({ id: row.id, isSame: isTrue(row.is_same) }))
  }

  /** `reached` is newer progress than the stored one. Returns null if the datasource has no such job. */
  async find(datasourceId: DatasourceId, id: JobId, reached: Reached | null): Promise<JobState | null> {
    const row = await this.#states(datasourceId).select('jobs.result').where('jobs.id', '=', id).executeTakeFirst()
    if (row === undefined) return null
    const state = stateOf(row, reached)
    if (state.state === 'FAILED' || row.result === null) return state
    return { ...state, result: JSON.parse(row.result) }
  }

  /** Newest first, without results, which may be large. `reachedBy` returns newer progress than the stored one. */
  async list(
    datasourceId: DatasourceId,
    { state, kind }: JobFilter,
    reachedBy: (id: JobId) => Reached | null,
  ): Promise<readonly JobState[]> {
    const rows = await this.#states(datasourceId)
      .$if(state !== undefined, (query) => query.where('jobs.state', '=', state ?? 'RUNNING'))
      .$if(kind !== undefined, (query) => query.where('jobs.kind', '=', kind ?? ''))
      .orderBy('jobs.created_at', 'desc')
      .orderBy('jobs.id', 'desc')
      .limit(LISTED_MAX)
      .execute()
    return rows.map((row) => stateOf(row, reachedBy(row.id)))
  }

  /** Does not select inputs, because they may be large, and callers poll. */
  #states(datasourceId: DatasourceId) {
    return this.#store.db
      .selectFrom('jobs')
      .leftJoin('accounts', 'accounts.id', 'jobs.started_by')
      .select(['jobs.id', 'jobs.kind', 'jobs.state', 'jobs.done', 'jobs.total', 'jobs.step', 'jobs.error'])
      .select(['jobs.started_by', 'accounts.name', 'jobs.created_at', 'jobs.updated_at'])
      .select((eb) => eb('jobs.input', 'is not', null).as('goes_on'))
      .where('jobs.datasource_id', '=', datasourceId)
  }

  /** Only the first call counts: a cancelled job stays CANCELLED even if its work fails later. */
  async end(
    id: JobId,
    end: { readonly state: JobTable['state']; readonly result?: string; readonly error?: string },
    reached?: Reached,
  ): Promise<void> {
    const at = reached && { done: reached.done, total: reached.total }
    const set = { ...end, ...at, step: null, input: null, updated_at: iso(Date.now()) }
    await this.#store.append((tx) =>
      tx.updateTable('jobs').set(set).where('id', '=', id).where('state', 'in', ['QUEUED', 'RUNNING']).execute(),
    )
  }

  async cancelAll(datasourceId: DatasourceId): Promise<void> {
    await this.#store.append((tx) =>
      tx
        .updateTable('jobs')
        .set({ state: 'CANCELLED', input: null, updated_at: iso(Date.now()) })
        .where('datasource_id', '=', datasourceId)
        .where('state', 'in', ['QUEUED', 'RUNNING'])
        .execute(),
    )
  }

  /** Returns false if the job has ended. */
  async alive(id: JobId, { done, total, step }: Reached): Promise<boolean> {
    const set = { done, total, step, updated_at: iso(Date.now()) }
    const { numUpdatedRows } = await this.#store.append((tx) =>
      tx.updateTable('jobs').set(set).where('id', '=', id).where('state', '=', 'RUNNING').executeTakeFirst(),
    )
    return numUpdatedRows !== 0n
  }

  /** Makes the job abandoned, so that another process finds it. */
  async leave(id: JobId, { done, total }: Pick<Reached, 'done' | 'total'>): Promise<void> {
    const set = { done, total, updated_at: iso(Date.now() - SILENCE_MS) }
    await this.#store.append((tx) =>
      tx.updateTable('jobs').set(set).where('id', '=', id).where('state', '=', 'RUNNING').execute(),
    )
  }

  async lost(kinds: readonly string[]): Promise<readonly LostJob[]> {
    if (kinds.length === 0) return []
    const rows = await this.#store.db
      .selectFrom('jobs')
      .select(['id', 'datasource_id', 'kind', 'input', 'updated_at'])
      .where('kind', 'in', kinds)
      .where('state', '=', 'RUNNING')
      .where('input', 'is not', null)
      .where('updated_at', '<=', this.#lastHeard())
      .execute()
    return rows.flatMap(({ id, datasource_id: datasourceId, kind, input, updated_at: heard }) =>
      input === null ? [] : [{ id, datasourceId, kind, input, heard }],
    )
  }

  /** Takes over an abandoned job. Returns false if another process took it first. */
  async take({ id, heard }: LostJob): Promise<boolean> {
    const { numUpdatedRows } = await this.#store.append((tx) =>
      tx
        .updateTable('jobs')
        .set({ updated_at: iso(Date.now()) })
        .where('id', '=', id)
        .where('updated_at', '=', heard)
        .executeTakeFirst(),
    )
    return numUpdatedRows === 1n
  }

  /** A job whose last heartbeat is not after this time is abandoned. */
  #lastHeard(): string {
    return this.#store.dialect === 'sqlite' ? this.#startedAt : iso(Date.now() - SILENCE_MS)
  }
}

interface StateRow extends Pick<JobTable, 'id' | 'kind' | 'state' | 'done' | 'total' | 'error'> {
  readonly step: string | null
  readonly started_by: AccountId | null
  readonly name: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly goes_on: number | boolean
}

function stateOf(row: StateRow, reached: Reached | null): JobState {
  const about = {
    id: row.id,
    kind: row.kind,
    done: reached?.done ?? row.done,
    total: reached?.total ?? row.total,
    startedBy: row.started_by === null ? null : { accountId: row.started_by, name: row.name },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
  const silent = Date.parse(row.updated_at) <= Date.now() - SILENCE_MS
  if (reached === null && !hasEnded(row.state) && silent && !isTrue(row.goes_on))
    return { ...about, step: null, state: 'FAILED', error: INTERRUPTED }
  const step = hasEnded(row.state) ? null : (reached?.step ?? row.step)
  return { ...about, step, state: row.state, ...(row.error !== null && { error: row.error }) }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
