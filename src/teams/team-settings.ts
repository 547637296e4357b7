// A team's settings. A setting that the team has not changed has its default, and no setting is above the operator's
// ceiling. contract/schemas.ts validates the values, and this file checks the ceilings.
import { z } from 'zod'
import type { Ceiling, Config } from '../config.ts'
import { invalidRequest } from '../errors.ts'
import type { TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'

export interface TeamSettings {
  readonly queryBudget: { readonly limit: number; readonly windowSeconds: number }
  readonly rowCap: number
  /** In bytes of JSON. Rows beyond this size are left out. */
  readonly maxResponseBytes: number
  readonly statementTimeoutMs: number
  readonly postgresMaxPlanCost: number
  readonly mongodbMaxScannedDocuments: number
  readonly bigqueryMaxBytes: number
  readonly auditRetentionDays: number
  readonly auditRedactLiterals: boolean
  /** require-membership.ts checks this. */
  readonly requireSecondFactor: boolean
}

/** See docs/operating.md#settings-of-a-team. */
const DEFAULTS: TeamSettings = {
  queryBudget: { limit: 300, windowSeconds: 60 },
  rowCap: 1_000,
  maxResponseBytes: 8 << 20,
  statementTimeoutMs: 15_000,
  postgresMaxPlanCost: 1_000_000,
  mongodbMaxScannedDocuments: 1_000_000,
  bigqueryMaxBytes: 1 << 30,
  auditRetentionDays: 180,
  auditRedactLiterals: false,
  requireSecondFactor: false,
}

/** We wrote this value, so only its shape is checked. */
const Stored = z.strictObject({
  queryBudget: z.object({ limit: z.number(), windowSeconds: z.number() }).exactOptional(),
  rowCap: z.number().exactOptional(),
  maxResponseBytes: z.number().exactOptional(),
  statementTimeoutMs: z.number().exactOptional(),
  postgresMaxPlanCost: z.number().exactOptional(),
  mongodbMaxScannedDocuments: z.number().exactOptional(),
  bigqueryMaxBytes: z.number().exactOptional(),
  auditRetentionDays: z.number().exactOptional(),
  auditRedactLiterals: z.boolean().exactOptional(),
  requireSecondFactor: z.boolean().exactOptional(),
})

type Ceilings = Config['ceilings']

interface Deps {
  readonly store: Store
  readonly config: Pick<Config, 'ceilings'>
}

/** Returns the settings of a team, or the defaults for a deleted team and for null. */
export async function settingsOf(deps: Deps, teamId: TeamId | null): Promise<TeamSettings> {
  if (teamId === null) return holding('{}', deps.config.ceilings)
  return await deps.store.recall(`settings ${teamId}`, async () => {
    const row = await deps.store.db.selectFrom('teams').select('settings').where('id', '=', teamId).executeTakeFirst()
    return holding(row?.settings ?? '{}', deps.config.ceilings)
  })
}

/** Returns undefined if the settings are not cached. Does not wait. */
export function knownSettings(store: Pick<Store, 'known'>, teamId: TeamId): TeamSettings | undefined {
  return store.known<TeamSettings>(`settings ${teamId}`)
}

/** Applies the defaults and the ceilings. */
export function holding(stored: string, ceilings: Ceilings): TeamSettings {
  const set = { ...DEFAULTS, ...Stored.parse(JSON.parse(stored)) }
  const limited = (name: Exclude<Ceiling, 'queryBudget'>) => Math.min(set[name], ceilings[name] ?? Infinity)
  return {
    queryBudget: { ...set.queryBudget, limit: Math.min(set.queryBudget.limit, ceilings.queryBudget ?? Infinity) },
    rowCap: limited('rowCap'),
    maxResponseBytes: limited('maxResponseBytes'),
    statementTimeoutMs: limited('statementTimeoutMs'),
    postgresMaxPlanCost: limited('postgresMaxPlanCost'),
    mongodbMaxScannedDocuments: limited('mongodbMaxScannedDocuments'),
    bigqueryMaxBytes: limited('bigqueryMaxBytes'),
    auditRetentionDays: limited('auditRetentionDays'),
    auditRedactLiterals: set.auditRedactLiterals,
    requireSecondFactor: set.requireSecondFactor,
  }
}

export function requiresSecondFactor(stored: string): boolean {
  return Stored.parse(JSON.parse(stored)).requireSecondFactor ?? DEFAULTS.requireSecondFactor
}

/** A nested object is replaced as a whole. Throws INVALID_REQUEST if a value is above its ceiling. */
export function merged(stored: string, change: Partial<TeamSettings>, ceilings: Ceilings): string {
  const details: string[] = []
  const check = (name: Ceiling, value: number | undefined) => {
    const ceiling = ceilings[name]
    if (value !== undefined && ceiling !== undefined && value > ceiling) {
      details.push(`settings.${name}: at most ${ceiling}, the limit set by the operator of this service`)
    }
  }
  check('queryBudget', change.queryBudget?.limit)
  check('rowCap', change.rowCap)
  check('maxResponseBytes', change.maxResponseBytes)
  check('statementTimeoutMs', change.statementTimeoutMs)
  check('postgresMaxPlanCost', change.postgresMaxPlanCost)
  check('mongodbMaxScannedDocuments', change.mongodbMaxScannedDocuments)
  check('bigqueryMaxBytes', change.bigqueryMaxBytes)
  check('auditRetentionDays', change.auditRetentionDays)
  if (details.length > 0) throw invalidRequest(details)
  return JSON.stringify({ ...Stored.parse(JSON.parse(stored)), ...change })
}
