// A team's usage and remaining budget. Covers only datasources that the caller can reach, and for a MEMBER, only the
// MEMBER's own keys.
import type { Audit } from '../audit/audit.ts'
import type { Counted } from '../audit/usage-by-day.ts'
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
  const seesAll = roleAtLeast(role, 'ADMIN')
  const [byDate, byKey, byDatasource] = [new Sums(NO_ONE), new Sums<Key>(OTHERS), new Sums({ datasourceId: '' })]
  for await (const lines of deps.audit.usage(teamId, dates[0] ?? '', call.signal)) {
    for (const line of lines) {
      const { date, datasourceId, keyId } = line
      if (reached !== null && (datasourceId === '' || !reached.has(datasourceId))) continue
      byDate.add(date, NO_ONE, line)
      byDatasource.add(datasourceId, { datasourceId }, line)
      if (!seesAll && line.accountId !== accountId) continue
      const key = { accountId: line.accountId, keyId: keyId === '' ? null : keyId }
      byKey.add(`${key.accountId} ${keyId}`.trim(), key, line)
    }
  }
  const detail = await detailOf(deps, call, membership, { ...options, from: dates[0] ?? '', reached })
  return {
    budget: left,
    days: dates.map((date) => ({ date, ...(byDate.get(date) ?? { ...NO_COUNTS }) })),
    keys: byKey.values,
    datasources: byDatasource.values,
    ...detail,
  }
}

type Key = Omit<Usage['keys'][number], keyof Counted>
type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const NO_ONE = {}
const OTHERS: Key = { accountId: '', keyId: null }
const NO_COUNTS: Counted = { queries: 0, denied: 0, failed: 0, rows: 0 }
/** Limited because an account can create new keys and datasources each day. */
const GROUPS_MAX = 2_000

/** Sums counts by day, key or datasource. Beyond GROUPS_MAX, further ones are summed as `others`. */
class Sums<T extends object> {
  readonly #others: T
  readonly #sums = new Map<string, T & Mutable<Counted>>()

  constructor(others: T) {
    this.#others = others
  }

  add(id: string, of: T, { queries, denied, failed, rows }: Counted): void {
    const isOther = !this.#sums.has(id) && this.#sums.size >= GROUPS_MAX
    const key = isOther ? '' : id
    let sum = this.#sums.get(key)
    if (sum === undefined) this.#sums.set(key, (sum = { ...(isOther ? this.#others : of), ...NO_COUNTS }))
    sum.queries += queries
    sum.denied += denied
    sum.failed += failed
    sum.rows += rows
  }

  get(id: string): (T & Counted) | undefined {
    return this.#sums.get(id)
  }

  get values(): readonly (T & Counted)[] {
    return [...this.#sums.values()]
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
