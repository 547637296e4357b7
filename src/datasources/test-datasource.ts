// Tests a connection, grades its login, and records the resulting status. Answers and stored states never contain texts
// of the database, only our own.
import type { Transaction } from 'kysely'
import { changesOf } from '../audit/changes.ts'
import type { Call } from '../auth/caller.ts'
import { connectRemedy } from '../drivers/connect-remedy.ts'
import type { TestReport } from '../drivers/driver.ts'
import { AppError } from '../errors.ts'
import { targetOf } from '../exposure/audited-target.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import { deadlineOf } from '../deadline.ts'
import type { DatasourceDeps } from './datasources.ts'
import type { LeaseTarget } from './connection-pool.ts'
import type { Reached } from './reach.ts'
import type { DatasourceRow } from './rows.ts'
import { openConcurrencyLimit, type ConcurrencyLimit } from '../jobs/concurrency-limit.ts'

const TEST_MS = 20_000
/** The same failure is not written to the store again for each query. */
const SAME_FAILURE_MS = 10_000

/** Concurrent tests per datasource. Each test opens its own connection. */
const TESTS = { each: 2, all: 20, retryAfterSeconds: 5, why: 'Other tests of this datasource are still running.' }

export function openTests(): ConcurrencyLimit {
  return openConcurrencyLimit(TESTS)
}

/**
 * Connects and grades the login. An unreachable database is also a report, whose first step fails. Throws RATE_LIMITED
 * if too many tests are running.
 */
export async function testDatasource(
  deps: DatasourceDeps & { readonly tests: ConcurrencyLimit },
  call: Call,
  at: Reached,
): Promise<TestReport> {
  using _slot = deps.tests.take(at.id)
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
    const before = await statusIn(tx, at.id)
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
    const changes = changesOf(before, await statusIn(tx, at.id))
    const what = { target: await targetOf(tx, 'datasource', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, what)
  })
  return report
}

/** The fields that a test may change, as the audit records them. */
async function statusIn(tx: Transaction<Tables>, id: DatasourceId) {
  const row = await tx
    .selectFrom('datasources')
    .select(['status', 'last_error as lastError'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row ?? null
}

/** A failed connection sets the datasource to ERROR. Any other error changes nothing. */
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
    steps: [{ name: 'connect', status: 'FAIL', message, remedy: connectRemedy(message) }],
    grade: 'FAIL',
    error: message,
  }
}
