// Tries an example query with a small row limit and a short timeout. Spends no budget, because nobody gets the answer.
import type { Config } from '../config.ts'
import { deadlineOf } from '../deadline.ts'
import type { Leases } from '../datasources/connection-pool.ts'
import { readRow } from '../datasources/datasource-rows.ts'
import type { Driver } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import { AppError } from '../errors.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { ownerOfTeam } from '../teams/team-owner.ts'
import { settingsOf } from '../teams/team-settings.ts'
import { limitsOf } from './query-limits.ts'

export interface TryDeps {
  readonly store: Store
  readonly config: Config
  readonly drivers: ReadonlyMap<DatasourceType, Driver>
  readonly catalogs: Catalogs
  readonly leases: Leases
}

const ROWS = 10
const TRY_MS = 5_000
/** A part of the team's cost limit. Some databases charge by cost, and no caller asked for the trial. */
const COST_SHARE = 0.1

/**
 * Returns true if the guard allows the query under the current exposure, and the database answers within 5 s, the
 * team's limits and a tenth of the cost limit. Throws the reason of `signal`. Also throws errors that the query did not
 * cause, such as DATASOURCE_UNAVAILABLE.
 */
export async function tryQuery(deps: TryDeps, id: DatasourceId, query: string, signal: AbortSignal): Promise<boolean> {
  const row = await readRow(deps.store, id)
  const driver = row === undefined ? undefined : deps.drivers.get(row.type)
  const exposed = row === undefined ? null : await deps.catalogs.exposed(row)
  if (row === undefined || driver === undefined || exposed === null || row.status === 'DISABLED') return false
  const settings = await settingsOf(deps, row.team_id)
  const limits = limitsOf(await ownerOfTeam(deps.store, row.team_id), settings, driver.type, ROWS)
  const brief = {
    ...limits,
    timeoutMs: Math.min(limits.timeoutMs, TRY_MS),
    maxCost: Math.ceil(limits.maxCost * COST_SHARE),
  }
  using deadline = deadlineOf(signal, brief.timeoutMs)
  try {
    const verdict = await driver.confine(driver.reread(query), exposed, brief, deadline.signal)
    if (verdict.kind !== 'confined') return false
    await using lease = await deps.leases.take({ id, row, driver }, deadline.signal)
    await lease.connection.run(verdict.query, brief, deadline.signal)
    return true
  } catch (error) {
    if (signal.aborted) throw error
    if (deadline.timedOut) return false
    if (error instanceof AppError && FAULTS_OF_QUERY.has(error.code)) return false
    throw error
  }
}

/** Errors that the query itself caused. For these, tryQuery() returns false. */
const FAULTS_OF_QUERY: ReadonlySet<string> = new Set([
  'INVALID_REQUEST',
  'INVALID_QUERY',
  'QUERY_DENIED',
  'QUERY_FAILED',
  'QUERY_TIMEOUT',
  'SCHEMA_STALE',
])
