// A team's settings: the defaults, overridden by the team and limited by the operator's ceilings. contract/schemas.ts
// validates the values. This file checks the ceilings.
import { z } from 'zod'
import type { Ceiling, Config } from '../config.ts'
import { invalidRequest } from '../errors.ts'
import type { TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'

export interface TeamSettings {
  readonly queryBudget: { readonly limit: number; readonly windowSeconds: number }
  readonly rowCap: number
  /** The maximum number of bytes of an answer's rows, as JSON. Further rows are cut. */
  readonly maxResponseBytes: number
  readonly statementTimeoutMs: number
  readonly postgresMaxPlanCost: number
  readonly mongodbMaxScannedDocuments: number
  readonly bigqueryMaxBytes: number
  readonly auditRetentionDays: number
  readonly auditRedactLiterals: boolean
  /** require-membership.ts checks this setting. */
  readonly requireSecondFactor: boolean
}

/** The defaults (docs/operating.md#settings-of-a-team). */
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

/** We wrote this value, so only its shape is validated. */
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

/** Returns the settings that apply to a team, from the cache. Returns the defaults for a deleted team and for null. */
export async function settingsOf(deps: Deps, teamId: TeamId | null): Promise<TeamSettings> {
  if (teamId === null) return holding('{}', deps.config.ceilings)
  return await deps.store.recall(`settings ${teamId}`, async () => {
    const row = await deps.store.db.selectFrom('teams').select('settings').where('id', '=', teamId).executeTakeFirst()
    return holding(row?.settings ?? '{}', deps.config.ceilings)
  })
}

/**
 * Returns the cached settings of settingsOf() without waiting. Returns undefined if no settings are cached.
 */
export function knownSettings(store: Pick<Store, 'known'>, teamId: TeamId): TeamSettings | undefined {
  return store.known<TeamSettings>(`settings ${teamId}`)
}

/** Adds the defaults to the stored settings, and limits the result to the ceilings. */
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

/** Returns true if the team requires a second factor. `stored` is the settings column. */
export function requiresSecondFactor(stored: string): boolean {
  return Stored.parse(JSON.parse(stored)).requireSecondFactor ?? DEFAULTS.requireSecondFactor
}

/**
 * Merges a change into the stored settings. A nested object is replaced as a whole. Throws INVALID_REQUEST if a value
 * is above its ceiling. In this case, no part of the change applies.
 */
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
