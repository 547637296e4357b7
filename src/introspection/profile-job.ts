// Profiles the values of exposed columns, table by table, over a connection outside the pool. The job resumes after a
// restart. profiles/privacy.ts decides what is stored. The exposure is checked again before the profile of a table is
// stored, because it may have changed.
import { z } from 'zod'
import type { Call } from '../auth/caller.ts'
import type { Config } from '../config.ts'
import type { Catalog, CatalogTable, Connection, ProfileBounds, TableProfile } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { AppError, invalidRequest } from '../errors.ts'
import { orderJob } from '../jobs/start-job.ts'
import { notIntrospected, requireEnabled, requireUsable } from '../exposure/require-usable.ts'
import type { DatasourceId, JobId } from '../ids.ts'
import type { Work } from '../jobs/jobs.ts'
import { marksOf } from '../profiles/personal-marks.ts'
import { allowedProfile } from '../profiles/privacy.ts'
import { saveProfile, raiseVersion, writtenBy } from '../profiles/stored-profiles.ts'
import { settingsOf } from '../teams/team-settings.ts'
import { noteFailure } from '../datasources/test-datasource.ts'
import type { DatasourceDeps } from '../datasources/datasources.ts'
import { deadlineOf } from '../deadline.ts'
import type { LeaseTarget } from '../datasources/connection-pool.ts'
import type { Reached } from '../datasources/require-reach.ts'
import { changedMeanwhile } from '../datasources/changed-or-overloaded.ts'
import { readRow, type DatasourceRow } from '../datasources/datasource-rows.ts'

export type ProfileDeps = Pick<DatasourceDeps, 'store' | 'audit' | 'catalogs' | 'leases' | 'jobs' | 'drivers'> & {
  readonly config: Pick<Config, 'ceilings'>
}

/** `sample` has an effect only on databases that bill queries by the bytes they read. */
interface Order {
  readonly tables?: readonly { readonly schema: string; readonly table: string }[]
  readonly sample?: boolean
}

interface Profiled {
  readonly tables: number
  readonly columns: number
  readonly skipped: readonly { readonly schema: string; readonly table: string; readonly why: string }[]
}

const KIND = 'profile'
/** The timeout of the whole job. Finished tables are kept. */
const PROFILE_MS = 30 * 60_000
const TABLE_MS = 60_000
/** The statement timeout of the team applies if it is shorter. */
const STATEMENT_MS = 10_000
const ROWS = 10_000
/** An attempt to store a profile fails if the exposure or the connection changes in the meantime. */
const KEEP_TRIES = 5

/**
 * An equal request joins the running job. Throws DATASOURCE_DISABLED, NOT_CONNECTED before the first introspection,
 * INVALID_REQUEST for a table that is not exposed, and CONFLICT while another profile runs.
 */
export async function profileDatasource(
  deps: ProfileDeps,
  call: Call,
  at: Reached,
  order: Order,
): Promise<{ readonly jobId: JobId }> {
  requireUsable(at.row)
  const exposed = await deps.catalogs.exposed(at.row)
  if (exposed === null) throw notIntrospected()
  const names = new Set(exposed.tables.map((table) => tableKey(table.schema, table.table)))
  const problems = (order.tables ?? []).flatMap(({ schema, table }, n) =>
    names.has(tableKey(schema, table)) ? [] : [`tables.${n}: this table is not exposed`],
  )
  if (problems.length > 0) throw invalidRequest(problems)
  const input = { ...(order.tables !== undefined && { tables: order.tables }), sample: order.sample === true }
  const busy = 'Another profile of this datasource is already running. Wait for it to finish, or cancel it.'
  return await orderJob(deps, call, at, { kind: KIND, input, atMost: 1, busy })
}

const Input = z.object({
  tables: z.array(z.object({ schema: z.string(), table: z.string() })).exactOptional(),
  sample: z.boolean(),
})

/** Lets profiles resume after a restart. Call this once, before the first profile. */
export function resumeProfiles(deps: ProfileDeps): void {
  deps.jobs.resumable(KIND, (id, input) => async (progress, ended, run) => {
    const order = Input.parse(input)
    using deadline = deadlineOf(ended, PROFILE_MS)
    try {
      await using profiler = await Profiler.open(deps, id, order, run, deadline.signal)
      return await profiler.all(progress)
    } catch (error) {
      if (!deadline.timedOut) throw error
      const message = 'The profile took too long. Finished tables are kept. Profile the remaining tables by name.'
      throw new AppError('QUERY_TIMEOUT', message, { cause: error })
    }
  })
}

/** Has at most one connection at a time. */
class Profiler implements AsyncDisposable {
  readonly #deps: ProfileDeps
  readonly #at: LeaseTarget
  readonly #run: string
  readonly #tables: readonly CatalogTable[]
  readonly #bounds: ProfileBounds
  readonly #signal: AbortSignal
  #connection: Connection | null = null
  #kept = 0

  constructor(deps: ProfileDeps, at: LeaseTarget, run: string, todo: Todo, signal: AbortSignal) {
    this.#deps = deps
    this.#at = at
    this.#run = run
    this.#tables = todo.tables
    this.#bounds = todo.bounds
    this.#signal = signal
  }

  static async open(
    deps: ProfileDeps,
    id: DatasourceId,
    order: z.infer<typeof Input>,
    run: string,
    signal: AbortSignal,
  ): Promise<Profiler> {
    const row = await readRow(deps.store, id)
    const driver = row === undefined ? undefined : deps.drivers.get(row.type)
    if (row === undefined || driver === undefined) throw changedMeanwhile()
    requireEnabled(row)
    const exposed = await deps.catalogs.exposed(row)
    if (exposed === null) throw notIntrospected()
    const requested = order.tables && new Set(order.tables.map(({ schema, table }) => tableKey(schema, table)))
    const tables = exposed.tables.filter((table) => requested?.has(tableKey(table.schema, table.table)) ?? true)
    const { statementTimeoutMs, bigqueryMaxBytes } = await settingsOf(deps, row.team_id)
    const timeoutMs = Math.min(STATEMENT_MS, statementTimeoutMs)
    const bounds = { rows: ROWS, timeoutMs, bytes: order.sample ? bigqueryMaxBytes : null }
    return new Profiler(deps, { id, row, driver }, run, { tables, bounds }, signal)
  }

  async all(progress: Parameters<Work>[0]): Promise<Profiled> {
    const skipped: { schema: string; table: string; why: string }[] = []
    const written = await writtenBy(this.#deps.store.db, this.#at.id, this.#run)
    this.#kept += written.size
    let [tables, columns] = [0, 0]
    for (const [n, { schema, table }] of this.#tables.entries()) {
      progress(n, this.#tables.length, this.#at.driver.typed([schema, table]))
      const before = written.get(tableKey(schema, table))
      const done = before === undefined ? await this.#table(schema, table) : { columns: before }
      if ('why' in done) skipped.push({ schema, table, why: done.why })
      else {
        tables++
        columns += done.columns
      }
    }
    progress(this.#tables.length, this.#tables.length)
    return { tables, columns, skipped }
  }

  /** Lets descriptions show the stored profiles, even if the job failed after some tables. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#disconnect()
    if (this.#kept === 0) return
    const { store } = this.#deps
    await store.write(async (tx) => {
      const profiledAt = new Date().toISOString()
      await tx.updateTable('datasources').set({ profiled_at: profiledAt }).where('id', '=', this.#at.id).execute()
      await raiseVersion(tx, this.#at.id)
    })
  }

  async #table(schema: string, name: string): Promise<{ readonly columns: number } | { readonly why: string }> {
    const now = await this.#exposedNow(schema, name)
    if (now === null) return { why: NOT_EXPOSED }
    const capturedAt = new Date().toISOString()
    for (let tried = 1; ; tried++) {
      try {
        const profile = await this.#profile(now.table, now.exposed)
        const columns = await this.#keep(schema, name, profile, capturedAt)
        this.#kept += columns === null ? 0 : 1
        return columns === null ? { why: NOT_EXPOSED } : { columns }
      } catch (error) {
        this.#signal.throwIfAborted()
        if (!(error instanceof AppError)) throw error
        // The connection may have been lost, so try once more with a new one.
        if (error.code === 'DATASOURCE_UNAVAILABLE' && tried === 1) continue
        if (!SKIPPED.has(error.code)) throw error
        return { why: error.message }
      }
    }
  }

  async #profile(table: CatalogTable, exposed: Catalog): Promise<TableProfile> {
    const connection = await this.#connected()
    using deadline = deadlineOf(this.#signal, TABLE_MS)
    return await connection.profile(table, exposed, this.#bounds, deadline.signal)
  }

  async #connected(): Promise<Connection> {
    if (this.#connection?.usable === true) return this.#connection
    await this.#disconnect()
    try {
      this.#connection = await this.#deps.leases.connect(this.#at, this.#signal)
      return this.#connection
    } catch (error) {
      await noteFailure(this.#deps, this.#at, error)
      throw error
    }
  }

  async #disconnect(): Promise<void> {
    const connection = this.#connection
    this.#connection = null
    await connection?.[Symbol.asyncDispose]()
  }

  /** Null if the table is no longer exposed. Throws CONFLICT if the connection changed, and DATASOURCE_DISABLED. */
  async #exposedNow(
    schema: string,
    name: string,
  ): Promise<{ readonly row: DatasourceRow; readonly exposed: Catalog; readonly table: CatalogTable } | null> {
    const row = await readRow(this.#deps.store, this.#at.id)
    if (row?.connection_version !== this.#at.row.connection_version) throw changedMeanwhile()
    requireEnabled(row)
    const exposed = await this.#deps.catalogs.exposed(row)
    const table = exposed?.tables.find((each) => each.schema === schema && each.table === name)
    return exposed === null || table === undefined ? null : { row, exposed, table }
  }

  /**
   * Stores what the privacy rules allow, if the exposure and the connection have not changed. Returns the number of
   * stored columns, or null if the table is no longer exposed.
   */
  async #keep(schema: string, name: string, profile: TableProfile, capturedAt: string): Promise<number | null> {
    const { store } = this.#deps
    for (let tried = 1; tried <= KEEP_TRIES; tried++) {
      const now = await this.#exposedNow(schema, name)
      if (now === null) return null
      const columnCount = await store.append(async (tx) => {
        const { numUpdatedRows } = await tx
          .updateTable('datasources')
          .set((eb) => ({ profile_version: eb.ref('profile_version') }))
          .where('id', '=', this.#at.id)
          .where('exposure_version', '=', now.row.exposure_version)
          .where('connection_version', '=', now.row.connection_version)
          .executeTakeFirstOrThrow()
        if (numUpdatedRows !== 1n) return null
        const marks = await marksOf(tx, this.#at.id, { schema, table: name })
        const seen = allowedProfile(profile, now.table, marks, capturedAt)
        await saveProfile(tx, this.#at.id, this.#run, seen)
        return seen.columns.length
      })
      if (columnCount !== null) return columnCount
    }
    throw changedMeanwhile()
  }
}

interface Todo {
  readonly tables: readonly CatalogTable[]
  readonly bounds: ProfileBounds
}

const NOT_EXPOSED = 'It is no longer exposed.'
/** The job skips a table with one of these errors. */
const SKIPPED = new Set(['SCHEMA_STALE', 'QUERY_TIMEOUT', 'QUERY_FAILED', 'QUERY_DENIED'])
