// Pure: how far one query may go: the team's numbers (already over the defaults and under the operator's ceilings,
// teams/settings.ts), and the body's own limit where that is less.
import type { DatasourceType, Limits } from '../drivers/driver.ts'
import type { TeamSettings } from '../teams/settings.ts'

/** `limit` above the row cap is cut to it; null: the row cap. */
export function limitsOf(settings: TeamSettings, type: DatasourceType, limit: number | null): Limits {
  return {
    rowCap: limit === null ? settings.rowCap : Math.min(limit, settings.rowCap),
    maxResponseBytes: settings.maxResponseBytes,
    timeoutMs: settings.statementTimeoutMs,
    maxCost: maxCostOf(settings, type),
  }
}

function maxCostOf(settings: TeamSettings, type: DatasourceType): number {
  switch (type) {
    case 'POSTGRES':
      return settings.postgresMaxPlanCost
    case 'MONGODB':
      return settings.mongodbMaxScannedDocuments
    case 'BIGQUERY':
      return settings.bigqueryMaxBytes
    default:
      return type satisfies never
  }
}
