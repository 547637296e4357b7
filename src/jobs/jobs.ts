// What takes long: introspection now; profiles, generation and previews later. A job runs in the process that started
// it, its progress stands in the store. It knows nothing of what it runs, and outlives no restart.
import { AppError } from '../errors.ts'
import { newId, type DatasourceId, type JobId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { JobTable } from '../store/tables.ts'

/** Says how far a job is; written to the store now and then. */
type Progress = (done: number, total: number) => void

/** What a job does; its value, plain data, becomes the job's `result`. */
export type Work = (progress: Progress, signal: AbortSignal) => Promise<unknown>

interface Job {
  readonly id: JobId
  /** Settles with the work, after its end stands in the store. */
  readonly ended: Promise<unknown>
}

/** A job as GET …/jobs/{jobId} shows it. */
interface JobState {
  readonly id: JobId
  readonly kind: string
  readonly state: JobTable['state']
  readonly done: number
  readonly total: number
  readonly result?: unknown
  readonly error?: string
  readonly createdAt: string
  readonly updatedAt: string
}

export interface Jobs extends AsyncDisposable {
  /** Starts a job; where one of this kind is running for the datasource, that one is answered. */
  start(datasourceId: DatasourceId, kind: string, work: Work): Promise<Job>
  /** Null where this datasource has no such job. */
  find(datasourceId: DatasourceId, id: JobId): Promise<JobState | null>
  /** Ends it, whichever process runs it; false where this datasource has no such job. Ended ones stay as they are. */
  cancel(datasourceId: DatasourceId, id: JobId): Promise<boolean>
  /** Ends all of a datasource that is changed or deleted, and waits for them. */
  endAll(datasourceId: DatasourceId): Promise<void>
}

interface Deps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'append'>
  readonly log?: { error(detail: object, message: string): void }
}

interface Running extends Job {
  readonly datasourceId: DatasourceId
  readonly kind: string
  readonly control: AbortController
  done: number
  total: number
}

const HEARTBEAT_MS = 2_000
/** A job whose process has not been heard of for so long is taken for dead. */
const SILENCE_MS = 60_000
const KEPT_DAYS = 30
const INTERRUPTED = 'The service was restarted while this ran. Start it again.'
const FAILED = 'This could not be done because of a defect in the service.'

/** Opens the jobs; what a process that is gone left running becomes FAILED. */
export async function openJobs(deps: Deps): Promise<Jobs> {
  const jobs = new ProcessJobs(deps)
  await jobs.bury(deps.store.dialect === 'sqlite' ? 0 : SILENCE_MS)
  return jobs
}

class ProcessJobs implements Jobs {
  readonly #deps: Deps
  readonly #running = new Map<JobId, Running>()
  readonly #heartbeat: NodeJS.Timeout

  constructor(deps: Deps) {
    this.#deps = deps
    this.#heartbeat = setInterval(() => void this.#beat().catch((error: unknown) => this.#say(error)), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  /** Fails jobs nobody runs any more. Only one process works on a SQLite store, so there silence is no matter of time. */
  async bury(silenceMs: number): Promise<void> {
    const now = Date.now()
    await this.#deps.store.append(async (tx) => {
      await tx
        .updateTable('jobs')
        .set({ state: 'FAILED', error: INTERRUPTED, updated_at: iso(now) })
        .where('state', 'in', ['QUEUED', 'RUNNING'])
        .where('updated_at', '<=', iso(now - silenceMs))
        .execute()
      const old = iso(now - KEPT_DAYS * 86_400_000)
      await tx.deleteFrom('jobs').where('updated_at', '<', old).execute()
    })
  }

  async start(datasourceId: DatasourceId, kind: string, work: Work): Promise<Job> {
    for (const job of this.#running.values()) if (job.datasourceId === datasourceId && job.kind === kind) return job
    const id = newId<JobId>()
    const control = new AbortController()
    const at = iso(Date.now())
    const { promise: written, resolve, reject } = Promise.withResolvers<void>()
    const ended = written.then(() => this.#run(job, work))
    const job: Running = { id, datasourceId, kind, control, done: 0, total: 0, ended }
    // Before the first wait, so that two who ask at once get one job.
    this.#running.set(id, job)
    ended.catch(() => undefined).finally(() => this.#running.delete(id))
    try {
      const row = { id, datasource_id: datasourceId, kind, done: 0, total: 0, result: null, error: null }
      const began = { state: 'RUNNING', created_at: at, updated_at: at } as const
      await this.#deps.store.append((tx) =>
        tx
          .insertInto('jobs')
          .values({ ...row, ...began })
          .execute(),
      )
      resolve()
    } catch (error) {
      reject(error)
      throw error
    }
    return job
  }

  async find(datasourceId: DatasourceId, id: JobId): Promise<JobState | null> {
    const running = this.#running.get(id)
    const row = await this.#row(datasourceId, id)
    if (row === undefined) return null
    const about = {
      id: row.id,
      kind: row.kind,
      done: running?.done ?? row.done,
      total: running?.total ?? row.total,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }
    const silent = Date.parse(row.updated_at) <= Date.now() - SILENCE_MS
    if (running === undefined && !hasEnded(row.state) && silent)
      return { ...about, state: 'FAILED', error: INTERRUPTED }
    return {
      ...about,
      state: row.state,
      ...(row.result !== null && { result: JSON.parse(row.result) }),
      ...(row.error !== null && { error: row.error }),
    }
  }

  async cancel(datasourceId: DatasourceId, id: JobId): Promise<boolean> {
    if ((await this.#row(datasourceId, id)) === undefined) return false
    await this.#end(id, { state: 'CANCELLED' })
    const running = this.#running.get(id)
    running?.control.abort()
    await running?.ended.catch(() => undefined)
    return true
  }

  async endAll(datasourceId: DatasourceId): Promise<void> {
    const mine = [...this.#running.values()].filter((job) => job.datasourceId === datasourceId)
    await Promise.all(
      mine.map(async (job) => {
        // Its row may be gone with the datasource; it is ended all the same.
        await this.#end(job.id, { state: 'CANCELLED' })
        job.control.abort()
        await job.ended.catch(() => undefined)
      }),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat)
    const all = [...this.#running.values()]
    for (const job of all) {
      await this.#end(job.id, { state: 'FAILED', error: INTERRUPTED })
      job.control.abort()
    }
    await Promise.allSettled(all.map((job) => job.ended))
  }

  async #run(job: Running, work: Work): Promise<unknown> {
    const progress: Progress = (done, total) => {
      job.done = done
      job.total = total
    }
    try {
      const result = await work(progress, job.control.signal)
      await this.#end(job.id, { state: 'DONE', result: JSON.stringify(result ?? null) })
      return result
    } catch (error) {
      if (!(error instanceof AppError) && !job.control.signal.aborted) this.#say(error)
      await this.#end(job.id, { state: 'FAILED', error: error instanceof AppError ? error.message : FAILED })
      throw error
    }
  }

  /** The first end holds: a cancelled job that fails for it stays CANCELLED. */
  async #end(id: JobId, end: { state: JobTable['state']; result?: string; error?: string }): Promise<void> {
    const job = this.#running.get(id)
    const set = { ...end, ...(job && { done: job.done, total: job.total }), updated_at: iso(Date.now()) }
    await this.#deps.store.append((tx) =>
      tx.updateTable('jobs').set(set).where('id', '=', id).where('state', 'in', ['QUEUED', 'RUNNING']).execute(),
    )
  }

  /** Writes the progress, and hears whether another process cancelled. */
  async #beat(): Promise<void> {
    for (const job of this.#running.values()) {
      const set = { done: job.done, total: job.total, updated_at: iso(Date.now()) }
      const alive = await this.#deps.store.append((tx) =>
        tx.updateTable('jobs').set(set).where('id', '=', job.id).where('state', '=', 'RUNNING').executeTakeFirst(),
      )
      if (alive.numUpdatedRows === 0n) job.control.abort()
    }
  }

  #row(datasourceId: DatasourceId, id: JobId) {
    return this.#deps.store.db
      .selectFrom('jobs')
      .selectAll()
      .where('id', '=', id)
      .where('datasource_id', '=', datasourceId)
      .executeTakeFirst()
  }

  #say(error: unknown): void {
    this.#deps.log?.error({ err: error }, 'a job failed')
  }
}

function hasEnded(state: JobTable['state']): boolean {
  return state !== 'QUEUED' && state !== 'RUNNING'
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
