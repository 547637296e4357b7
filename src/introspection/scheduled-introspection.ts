// Introspects each datasource again `config.reintrospectHours` after its last introspection, so that drift is noticed.
// The schedule is in the store, so a restart does not change it, and only one of several processes runs an
// introspection. Skips datasources that are disabled or were never introspected.
import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { AppError } from '../errors.ts'
import type { AccountId, DatasourceId } from '../ids.ts'
import type { DatasourceTable } from '../store/tables.ts'
import { ownerOf } from '../datasources/datasource-owner.ts'
import type { DatasourceDeps } from '../datasources/datasources.ts'
import { INTROSPECT, introspect } from './introspect-job.ts'

export interface Reintrospection extends AsyncDisposable {
  /** Runs all due introspections and waits until they have ended. A timer also starts them once a minute. */
  run(): Promise<void>
}

type Deps = Pick<DatasourceDeps, 'store' | 'audit' | 'catalogs' | 'leases' | 'jobs' | 'drivers'> & {
  readonly log?: {
    info(detail: object, message: string): void
    warn(detail: object, message: string): void
    error(detail: object, message: string): void
  }
  readonly now?: () => number
}

const EVERY_MS = 60_000
/**
 * The maximum number of concurrent introspections in this process: for the teams of one owner, and in total. Each opens
 * one connection. A slow database takes up to half an hour, so one account must not take all places.
 */
const AT_ONCE = { each: 2, all: 8 }
/** A process renews its claims at each check, so the claims of a dead process expire soon. */
const CLAIM_MS = 5 * EVERY_MS
const HOUR_MS = 3_600_000
/** Each introspection is delayed by up to this share of its interval, so that datasources are not all due together. */
const JITTER = 0.1
/** The delay after the first failure. Each further failure doubles the delay, up to `reintrospectHours`. */
const RETRY_MS = 15 * 60_000

export function openReintrospection(deps: Deps): Reintrospection {
  return new Scheduled(deps)
}

interface Due {
  readonly row: Selectable<DatasourceTable>
  readonly owner: AccountId | null
  readonly failures: number
  readonly error: string | null
  readonly at: number
}

class Scheduled implements Reintrospection {
  readonly #deps: Deps
  readonly #now: () => number
  readonly #active = new Map<DatasourceId, { readonly owner: Due['owner']; readonly work: Promise<void> }>()
  readonly #closing = new AbortController()
  readonly #timer: NodeJS.Timeout
  #looking: Promise<void> = Promise.resolve()

  constructor(deps: Deps) {
    this.#deps = deps
    this.#now = deps.now ?? Date.now
    this.#timer = setInterval(() => void this.#look(), EVERY_MS)
    this.#timer.unref()
  }

  async run(): Promise<void> {
    await this.#look()
    while (this.#active.size > 0) await Promise.all([...this.#active.values()].map(({ work }) => work))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#closing.abort()
    await this.#looking
    await Promise.all([...this.#active.values()].map(({ work }) => work))
  }

  /** After an error, the next check tries again. */
  #look(): Promise<void> {
    this.#looking = this.#looking
      .then(() => (this.#closing.signal.aborted ? undefined : this.#fill()))
      .catch((err: unknown) => this.#deps.log?.error({ err }, 'the check for due introspections failed'))
    return this.#looking
  }

  async #fill(): Promise<void> {
    await this.#renew()
    for (const due of await this.#due()) {
      if (this.#active.size >= AT_ONCE.all) return
      const { owner } = due
      const running = [...this.#active.values()].filter((each) => each.owner === owner).length
      if (running >= AT_ONCE.each || this.#active.has(due.row.id) || !(await this.#claim(due))) continue
      const work = this.#work(due)
        .catch((err: unknown) => this.#deps.log?.error({ err }, 'a scheduled introspection could not be recorded'))
        .finally(() => this.#active.delete(due.row.id))
        // There is room for another introspection now.
        .then(() => this.#look())
      this.#active.set(due.row.id, { owner, work })
    }
  }

  /** The longest overdue datasource comes first. */
  async #due(): Promise<readonly Due[]> {
    const now = this.#now()
    const rows = await this.#deps.store.db
      .selectFrom('datasources')
      .innerJoin('catalogs', (join) =>
        join
          .onRef('catalogs.datasource_id', '=', 'datasources.id')
          .onRef('catalogs.version', '=', 'datasources.catalog_version'),
      )
      .leftJoin('reintrospections', 'reintrospections.datasource_id', 'datasources.id')
      .selectAll('datasources')
      .select(['catalogs.captured_at', 'reintrospections.claimed_until', 'reintrospections.failures'])
      .select(['reintrospections.retry_at', 'reintrospections.error'])
      .select(ownerOf)
      .where('datasources.status', '!=', 'DISABLED')
      .where('datasources.reintrospect_hours', '>', 0)
      .execute()
    return rows
      .filter((row) => row.claimed_until === null || Date.parse(row.claimed_until) <= now)
      .map((row) => ({ row, owner: row.owner, failures: row.failures ?? 0, error: row.error, at: dueAt(row) }))
      .filter((due) => due.at <= now)
      .sort((a, b) => a.at - b.at)
  }

  /** Returns false if another process claimed the introspection first, even if that claim has already ended. */
  async #claim({ row, failures }: Due): Promise<boolean> {
    const now = this.#now()
    return await this.#deps.store.append(async (tx) => {
      const current = await tx
        .selectFrom('datasources')
        .leftJoin('reintrospections', 'reintrospections.datasource_id', 'datasources.id')
        .select(['datasources.catalog_version', 'reintrospections.claimed_until', 'reintrospections.failures'])
        .where('datasources.id', '=', row.id)
        .executeTakeFirst()
      if (current?.catalog_version !== row.catalog_version || (current.failures ?? 0) !== failures) return false
      if (current.claimed_until !== null && Date.parse(current.claimed_until) > now) return false
      const claimed = { claimed_until: iso(now + CLAIM_MS) }
      await tx
        .insertInto('reintrospections')
        .values({ datasource_id: row.id, failures: 0, retry_at: null, error: null, ...claimed })
        .onConflict((oc) => oc.column('datasource_id').doUpdateSet(claimed))
        .execute()
      return true
    })
  }

  async #renew(): Promise<void> {
    const ids = [...this.#active.keys()]
    if (ids.length === 0) return
    await this.#deps.store.append((tx) =>
      tx
        .updateTable('reintrospections')
        .set({ claimed_until: iso(this.#now() + CLAIM_MS) })
        .where('datasource_id', 'in', ids)
        .where('claimed_until', 'is not', null)
        .execute(),
    )
  }

  async #work(due: Due): Promise<void> {
    const { row } = due
    const datasource = { datasourceId: row.id, teamId: row.team_id }
    try {
      const driver = this.#deps.drivers.get(row.type)
      if (driver === undefined) throw new AppError('INTERNAL', `There is no driver for ${row.type}.`)
      const at = { id: row.id, teamId: row.team_id, row, driver }
      // As a job, it can be shared by concurrent callers, and is cancelled with the datasource's jobs.
      const job = await this.#deps.jobs.start(row.id, INTROSPECT, (progress, ended) =>
        introspect(this.#deps, null, at, progress, AbortSignal.any([ended, this.#closing.signal])),
      )
      // Does not wait at a shutdown, because a caller may have started the job. src/jobs ends it.
      const found = await unlessAborted(job.ended(), this.#closing.signal)
      await this.#forgive(due)
      this.#deps.log?.info({ ...datasource, found }, 'scheduled introspection finished')
    } catch (error) {
      if (this.#closing.signal.aborted) return await this.#release(row.id)
      await this.#failed(due, error)
      const code = error instanceof AppError ? error.code : 'INTERNAL'
      this.#deps.log?.warn({ ...datasource, code }, 'scheduled introspection failed')
    }
  }

  /** Clears the status ERROR if a failed scheduled introspection had set it. */
  async #forgive({ row, error }: Due): Promise<void> {
    if (error === null) return
    await this.#deps.store.write((tx) =>
      tx
        .updateTable('datasources')
        .set({ status: 'CONNECTED', last_error: null, last_tested_at: iso(Date.now()) })
        .where('id', '=', row.id)
        .where('status', '=', 'ERROR')
        .where('last_error', '=', error)
        .where('connection_version', '=', row.connection_version)
        .execute(),
    )
  }

  async #failed({ row, failures }: Due, error: unknown): Promise<void> {
    const wait = Math.min(RETRY_MS * 2 ** Math.min(failures, 20), row.reintrospect_hours * HOUR_MS)
    const message = error instanceof AppError && error.code === 'DATASOURCE_UNAVAILABLE' ? error.message : null
    const set = { claimed_until: null, failures: failures + 1, retry_at: iso(this.#now() + wait), error: message }
    await this.#deps.store.append((tx) =>
      tx.updateTable('reintrospections').set(set).where('datasource_id', '=', row.id).execute(),
    )
  }

  async #release(id: DatasourceId): Promise<void> {
    await this.#deps.store.append((tx) =>
      tx.updateTable('reintrospections').set({ claimed_until: null }).where('datasource_id', '=', id).execute(),
    )
  }
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const end = () => reject(new AppError('CONFLICT', 'The service is shutting down.'))
  if (signal.aborted) end()
  signal.addEventListener('abort', end)
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', end)
  }
}

function dueAt(row: {
  readonly id: DatasourceId
  readonly captured_at: string
  readonly reintrospect_hours: number
  readonly retry_at: string | null
}): number {
  const late = 1 + JITTER * fractionOf(row.id)
  const due = Date.parse(row.captured_at) + row.reintrospect_hours * HOUR_MS * late
  return row.retry_at === null ? due : Math.max(due, Date.parse(row.retry_at))
}

/** Always the same for a datasource, from 0 to 1. */
function fractionOf(id: DatasourceId): number {
  return createHash('sha256').update(id).digest().readUInt32BE() / 2 ** 32
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
