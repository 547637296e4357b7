// What takes long: introspection, previews. A job runs in the process that started it, its progress stands in the store.
// It knows nothing of what it runs. A restart ends it, unless its kind was made to go on (resumable).
import { createHash } from 'node:crypto'
import { AppError } from '../errors.ts'
import { newId, type DatasourceId, type JobId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { JobTable } from '../store/tables.ts'

/** Says how far a job is; written to the store now and then. */
type Progress = (done: number, total: number) => void

/** What a job does; its value, plain data, becomes the job's `result`. `id` is its own, the same after a restart. */
export type Work = (progress: Progress, signal: AbortSignal, id: JobId) => Promise<unknown>

/** Makes the work of a job from what it was started with, in whichever process goes on with it. */
type Again = (datasourceId: DatasourceId, input: unknown) => Work

interface Job {
  readonly id: JobId
  /** Settles with the work, after its end stands in the store. */
  readonly ended: Promise<unknown>
  /** It was running already. */
  readonly isShared: boolean
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
  /**
   * Makes the jobs of a kind go on after a restart, from the beginning, in whichever process first finds that nobody runs
   * them. Said once a kind, before such a job is begun.
   */
  resumable(kind: string, again: Again): void
  /**
   * Starts a job of a resumable kind; one that runs with the same input, plain data, is answered instead. Null where so
   * many of the kind run for the datasource already.
   */
  begin(datasourceId: DatasourceId, kind: string, input: unknown, atMost: number): Promise<Job | null>
  /** How many of a kind run for the datasource in this process. */
  running(datasourceId: DatasourceId, kind: string): number
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

interface Running extends Omit<Job, 'isShared'> {
  readonly datasourceId: DatasourceId
  readonly kind: string
  /** Tells jobs of a resumable kind apart; null for a kind of which one runs at a time. */
  readonly inputHash: string | null
  readonly control: AbortController
  done: number
  total: number
  /** The work has ended, though its end may not stand in the store yet: whoever asks now wants another. */
  isOver: boolean
}

const HEARTBEAT_MS = 2_000
/** A job whose process has not been heard of for so long is taken for dead. */
const SILENCE_MS = 60_000
/** So many heartbeats apart it is looked for jobs that nobody runs any more. */
const BEATS_A_SEARCH = 10
const KEPT_DAYS = 30
const INTERRUPTED = 'The service was restarted while this ran. Start it again.'
const FAILED = 'This could not be done because of a defect in the service.'

/** Opens the jobs; what a process that is gone left running becomes FAILED, or goes on. */
export async function openJobs(deps: Deps): Promise<Jobs> {
  const jobs = new ProcessJobs(deps)
  await jobs.bury()
  return jobs
}

class ProcessJobs implements Jobs {
  readonly #deps: Deps
  readonly #running = new Map<JobId, Running>()
  readonly #again = new Map<string, Again>()
  readonly #heartbeat: NodeJS.Timeout
  /** Only one process works on a SQLite store: what it finds running at its start nobody runs. */
  readonly #startedAt = iso(Date.now())
  /** Heartbeats and searches, one after the other; none is left behind when it closes. */
  #work: Promise<void> = Promise.resolve()
  #beats = 0
  #closed = false

  constructor(deps: Deps) {
    this.#deps = deps
    this.#heartbeat = setInterval(() => this.#behind(() => this.#beat()), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  /** Fails jobs nobody runs any more, but for those that go on. */
  async bury(): Promise<void> {
    await this.#deps.store.append(async (tx) => {
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

  async start(datasourceId: DatasourceId, kind: string, work: Work): Promise<Job> {
    return await this.#start(datasourceId, kind, work, null)
  }

  resumable(kind: string, again: Again): void {
    this.#again.set(kind, again)
    this.#behind(() => this.#search([kind]))
  }

  async begin(datasourceId: DatasourceId, kind: string, input: unknown, atMost: number): Promise<Job | null> {
    const again = this.#again.get(kind)
    if (again === undefined) throw new AppError('INTERNAL', `Jobs of the kind ${kind} cannot be begun.`)
    const isShared = this.#same(datasourceId, kind, hashOf(JSON.stringify(input))) !== undefined
    if (!isShared && this.running(datasourceId, kind) >= atMost) return null
    return await this.#start(datasourceId, kind, again(datasourceId, input), JSON.stringify(input))
  }

  running(datasourceId: DatasourceId, kind: string): number {
    return this.#under(datasourceId, kind).length
  }

  async #start(datasourceId: DatasourceId, kind: string, work: Work, input: string | null): Promise<Job> {
    const inputHash = hashOf(input)
    const same = this.#same(datasourceId, kind, inputHash)
    if (same !== undefined) return { id: same.id, ended: same.ended, isShared: true }
    const id = newId<JobId>()
    const at = iso(Date.now())
    const { promise: written, resolve, reject } = Promise.withResolvers<void>()
    // Before the first wait, so that two who ask at once get one job.
    const job = this.#add({ id, datasourceId, kind, inputHash }, written, work)
    try {
      const row = { id, datasource_id: datasourceId, kind, done: 0, total: 0, result: null, error: null, input }
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
    return { id, ended: job.ended, isShared: false }
  }

  #same(datasourceId: DatasourceId, kind: string, inputHash: string | null): Running | undefined {
    return this.#under(datasourceId, kind).find((job) => job.inputHash === inputHash)
  }

  #under(datasourceId: DatasourceId, kind: string): readonly Running[] {
    const all = [...this.#running.values()]
    return all.filter((job) => job.datasourceId === datasourceId && job.kind === kind && !job.isOver)
  }

  /** Runs the work once its row is written. */
  #add(
    about: Pick<Running, 'id' | 'datasourceId' | 'kind' | 'inputHash'>,
    written: Promise<void>,
    work: Work,
  ): Running {
    const ended = written.then(() => this.#run(job, work))
    const job: Running = { ...about, control: new AbortController(), done: 0, total: 0, isOver: false, ended }
    this.#running.set(job.id, job)
    ended.catch(() => undefined).finally(() => this.#running.delete(job.id))
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
    if (running === undefined && !hasEnded(row.state) && silent && !isTrue(row.goes_on))
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
    // Those of other processes too, which hear of it by their next heartbeat.
    await this.#deps.store.append((tx) =>
      tx
        .updateTable('jobs')
        .set({ state: 'CANCELLED', input: null, updated_at: iso(Date.now()) })
        .where('datasource_id', '=', datasourceId)
        .where('state', 'in', ['QUEUED', 'RUNNING'])
        .execute(),
    )
    const mine = [...this.#running.values()].filter((job) => job.datasourceId === datasourceId)
    for (const job of mine) job.control.abort()
    await Promise.allSettled(mine.map((job) => job.ended))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat)
    this.#closed = true
    await this.#work
    const all = [...this.#running.values()]
    for (const job of all) {
      if (job.inputHash === null) await this.#end(job.id, { state: 'FAILED', error: INTERRUPTED })
      else await this.#leave(job)
      job.control.abort()
    }
    await Promise.allSettled(all.map((job) => job.ended))
  }

  /** Leaves it to whoever searches next: long silent, and no longer ours to end. */
  async #leave(job: Running): Promise<void> {
    const set = { done: job.done, total: job.total, updated_at: iso(Date.now() - SILENCE_MS) }
    await this.#deps.store.append((tx) =>
      tx.updateTable('jobs').set(set).where('id', '=', job.id).where('state', '=', 'RUNNING').execute(),
    )
    this.#running.delete(job.id)
  }

  /** Goes on with jobs of resumable kinds that nobody runs; of several processes one gets each. */
  async #search(kinds: readonly string[]): Promise<void> {
    if (kinds.length === 0) return
    const lost = await this.#deps.store.db
      .selectFrom('jobs')
      .select(['id', 'datasource_id', 'kind', 'input', 'updated_at'])
      .where('kind', 'in', kinds)
      .where('state', '=', 'RUNNING')
      .where('input', 'is not', null)
      .where('updated_at', '<=', this.#lastHeard())
      .execute()
    for (const { id, datasource_id: datasourceId, kind, input, updated_at: heard } of lost) {
      const again = this.#again.get(kind)
      if (again === undefined || input === null || this.#running.has(id) || this.#closed) continue
      const taken = await this.#deps.store.append((tx) =>
        tx
          .updateTable('jobs')
          .set({ updated_at: iso(Date.now()) })
          .where('id', '=', id)
          .where('updated_at', '=', heard)
          .executeTakeFirst(),
      )
      if (taken.numUpdatedRows !== 1n) continue
      const work = again(datasourceId, JSON.parse(input))
      this.#add({ id, datasourceId, kind, inputHash: hashOf(input) }, Promise.resolve(), work)
    }
  }

  /** A job not heard of since is run by nobody. */
  #lastHeard(): string {
    return this.#deps.store.dialect === 'sqlite' ? this.#startedAt : iso(Date.now() - SILENCE_MS)
  }

  async #run(job: Running, work: Work): Promise<unknown> {
    const progress: Progress = (done, total) => {
      job.done = done
      job.total = total
    }
    try {
      const result = await work(progress, job.control.signal, job.id).finally(() => (job.isOver = true))
      await this.#end(job.id, { state: 'DONE', result: JSON.stringify(result ?? null) })
      return result
    } catch (error) {
      // Left to another process: that one ends it.
      if (this.#running.get(job.id) !== job) throw error
      if (!(error instanceof AppError) && !job.control.signal.aborted) this.#say(error)
      await this.#end(job.id, { state: 'FAILED', error: error instanceof AppError ? error.message : FAILED })
      throw error
    }
  }

  /** The first end holds: a cancelled job that fails for it stays CANCELLED. */
  async #end(id: JobId, end: { state: JobTable['state']; result?: string; error?: string }): Promise<void> {
    const job = this.#running.get(id)
    const reached = job && { done: job.done, total: job.total }
    const set = { ...end, ...reached, input: null, updated_at: iso(Date.now()) }
    await this.#deps.store.append((tx) =>
      tx.updateTable('jobs').set(set).where('id', '=', id).where('state', 'in', ['QUEUED', 'RUNNING']).execute(),
    )
  }

  /** Writes the progress, and hears whether another process cancelled. */
  async #beat(): Promise<void> {
    if (++this.#beats % BEATS_A_SEARCH === 0) await this.#search([...this.#again.keys()])
    for (const job of this.#running.values()) {
      const set = { done: job.done, total: job.total, updated_at: iso(Date.now()) }
      const alive = await this.#deps.store.append((tx) =>
        tx.updateTable('jobs').set(set).where('id', '=', job.id).where('state', '=', 'RUNNING').executeTakeFirst(),
      )
      if (alive.numUpdatedRows === 0n) job.control.abort()
    }
  }

  #behind(work: () => Promise<void>): void {
    this.#work = this.#work.then(() => (this.#closed ? undefined : work())).catch((error: unknown) => this.#say(error))
  }

  #row(datasourceId: DatasourceId, id: JobId) {
    return (
      this.#deps.store.db
        .selectFrom('jobs')
        .select(['id', 'kind', 'state', 'done', 'total', 'result', 'error', 'created_at', 'updated_at'])
        // Not the input itself: it may be large, and whoever waits for a job asks often.
        .select((eb) => eb('input', 'is not', null).as('goes_on'))
        .where('id', '=', id)
        .where('datasource_id', '=', datasourceId)
        .executeTakeFirst()
    )
  }

  #say(error: unknown): void {
    this.#deps.log?.error({ err: error }, 'a job failed')
  }
}

function hasEnded(state: JobTable['state']): boolean {
  return state !== 'QUEUED' && state !== 'RUNNING'
}

/** As either dialect answers a comparison. */
function isTrue(value: unknown): boolean {
  return value === true || value === 1
}

function hashOf(input: string | null): string | null {
  return input === null ? null : createHash('sha256').update(input).digest('base64')
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
