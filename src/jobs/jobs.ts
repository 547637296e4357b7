// What takes long: introspection, profiles, previews. A job runs in the process that started it, its progress stands in the
// store. It knows nothing of what it runs. A restart ends it, unless its kind was made to go on (resumable).
import { setTimeout } from 'node:timers/promises'
import { AppError } from '../errors.ts'
import { newId, type DatasourceId, type JobId } from '../ids.ts'
import { JobRows, type JobStore, type NewJob } from './job-rows.ts'
import { hasEnded, INTERRUPTED, type Again, type Job, type JobState, type Progress, type Work } from './job.ts'

export type { Work } from './job.ts'

export interface Jobs extends AsyncDisposable {
  /** Starts a job; where one of this kind is running for the datasource, in whichever process, that one is answered. */
  start(datasourceId: DatasourceId, kind: string, work: Work): Promise<Job>
  /**
   * Makes the jobs of a kind go on after a restart, from the beginning, in whichever process first finds that nobody runs
   * them. Said once a kind, before such a job is begun.
   */
  resumable(kind: string, again: Again): void
  /**
   * Starts a job of a resumable kind; one that runs with the same input, plain data, is answered instead. Null where so
   * many of the kind run for the datasource already, in whichever process.
   */
  begin(datasourceId: DatasourceId, kind: string, input: unknown, atMost: number): Promise<Job | null>
  /** Null where this datasource has no such job. */
  find(datasourceId: DatasourceId, id: JobId): Promise<JobState | null>
  /** Ends it, whichever process runs it; false where this datasource has no such job. Ended ones stay as they are. */
  cancel(datasourceId: DatasourceId, id: JobId): Promise<boolean>
  /** Ends all of a datasource that is changed or deleted, and waits for them. */
  endAll(datasourceId: DatasourceId): Promise<void>
}

interface Deps {
  readonly store: JobStore
  readonly log?: { error(detail: object, message: string): void }
}

interface Running {
  readonly id: JobId
  readonly datasourceId: DatasourceId
  readonly ended: Promise<unknown>
  readonly goesOn: boolean
  readonly control: AbortController
  done: number
  total: number
  /** Its row stands in the store. */
  isWritten: boolean
  /** The work has ended, though its end may not stand in the store yet: whoever asks now wants another. */
  isOver: boolean
}

const HEARTBEAT_MS = 2_000
/** So many heartbeats apart it is looked for jobs that nobody runs any more. */
const BEATS_A_SEARCH = 10
/** Between two looks at a job of another process. */
const LOOK_MS = 500
const FAILED = 'This could not be done because of a defect in the service.'

/** Opens the jobs; what a process that is gone left running becomes FAILED, or goes on. */
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
  readonly #again = new Map<string, Again>()
  readonly #heartbeat: NodeJS.Timeout
  /** Heartbeats and searches, one after the other; none is left behind when it closes. */
  #work: Promise<void> = Promise.resolve()
  #beats = 0
  readonly #closing = new AbortController()

  constructor(deps: Deps, rows: JobRows) {
    this.#deps = deps
    this.#rows = rows
    this.#heartbeat = setInterval(() => this.#behind(() => this.#beat()), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  async start(datasourceId: DatasourceId, kind: string, work: Work): Promise<Job> {
    const job = await this.#start({ id: newId<JobId>(), datasourceId, kind, input: null }, work, 1)
    // Whatever runs of such a kind is the same.
    if (job === null) throw new AppError('INTERNAL', `Jobs of the kind ${kind} go on after a restart: begin them.`)
    return job
  }

  resumable(kind: string, again: Again): void {
    this.#again.set(kind, again)
    this.#behind(() => this.#search([kind]))
  }

  async begin(datasourceId: DatasourceId, kind: string, input: unknown, atMost: number): Promise<Job | null> {
    const again = this.#again.get(kind)
    if (again === undefined) throw new AppError('INTERNAL', `Jobs of the kind ${kind} cannot be begun.`)
    const job = { id: newId<JobId>(), datasourceId, kind, input: JSON.stringify(input) }
    return await this.#start(job, again(datasourceId, input), atMost)
  }

  async #start(asked: NewJob, work: Work, atMost: number): Promise<Job | null> {
    const { promise: written, resolve, reject } = Promise.withResolvers<void>()
    // Before its row is there, so that whoever finds the row finds what runs it.
    const job = this.#add(asked, written, work)
    try {
      const id = await this.#rows.claim(asked, atMost, {
        has: (each) => this.#running.has(each),
        isOver: (each) => this.#running.get(each)?.isOver === true,
      })
      if (id === asked.id) {
        job.isWritten = true
        resolve()
        return { id, ended: () => job.ended, isShared: false, isElsewhere: false }
      }
      reject(new AppError('CONFLICT', 'Another one runs.'))
      this.#running.delete(asked.id)
      return id === null ? null : this.#shared(asked.datasourceId, id)
    } catch (error) {
      reject(error)
      throw error
    }
  }

  #shared(datasourceId: DatasourceId, id: JobId): Job {
    const mine = this.#running.get(id)
    const ended = mine === undefined ? () => this.#endedElsewhere(datasourceId, id) : () => mine.ended
    return { id, ended, isShared: true, isElsewhere: mine === undefined }
  }

  async #endedElsewhere(datasourceId: DatasourceId, id: JobId): Promise<unknown> {
    for (;;) {
      const job = await this.#rows.find(datasourceId, id, null)
      if (job?.state === 'DONE') return job.result
      if (job === null || hasEnded(job.state)) throw new AppError('CONFLICT', job?.error ?? 'The job was ended.')
      await setTimeout(LOOK_MS, undefined, { signal: this.#closing.signal, ref: false })
    }
  }

  /** Runs the work once its row is written. */
  #add({ id, datasourceId, input }: NewJob, written: Promise<void>, work: Work): Running {
    const ended = written.then(() => this.#run(job, work))
    const job: Running = {
      id,
      datasourceId,
      ended,
      goesOn: input !== null,
      control: new AbortController(),
      done: 0,
      total: 0,
      isWritten: false,
      isOver: false,
    }
    this.#running.set(id, job)
    // Its end stands with the job, whether anybody waits for it or not.
    ended.catch(() => undefined).finally(() => this.#running.delete(id))
    return job
  }

  async find(datasourceId: DatasourceId, id: JobId): Promise<JobState | null> {
    return await this.#rows.find(datasourceId, id, this.#running.get(id) ?? null)
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
    // Those of other processes too, which hear of it by their next heartbeat.
    await this.#rows.cancelAll(datasourceId)
    const mine = [...this.#running.values()].filter((job) => job.datasourceId === datasourceId)
    for (const job of mine) job.control.abort()
    await Promise.allSettled(mine.map((job) => job.ended))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat)
    this.#closing.abort()
    await this.#work
    const all = [...this.#running.values()]
    for (const job of all) {
      if (job.goesOn) await this.#leave(job)
      else await this.#rows.end(job.id, { state: 'FAILED', error: INTERRUPTED }, job)
      job.control.abort()
    }
    await Promise.allSettled(all.map((job) => job.ended))
  }

  /** To another process: it is no longer ours to end. */
  async #leave(job: Running): Promise<void> {
    await this.#rows.leave(job.id, job)
    this.#running.delete(job.id)
  }

  /** Goes on with jobs of resumable kinds that nobody runs. */
  async #search(kinds: readonly string[]): Promise<void> {
    for (const lost of await this.#rows.lost(kinds)) {
      const again = this.#again.get(lost.kind)
      if (again === undefined || this.#running.has(lost.id) || this.#closing.signal.aborted) continue
      if (!(await this.#rows.take(lost))) continue
      const work = again(lost.datasourceId, JSON.parse(lost.input))
      this.#add(lost, Promise.resolve(), work).isWritten = true
    }
  }

  async #run(job: Running, work: Work): Promise<unknown> {
    const progress: Progress = (done, total) => {
      job.done = done
      job.total = total
    }
    try {
      const result = await work(progress, job.control.signal, job.id).finally(() => (job.isOver = true))
      await this.#rows.end(job.id, { state: 'DONE', result: JSON.stringify(result ?? null) }, job)
      return result
    } catch (error) {
      // Left to another process: that one ends it.
      if (this.#running.get(job.id) !== job) throw error
      if (!(error instanceof AppError) && !job.control.signal.aborted) this.#say(error)
      const told = error instanceof AppError ? error.message : FAILED
      await this.#rows.end(job.id, { state: 'FAILED', error: told }, job)
      throw error
    }
  }

  /** Writes the progress, and hears whether another process cancelled. */
  async #beat(): Promise<void> {
    if (++this.#beats % BEATS_A_SEARCH === 0) await this.#search([...this.#again.keys()])
    for (const job of this.#running.values()) {
      if (job.isWritten && !(await this.#rows.alive(job.id, job))) job.control.abort()
    }
  }

  #behind(work: () => Promise<void>): void {
    this.#work = this.#work
      .then(() => (this.#closing.signal.aborted ? undefined : work()))
      .catch((error: unknown) => this.#say(error))
  }

  #say(error: unknown): void {
    this.#deps.log?.error({ err: error }, 'a job failed')
  }
}
