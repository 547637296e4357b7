// The jobs as the store keeps them, for every process that works on it: who may begin one, how far each is, which of them
// nobody runs any more. It runs nothing.
import type { Transaction } from 'kysely'
import type { DatasourceId, JobId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { JobTable, Tables } from '../store/tables.ts'
import { hasEnded, INTERRUPTED, type JobState } from './job.ts'

export type JobStore = Pick<Store, 'db' | 'dialect' | 'append'>

/** A job to be, and what it is started with: JSON, null for a kind that does not go on after a restart. */
export interface NewJob {
  readonly id: JobId
  readonly datasourceId: DatasourceId
  readonly kind: string
  readonly input: string | null
}

/** One that nobody runs, to go on with. */
export interface LostJob extends Omit<NewJob, 'input'> {
  readonly input: string
  readonly heard: string
}

/** Of the jobs of this process, what the store does not know yet. */
export interface OwnJobs {
  /** This process runs it. */
  has(id: JobId): boolean
  /** Its work has ended, though its end may not stand in the store yet. */
  isOver(id: JobId): boolean
}

interface Reached {
  readonly done: number
  readonly total: number
}

/** A job whose process has not been heard of for so long is taken for dead. */
const SILENCE_MS = 60_000
const KEPT_DAYS = 30

export class JobRows {
  readonly #store: JobStore
  /** Only one process works on a SQLite store: what it finds running at its start nobody runs. */
  readonly #startedAt = iso(Date.now())

  constructor(store: JobStore) {
    this.#store = store
  }

  /** Fails jobs nobody runs any more, but for those that go on. */
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
   * Writes the new job, and answers its id; or the id of one that runs with the same input; or null where `atMost` of its
   * kind run for the datasource, in whichever process. Of several processes that ask at once the transaction lets one in.
   */
  async claim(job: NewJob, atMost: number, own: OwnJobs): Promise<JobId | null> {
    return await this.#store.append(async (tx) => {
      const running = await this.#running(tx, job, own)
      const same = running.find((each) => each.isSame)
      if (same !== undefined) return same.id
      if (running.length >= atMost) return null
      const { id, datasourceId, kind, input } = job
      const at = iso(Date.now())
      const row = { id, datasource_id: datasourceId, kind, done: 0, total: 0, result: null, error: null, input }
      await tx
        .insertInto('jobs')
        .values({ ...row, state: 'RUNNING', created_at: at, updated_at: at })
        .execute()
      return id
    })
  }

  /** Those of its kind that run for its datasource. One that died with its process, and does not go on, is FAILED first. */
  async #running(tx: Transaction<Tables>, { datasourceId, kind, input }: NewJob, own: OwnJobs) {
    const rows = await tx
      .selectFrom('jobs')
      .select(['id', 'updated_at'])
      // Not the input itself: it may be large.
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

  /** Null where this datasource has no such job; `reached` is how far it is, where that is known better than here. */
  async find(datasourceId: DatasourceId, id: JobId, reached: Reached | null): Promise<JobState | null> {
    const row = await this.#store.db
      .selectFrom('jobs')
      .select(['id', 'kind', 'state', 'done', 'total', 'result', 'error', 'created_at', 'updated_at'])
      // Not the input itself: it may be large, and whoever waits for a job asks often.
      .select((eb) => eb('input', 'is not', null).as('goes_on'))
      .where('id', '=', id)
      .where('datasource_id', '=', datasourceId)
      .executeTakeFirst()
    if (row === undefined) return null
    const about = {
      id: row.id,
      kind: row.kind,
      done: reached?.done ?? row.done,
      total: reached?.total ?? row.total,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }
    const silent = Date.parse(row.updated_at) <= Date.now() - SILENCE_MS
    if (reached === null && !hasEnded(row.state) && silent && !isTrue(row.goes_on))
      return { ...about, state: 'FAILED', error: INTERRUPTED }
    return {
      ...about,
      state: row.state,
      ...(row.result !== null && { result: JSON.parse(row.result) }),
      ...(row.error !== null && { error: row.error }),
    }
  }

  /** The first end holds: a cancelled job that fails for it stays CANCELLED. */
  async end(
    id: JobId,
    end: { readonly state: JobTable['state']; readonly result?: string; readonly error?: string },
    reached?: Reached,
  ): Promise<void> {
    const at = reached && { done: reached.done, total: reached.total }
    const set = { ...end, ...at, input: null, updated_at: iso(Date.now()) }
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

  /** Writes how far it is, and that somebody runs it; false where it has ended meanwhile. */
  async alive(id: JobId, { done, total }: Reached): Promise<boolean> {
    const set = { done, total, updated_at: iso(Date.now()) }
    const { numUpdatedRows } = await this.#store.append((tx) =>
      tx.updateTable('jobs').set(set).where('id', '=', id).where('state', '=', 'RUNNING').executeTakeFirst(),
    )
    return numUpdatedRows !== 0n
  }

  /** Leaves it to whoever looks for lost ones next. */
  async leave(id: JobId, { done, total }: Reached): Promise<void> {
    const set = { done, total, updated_at: iso(Date.now() - SILENCE_MS) }
    await this.#store.append((tx) =>
      tx.updateTable('jobs').set(set).where('id', '=', id).where('state', '=', 'RUNNING').execute(),
    )
  }

  /** Those that go on but that nobody runs. */
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

  /** Of several processes that found it lost one gets it. */
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

  /** A job not heard of since is run by nobody. */
  #lastHeard(): string {
    return this.#store.dialect === 'sqlite' ? this.#startedAt : iso(Date.now() - SILENCE_MS)
  }
}

/** As either dialect answers a comparison. */
function isTrue(value: unknown): boolean {
  return value === true || value === 1
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
