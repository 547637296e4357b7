// Tests a connection and stores the result. Reports and errors contain only our own texts, never texts of the database.
import type { Transaction } from 'kysely'
import type { z } from 'zod'
import { changesOf } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import { networkOf } from '../auth/client-network.ts'
import { connectField, connectRemedy } from '../drivers/connect-remedy.ts'
import { TestReport as StoredReport } from '../contract/schemas.ts'
import type { Catalog, Connection, TestReport } from '../drivers/driver.ts'
import { AppError, notFound } from '../errors.ts'
import { targetOf } from '../exposure/audited-target.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import { deadlineOf } from '../deadline.ts'
import { comparedWithUri, newSettings, splitConfig, type Contradiction, type Parsed } from './change-connection.ts'
import { requireDriver, type DatasourceDeps, type NewDatasource } from './datasources.ts'
import type { LeaseTarget } from './connection-pool.ts'
import type { Reached } from './require-reach.ts'
import type { DatasourceRow } from './datasource-rows.ts'
import { toldReport, type ToldReport } from './complete-test-report.ts'
import type { Membership } from '../teams/require-membership.ts'
import { openConcurrencyLimit, type ConcurrencyLimit } from '../concurrency-limit.ts'

const TEST_MS = 20_000
/** If queries fail repeatedly with the same error, the error is stored at most this often. */
const SAME_FAILURE_MS = 10_000

/** Tests open connections, so they are limited: in total, and per datasource, or per team if it is not saved yet. */
const TESTS = { each: 2, all: 20, retryAfterSeconds: 5, why: 'Other tests are still running.' }

export function openTests(): ConcurrencyLimit {
  return openConcurrencyLimit(TESTS, networkOf)
}

/** Stores the report. If the database cannot be reached, its first step has failed. Throws RATE_LIMITED. */
export async function testDatasource(
  deps: DatasourceDeps & { readonly tests: ConcurrencyLimit },
  call: Call,
  at: Reached,
): Promise<ToldReport> {
  using _slot = deps.tests.take(at.id, call, at.teamId)
  const exposed = at.row.exposure_version === 0 ? null : await deps.catalogs.exposed(at.row)
  const report = await tried(call, (signal) => deps.leases.connect(at, signal), exposed)
  const told = toldReport(at.row.type, report, new Date().toISOString())
  await deps.store.write(async (tx) => {
    const before = await statusIn(tx, at.id)
    await keep(tx, at, told)
    const changes = changesOf(before, await statusIn(tx, at.id))
    const what = { target: await targetOf(tx, 'datasource', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, what)
  })
  return told
}

/** Stores nothing if the connection has changed in the meantime. */
async function keep(tx: Transaction<Tables>, at: Reached, report: ToldReport): Promise<void> {
  const failure = report.steps.find((step) => step.status === 'FAIL')
  const { numUpdatedRows } = await tx
    .updateTable('datasources')
    .set({
      last_tested_at: report.testedAt,
      last_error: report.ok ? null : (report.error ?? failure?.message ?? null),
      last_grade: report.grade,
    })
    .where('id', '=', at.id)
    .where('connection_version', '=', at.row.connection_version)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows !== 1n) return
  await tx
    .updateTable('datasources')
    .set({ status: report.ok ? 'CONNECTED' : 'ERROR' })
    .where('id', '=', at.id)
    .where('status', '!=', 'DISABLED')
    .execute()
  const set = { tested_at: report.testedAt, report: JSON.stringify(report) }
  await tx
    .insertInto('test_reports')
    .values({ datasource_id: at.id, ...set })
    .onConflict((oc) => oc.column('datasource_id').doUpdateSet(set))
    .execute()
}

export async function lastTest(
  deps: Pick<DatasourceDeps, 'store'>,
  at: Pick<Reached, 'id'>,
): Promise<z.infer<typeof StoredReport>> {
  const row = await deps.store.db
    .selectFrom('test_reports')
    .select('report')
    .where('datasource_id', '=', at.id)
    .executeTakeFirst()
  if (row === undefined) throw notFound()
  return StoredReport.parse(JSON.parse(row.report))
}

interface TrialReport extends ToldReport {
  /** The values in the URI. Null in modes without a URI. */
  readonly parsed: Parsed | null
  readonly contradictions: readonly Contradiction[]
}

/**
 * In URI mode, the report also has the values in the URI, and the fields that contradict them. Throws INVALID_REQUEST
 * like createDatasource(), and RATE_LIMITED.
 */
export async function tryConnection(
  deps: Pick<DatasourceDeps, 'audit' | 'drivers' | 'leases'> & { readonly tests: ConcurrencyLimit },
  call: Call,
  { teamId }: Membership,
  input: Omit<NewDatasource, 'name'>,
): Promise<TrialReport> {
  const driver = requireDriver(deps.drivers, input.type)
  const { connection } = splitConfig(input)
  const settings = driver.settings(newSettings(connection))
  using _slot = deps.tests.take(teamId, call, teamId)
  const report = await tried(call, (signal) => deps.leases.try({ driver, settings, teamId }, signal), null)
  deps.audit.record(call, { teamId, outcome: 'ANSWERED' })
  const told = toldReport(input.type, report, new Date().toISOString())
  return { ...told, ...comparedWithUri(settings, connection) }
}

/** Reports a failure to connect. Rethrows bugs, OVERLOADED, and the error of a caller who hung up. */
async function tried(
  call: Call,
  connect: (signal: AbortSignal) => Promise<Connection>,
  exposed: Catalog | null,
): Promise<TestReport> {
  const began = performance.now()
  using deadline = deadlineOf(call.signal, TEST_MS)
  const { signal } = deadline
  try {
    await using connection = await connect(signal)
    return await connection.test(exposed, signal)
  } catch (error) {
    if (call.signal.aborted || (error instanceof AppError && error.code === 'OVERLOADED')) throw error
    if (!(error instanceof AppError) && !signal.aborted) throw error
    return failed(signal.aborted ? NO_ANSWER : messageOf(error), performance.now() - began)
  }
}

async function statusIn(tx: Transaction<Tables>, id: DatasourceId) {
  const row = await tx
    .selectFrom('datasources')
    .select(['status', 'last_error as lastError'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row ?? null
}

/** Ignores errors that do not say that the database is unavailable. */
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

const NO_ANSWER = 'The database did not answer in time.'

function messageOf(error: unknown): string {
  return error instanceof AppError ? error.message : NO_ANSWER
}

function failed(message: string, latencyMs: number): TestReport {
  return {
    ok: false,
    latencyMs: Math.round(latencyMs),
    serverVersion: null,
    steps: [{ name: 'connect', status: 'FAIL', message, remedy: connectRemedy(message), field: connectField(message) }],
    grade: 'FAIL',
    error: message,
  }
}
