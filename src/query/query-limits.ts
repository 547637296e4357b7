// Computes the limits of one query. The team's settings already include the defaults and the operator's ceilings.
import type { Limits } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import type { TeamOwner } from '../teams/team-owner.ts'
import type { TeamSettings } from '../teams/team-settings.ts'

/**
 * `limit` is the caller's row limit. Null means the row cap. `rowBytesMax` is how many bytes of rows the client
 * accepts.
 */
export function limitsOf(
  owner: TeamOwner,
  settings: TeamSettings,
  type: DatasourceType,
  limit: number | null,
  rowBytesMax = Number.POSITIVE_INFINITY,
): Limits {
  return {
    rowCap: limit === null ? settings.rowCap : Math.min(limit, settings.rowCap),
    maxResponseBytes: Math.min(rowBytesMax, settings.maxResponseBytes),
    timeoutMs: settings.statementTimeoutMs,
    maxCost: maxCostOf(settings, type),
    owner,
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
