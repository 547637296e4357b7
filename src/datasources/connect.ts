// Test and introspect: the two ways to look at a database itself, each over a fresh connection, and the states they
// leave behind. What a database says stays out of answers and states: both hold sentences of ours.
import { z } from 'zod'
import type { Call } from '../auth/caller.ts'
import type { Catalog, TestReport } from '../drivers/driver.ts'
import { AppError, notFound } from '../errors.ts'
import { tableKey } from '../exposure/cut.ts'
import type { JobId } from '../ids.ts'
import { deadlineOf } from './deadline.ts'
import type { DatasourceDeps } from './datasources.ts'
import type { LeaseTarget } from './leases.ts'
import type { Reached } from './reach.ts'
import { changedMeanwhile, disabled } from './refusals.ts'
import type { DatasourceRow } from './rows.ts'

const TEST_MS = 20_000
const INTROSPECT_MS = 30 * 60_000
/** Longer than this, and the caller gets a job. */
const PATIENCE_MS = 10_000
/** A database that is down is not written down again for each query. */
const SAME_FAILURE_MS = 10_000

const Introspected = z.object({
  schemaCapturedAt: z.string(),
  tableCount: z.int(),
  added: z.int(),
  removed: z.int(),
  changed: z.int(),
})
export type Introspected = z.infer<typeof Introspected>

/** Connects and grades the login; a database that cannot be reached is a report too, whose first step fails. */
export async function testDatasource(deps: DatasourceDeps, call: Call, at: Reached): Promise<TestReport> {
  const began = performance.now()
  using deadline = deadlineOf(call.signal, TEST_MS)
  const { signal } = deadline
  const exposed = at.row.exposure_version === 0 ? null : await deps.catalogs.exposed(at.row)
  let report: TestReport
  try {
    await using connection = await deps.leases.connect(at, signal)
    report = await connection.test(exposed, signal)
  } catch (error) {
    if (call.signal.aborted) throw error
    if (!(error instanceof AppError) && !signal.aborted) throw error
    report = failed(signal.aborted ? NO_ANSWER : messageOf(error), performance.now() - began)
  }
  await deps.store.write(async (tx) => {
    await tx
      .updateTable('datasources')
      .set({
        last_tested_at: new Date().toISOString(),
        last_error: report.ok
          ? null
          : (report.error ?? report.steps.find((step) => step.status === 'FAIL')?.message ?? null),
      })
      .where('id', '=', at.id)
      .where('connection_version', '=', at.row.connection_version)
      .execute()
    await tx
      .updateTable('datasources')
      .set({ status: report.ok ? 'CONNECTED' : 'ERROR' })
      .where('id', '=', at.id)
      .where('connection_version', '=', at.row.connection_version)
      .where('status', '!=', 'DISABLED')
      .execute()
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id })
  })
  return report
}

/**
 * Reads the schema and stores it; the answer is a job where that takes over 10 s. One at a time a datasource: whoever
 * asks meanwhile waits for the same. Throws DATASOURCE_DISABLED and what connecting and introspecting throw.
 */
export async function introspectDatasource(
  deps: DatasourceDeps,
  call: Call,
  at: Reached,
  patienceMs = PATIENCE_MS,
): Promise<Introspected | { readonly jobId: JobId }> {
  if (at.row.status === 'DISABLED') throw disabled()
  const job = await deps.jobs.start(at.id, 'introspect', async (_progress, signal) => {
    try {
      return await introspect(deps, call, at, signal)
    } catch (error) {
      // Told here, as whoever asked may have their answer, a job, long since.
      deps.audit.refused(call, { teamId: at.teamId, datasourceId: at.id }, error)
      throw error
    }
  })
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), patienceMs)
  try {
    const result = await Promise.race([job.ended, late])
    return result === null ? { jobId: job.id } : Introspected.parse(result)
  } finally {
    clearTimeout(timer)
  }
}

/** Ends a job of this datasource; one that has ended stays as it is. Throws NOT_FOUND for none. */
export async function cancelJob(
  deps: Pick<DatasourceDeps, 'jobs' | 'audit'>,
  call: Call,
  at: Pick<Reached, 'id' | 'teamId'>,
  id: JobId,
): Promise<void> {
  if (!(await deps.jobs.cancel(at.id, id))) throw notFound()
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED' })
  await deps.audit.flush()
}

async function introspect(deps: DatasourceDeps, call: Call, at: Reached, ended: AbortSignal): Promise<Introspected> {
  using deadline = deadlineOf(ended, INTROSPECT_MS)
  const { signal } = deadline
  let catalog: Catalog
  try {
    await using connection = await deps.leases.connect(at, signal)
    catalog = await connection.introspect(signal)
  } catch (error) {
    if (ended.aborted) throw new AppError('CONFLICT', 'The introspection was ended.', { cause: error })
    if (signal.aborted) throw new AppError('QUERY_TIMEOUT', 'The introspection took too long.', { cause: error })
    await noteFailure(deps, at, error)
    throw error
  }
  const before = await deps.catalogs.full(at.row)
  await keep(deps, call, at, catalog)
  return { schemaCapturedAt: catalog.capturedAt, tableCount: catalog.tables.length, ...compare(before, catalog) }
}

/** A connection that failed puts the datasource in ERROR; anything else leaves it as it is. */
export async function noteFailure(deps: Pick<DatasourceDeps, 'store'>, at: LeaseTarget, error: unknown): Promise<void> {
  if (!(error instanceof AppError) || error.code !== 'DATASOURCE_UNAVAILABLE' || isKnownFailure(at.row, error)) return
  const now = new Date().toISOString()
  await deps.store.write((tx) =>
    tx
      .updateTable('datasources')
      .set({ status: 'ERROR', last_tested_at: now, last_error: error.message })
      .where('id', '=', at.id)
      .where('connection_version', '=', at.row.connection_version)
      .where('status', '!=', 'DISABLED')
      .execute(),
  )
}

function isKnownFailure(row: DatasourceRow, error: AppError): boolean {
  if (row.status !== 'ERROR' || row.last_error !== error.message || row.last_tested_at === null) return false
  return Date.now() - Date.parse(row.last_tested_at) < SAME_FAILURE_MS
}

/** The one before is kept too: another process may be about to read it. */
async function keep(deps: DatasourceDeps, call: Call, at: Reached, catalog: Catalog): Promise<void> {
  const text = JSON.stringify(catalog)
  await deps.store.write(async (tx) => {
    const row = await tx
      .selectFrom('datasources')
      .select(['catalog_version', 'connection_version'])
      .where('id', '=', at.id)
      .executeTakeFirst()
    if (row?.connection_version !== at.row.connection_version) throw changedMeanwhile()
    const version = row.catalog_version + 1
    await tx
      .insertInto('catalogs')
      .values({ datasource_id: at.id, version, captured_at: catalog.capturedAt, catalog: text })
      .execute()
    await tx
      .deleteFrom('catalogs')
      .where('datasource_id', '=', at.id)
      .where('version', '<', version - 1)
      .execute()
    await tx.updateTable('datasources').set({ catalog_version: version }).where('id', '=', at.id).execute()
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id })
  })
}

/** How many tables are new, gone, or of other columns than before. */
function compare(before: Catalog | null, after: Catalog): Pick<Introspected, 'added' | 'removed' | 'changed'> {
  const shapes = (catalog: Catalog | null) =>
    new Map(catalog?.tables.map((table) => [tableKey(table.schema, table.table), shapeOf(table)]))
  const [was, is] = [shapes(before), shapes(after)]
  let [added, changed] = [0, 0]
  for (const [key, shape] of is) {
    const old = was.get(key)
    if (old === undefined) added++
    else if (old !== shape) changed++
  }
  return { added, changed, removed: [...was.keys()].filter((key) => !is.has(key)).length }
}

function shapeOf(table: Catalog['tables'][number]): string {
  const columns = table.columns.map((it) => [
    it.name,
    it.type,
    it.nullable,
    it.primaryKey,
    it.references,
    it.description,
  ])
  return JSON.stringify([table.kind, table.description, columns])
}

const NO_ANSWER = 'The database did not answer in time.'

function messageOf(error: unknown): string {
  return error instanceof AppError ? error.message : NO_ANSWER
}

function failed(message: string, latencyMs: number): TestReport {
  return {
    ok: false,
    latencyMs: Math.round(latencyMs),
    serverVersion: null,
    steps: [{ name: 'connect', status: 'FAIL', message, remedy: null }],
    grade: 'FAIL',
    error: message,
  }
}
