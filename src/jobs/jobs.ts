// Background jobs for work that takes long, such as introspections, profiles and previews. The process that starts a
// job runs it and stores its progress. If that process ends, the job fails. If its kind is resumable, another process
// runs it again instead.
import { setTimeout } from 'node:timers/promises'
import { openConcurrencyLimit, type ConcurrencyLimit } from '../concurrency-limit.ts'
import { AppError } from '../errors.ts'
import { newId, type DatasourceId, type JobId } from '../ids.ts'
import { JobRows, type JobStore, type NewJob } from './job-rows.ts'
import {
  hasEnded,
  INTERRUPTED,
  type Resume,
  type Job,
  type Starter,
  type JobFilter,
  type JobState,
  type Progress,
  type Work,
} from './job-types.ts'

export type { Work } from './job-types.ts'

export interface Jobs extends AsyncDisposable {
  /**
   * Starts a job, for the caller `by` or for the service itself. If a job of this kind already runs for the datasource
   * in any process, returns that job. Throws RATE_LIMITED if callers have too many jobs in this process.
   */
  start(datasourceId: DatasourceId, kind: string, work: Work, by?: Starter): Promise<Job>
  /**
   * If the process of such a job ends, another process runs it again from the start. Call this before its first job.
   */
  resumable(kind: string, resume: Resume): void
  /**
   * Starts a job of a resumable kind, or returns the running job with the same input, which must be plain data. Returns
   * null if `atMost` jobs of this kind already run for the datasource. Throws RATE_LIMITED like start().
   */
  begin(datasourceId: DatasourceId, kind: string, input: unknown, atMost: number, by?: Starter): Promise<Job | null>
  find(datasourceId: DatasourceId, id: JobId): Promise<JobState | null>
  /** Returns at most 100 jobs, newest first, without their results. */
  list(datasourceId: DatasourceId, filter: JobFilter): Promise<readonly JobState[]>
  /** Cancels a job, even if another process runs it. Returns false if the datasource has no such job. */
  cancel(datasourceId: DatasourceId, id: JobId): Promise<boolean>
  /** Waits until the jobs of this process have ended. */
  endAll(datasourceId: DatasourceId): Promise<void>
}

interface Deps {
  readonly store: JobStore
  readonly log?: { error(detail: object, message: string): void }
  readonly networkOf?: (address: string) => string
}

/**
 * Jobs that callers started. In an idle process, one account or team gets ten of them, and fewer while other callers
 * have jobs. `each` is the maximum of a datasource. Resumed jobs do not count.
 */
const STARTED = {
  each: 10,
  all: 50,
  retryAfterSeconds: 10,
  why: 'You, your team or others run too many jobs. Cancel a job that you no longer need, or let one end.',
}

interface Running {
  readonly id: JobId
  readonly datasourceId: DatasourceId
  readonly ended: Promise<unknown>
  readonly isResumable: boolean
  readonly control: AbortController
  done: number
  total: number
  step: string | null
  isWritten: boolean
  /** True if the work has ended, even if its end is not stored yet. Then a new request gets a new job. */
  isOver: boolean
}

const HEARTBEAT_MS = 2_000
/** Every tenth heartbeat also searches for abandoned jobs. */
const BEATS_PER_SEARCH = 10
const POLL_MS = 500
/** A step may contain the long name of a table. */
const STEP_CHARS_MAX = 300
const FAILED = 'The job failed because of a bug in the service.'

/** Abandoned jobs become FAILED, unless they are resumable. */
export async function openJobs(deps: Deps): Promise<Jobs> {
  const rows = new JobRows(deps.store)
  const jobs = new ProcessJobs(deps, rows)
  await rows.bury()
  return jobs
}

class ProcessJobs implements Jobs {
  readonly #deps: Deps
  readonly #rows: JobRows
  readonly #running = new Map<JobId, Running>()
  readonly #resumes = new Map<string, Resume>()
  readonly #started: ConcurrencyLimit
  readonly #heartbeat: NodeJS.Timeout
  /** Heartbeats and searches for abandoned jobs. Closing waits for them. */
  #work: Promise<void> = Promise.resolve()
  #beats = 0
  readonly #closing = new AbortController()

  constructor(deps: Deps, rows: JobRows) {
    this.#deps = deps
    this.#rows = rows
    this.#started = openConcurrencyLimit(STARTED, deps.networkOf ?? ((address) => address))
    this.#heartbeat = setInterval(() => this.#enqueue(() => this.#beat()), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  async start(datasourceId: DatasourceId, kind: string, work: Work, by?: Starter): Promise<Job> {
    const requested = { id: newId<JobId>(), datasourceId, kind, input: null, startedBy: by?.caller.accountId ?? null }
    const job = await this.#start(requested, work, 1, by)
    // Callers share the only job without an input, so claim() returns an id.
    if (job === null) throw new AppError('INTERNAL', `Jobs of the kind ${kind} are resumable: use begin().`)
    return job
  }

  resumable(kind: string, resume: Resume): void {
    this.#resumes.set(kind, resume)
    this.#enqueue(() => this.#search([kind]))
  }

  async begin(
    datasourceId: DatasourceId,
    kind: string,
    input: unknown,
    atMost: number,
    by?: Starter,
  ): Promise<Job | null> {
    const resume = this.#resumes.get(kind)
    if (resume === undefined) throw new AppError('INTERNAL', `Jobs of the kind ${kind} are not resumable: use start().`)
    const startedBy = by?.caller.accountId ?? null
    const job = { id: newId<JobId>(), datasourceId, kind, input: JSON.stringify(input), startedBy }
    return await this.#start(job, resume(datasourceId, input), atMost, by)
  }

  async #start(requested: NewJob, work: Work, atMost: number, by: Starter | undefined): Promise<Job | null> {
    let slot: Disposable | undefined
    const { promise: written, resolve, reject } = Promise.withResolvers<void>()
    // When the row is written, other callers may find it, and must also find the running job.
    const job = this.#add(requested, written, work)
    try {
      const id = await this.#rows.claim(requested, atMost, {
        has: (id) => this.#running.has(id),
        isOver: (id) => this.#running.get(id)?.isOver === true,
        // The store may run the transaction again.
        admit: () => {
          if (by !== undefined) slot ??= this.#started.take(requested.datasourceId, by, by.teamId)
        },
      })
      if (id === requested.id) {
        job.isWritten = true
        resolve()
        const free = () => slot?.[Symbol.dispose]()
        job.ended.then(free, free)
        return { id, ended: () => job.ended, isShared: false, isElsewhere: false }
      }
      slot?.[Symbol.dispose]()
      reject(new AppError('CONFLICT', 'Another job is running.'))
      this.#running.delete(requested.id)
      return id === null ? null : this.#shared(requested.datasourceId, id)
    } catch (error) {
      slot?.[Symbol.dispose]()
      reject(error)
      throw error
    }
  }

  #shared(datasourceId: DatasourceId, id: JobId): Job {
    const own = this.#running.get(id)
    const ended = own === undefined ? () => this.#endedElsewhere(datasourceId, id) : () => own.ended
    return { id, ended, isShared: true, isElsewhere: own === undefined }
  }

  async #endedElsewhere(datasourceId: DatasourceId, id: JobId): Promise<unknown> {
    for (;;) {
      const job = await this.#rows.find(datasourceId, id, null)
      if (job?.state === 'DONE') return job.result
      if (job === null || hasEnded(job.state)) throw new AppError('CONFLICT', job?.error ?? 'The job was cancelled.')
      await setTimeout(POLL_MS, undefined, { signal: this.#closing.signal, ref: false })
    }
  }

  #add({ id, datasourceId, input }: Omit<NewJob, 'startedBy'>, written: Promise<void>, work: Work): Running {
    const ended = written.then(() => this.#run(job, work))
    const job: Running = {
      id,
      datasourceId,
      ended,
      isResumable: input !== null,
      control: new AbortController(),
      done: 0,
      total: 0,
      step: null,
      isWritten: false,
      isOver: false,
    }
    this.#running.set(id, job)
    // The error is stored with the job, so nobody has to handle this rejection.
    ended.catch(() => undefined).finally(() => this.#running.delete(id))
    return job
  }

  async find(datasourceId: DatasourceId, id: JobId): Promise<JobState | null> {
    return await this.#rows.find(datasourceId, id, this.#running.get(id) ?? null)
  }

  async list(datasourceId: DatasourceId, filter: JobFilter): Promise<readonly JobState[]> {
    return await this.#rows.list(datasourceId, filter, (id) => this.#running.get(id) ?? null)
  }

  async cancel(datasourceId: DatasourceId, id: JobId): Promise<boolean> {
    if ((await this.find(datasourceId, id)) === null) return false
    const running = this.#running.get(id)
    await this.#rows.end(id, { state: 'CANCELLED' }, running)
    running?.control.abort()
    await running?.ended.catch(() => undefined)
    return true
  }

  async endAll(datasourceId: DatasourceId): Promise<void> {
    // Other processes notice the cancellation at their next heartbeat.
    await this.#rows.cancelAll(datasourceId)
    const own = [...this.#running.values()].filter((job) => job.datasourceId === datasourceId)
    for (const job of own) job.control.abort()
    await Promise.allSettled(own.map((job) => job.ended))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat)
    this.#closing.abort()
    await this.#work
    const all = [...this.#running.values()]
    for (const job of all) {
      if (job.isResumable) await this.#leave(job)
      else await this.#rows.end(job.id, { state: 'FAILED', error: INTERRUPTED }, job)
      job.control.abort()
    }
    await Promise.allSettled(all.map((job) => job.ended))
  }

  /** Another process may run the job again, so this process must not store how it ended. */
  async #leave(job: Running): Promise<void> {
    await this.#rows.leave(job.id, job)
    this.#running.delete(job.id)
  }

  async #search(kinds: readonly string[]): Promise<void> {
    for (const lost of await this.#rows.lost(kinds)) {
      const resume = this.#resumes.get(lost.kind)
      if (resume === undefined || this.#running.has(lost.id) || this.#closing.signal.aborted) continue
      if (!(await this.#rows.take(lost))) continue
      const work = resume(lost.datasourceId, JSON.parse(lost.input))
      this.#add(lost, Promise.resolve(), work).isWritten = true
    }
  }

  async #run(job: Running, work: Work): Promise<unknown> {
    const progress: Progress = (done, total, step = job.step ?? undefined) => {
      job.done = done
      job.total = total
      job.step = step?.slice(0, STEP_CHARS_MAX) ?? null
    }
    try {
      const result = await work(progress, job.control.signal, job.id).finally(() => (job.isOver = true))
      await this.#rows.end(job.id, { state: 'DONE', result: JSON.stringify(result ?? null) }, job)
      return result
    } catch (error) {
      // Another process may run the job again, so do not store an end.
      if (this.#running.get(job.id) !== job) throw error
      if (!(error instanceof AppError) && !job.control.signal.aborted) this.#logFailure(error)
      const message = error instanceof AppError ? error.message : FAILED
      await this.#rows.end(job.id, { state: 'FAILED', error: message }, job)
      throw error
    }
  }

  async #beat(): Promise<void> {
    if (++this.#beats % BEATS_PER_SEARCH === 0) await this.#search([...this.#resumes.keys()])
    for (const job of this.#running.values()) {
      if (job.isWritten && !(await this.#rows.alive(job.id, job))) job.control.abort()
    }
  }

  #enqueue(work: () => Promise<void>): void {
    this.#work = this.#work
      .then(() => (this.#closing.signal.aborted ? undefined : work()))
      .catch((error: unknown) => this.#logFailure(error))
  }

  #logFailure(error: unknown): void {
    this.#deps.log?.error({ err: error }, 'a job failed')
  }
}
