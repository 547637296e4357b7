// A team's usage and remaining budget. Covers only datasources that the caller can reach, and for a MEMBER, only the
// MEMBER's own keys.
import type { Audit } from '../audit/audit.ts'
import type { Counted, UsageLine } from '../audit/usage-by-day.ts'
import { SLOT_DAYS } from '../audit/usage-by-hour.ts'
import type { Call } from '../auth/caller.ts'
import type { Config } from '../config.ts'
import { invalidRequest } from '../errors.ts'
import { reachable } from '../datasources/datasources.ts'
import type { Store } from '../store/open.ts'
import { roleAtLeast } from '../teams/roles.ts'
import type { Membership } from '../teams/require-membership.ts'
import { settingsOf } from '../teams/team-settings.ts'
import type { Budget } from './budget.ts'
import { UsageSums, type By, type Step, type UsagePoint, type UsageSeries } from './usage-series.ts'

export interface UsageDeps {
  readonly store: Store
  readonly config: Config
  readonly audit: Audit
  readonly budget: Budget
}

export interface Usage {
  readonly budget: { readonly limit: number; readonly remaining: number; readonly resetsAt: string | null }
  /** Every day, including days without a query, oldest first. The last day is today, in UTC. */
  readonly days: readonly (Counted & { readonly date: string })[]
  /** Null for sessions. */
  readonly keys: readonly (Counted & { readonly accountId: string; readonly keyId: string | null })[]
  readonly datasources: readonly (Counted & { readonly datasourceId: string })[]
  /** The hours or days with at least one query, oldest first. Present only if `by` or `step` was given. */
  readonly points?: readonly UsagePoint[]
  /** The 20 groups with the most queries, largest first. Present only if `by` was given. */
  readonly series?: readonly UsageSeries[]
}

const DAYS = 30
const DAY_MS = 86_400_000

export async function usageOf(
  deps: UsageDeps,
  call: Call,
  membership: Membership,
  options: { readonly days?: number; readonly by?: By; readonly step?: Step },
): Promise<Usage> {
  requireDetail(options)
  const { teamId, role, accountId } = membership
  const { queryBudget } = await settingsOf(deps, teamId)
  const left = await deps.budget.left(teamId, queryBudget)
  const dates = datesOf(Date.now(), options.days ?? DAYS)
  const reached = role === 'OWNER' ? null : new Set((await reachable(deps, call, membership)).map((row) => row.id))
  const all = await deps.audit.usage(teamId, dates[0] ?? '')
  const lines = all.filter((line) => reached === null || (line.datasourceId !== '' && reached.has(line.datasourceId)))
  const own = roleAtLeast(role, 'ADMIN') ? lines : lines.filter((line) => line.accountId === accountId)

  const detail = await detailOf(deps, call, membership, { ...options, from: dates[0] ?? '', reached })
  const byDate = summed(lines, (line) => line.date)
  return {
    budget: left,
    days: dates.map((date) => ({ date, ...counts(byDate.get(date)) })),
    keys: [...summed(own, (line) => `${line.accountId} ${line.keyId}`).values()].map((line) => ({
      accountId: line.accountId,
      keyId: line.keyId === '' ? null : line.keyId,
      ...counts(line),
    })),
    datasources: [...summed(lines, (line) => line.datasourceId).values()].map((line) => ({
      datasourceId: line.datasourceId,
      ...counts(line),
    })),
    ...detail,
  }
}

/**
 * Throws INVALID_REQUEST for `by` or `step` with more than SLOT_DAYS days, because older days have no usage by hour.
 */
function requireDetail({ days = DAYS, by, step }: { days?: number; by?: By; step?: Step }): void {
  if ((by ?? step) === undefined || days <= SLOT_DAYS) return
  throw invalidRequest([`days: at most ${SLOT_DAYS} with by or step`])
}

async function detailOf(
  deps: UsageDeps,
  call: Call,
  { teamId, role, accountId }: Membership,
  ask: { by?: By; step?: Step; from: string; reached: ReadonlySet<string> | null },
): Promise<Pick<Usage, 'points' | 'series'>> {
  const { by, step, from, reached } = ask
  if ((by ?? step) === undefined) return {}
  const sums = new UsageSums(step ?? 'day', by)
  const seesAll = roleAtLeast(role, 'ADMIN')
  for await (const lines of deps.audit.slots(teamId, from, call.signal)) {
    for (const line of lines) {
      if (reached !== null && !reached.has(line.datasource_id)) continue
      sums.add(line, seesAll || line.account_id === accountId)
    }
  }
  const { points, series } = sums
  return { points, ...(series !== undefined && { series }) }
}

/** Returns the last `days` dates, as YYYY-MM-DD in UTC, ending today. */
function datesOf(now: number, days: number): readonly string[] {
  return Array.from({ length: days }, (_, index) =>
    new Date(now - (days - 1 - index) * DAY_MS).toISOString().slice(0, 10),
  )
}

function summed(lines: readonly UsageLine[], keyOf: (line: UsageLine) => string): ReadonlyMap<string, UsageLine> {
  const sums = new Map<string, UsageLine>()
  for (const line of lines) {
    const key = keyOf(line)
    const sum = sums.get(key)
    if (sum === undefined) {
      sums.set(key, line)
      continue
    }
    const { queries, denied, failed, rows } = line
    sums.set(key, {
      ...sum,
      queries: sum.queries + queries,
      denied: sum.denied + denied,
      failed: sum.failed + failed,
      rows: sum.rows + rows,
    })
  }
  return sums
}

function counts(line: Counted | undefined): Counted {
  const { queries, denied, failed, rows } = line ?? { queries: 0, denied: 0, failed: 0, rows: 0 }
  return { queries, denied, failed, rows }
}
