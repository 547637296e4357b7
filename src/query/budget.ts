// The query budget: a rate limit per team, shared by all callers of the team.
import { RateLimiterPostgres } from 'rate-limiter-flexible'
import { AppError } from '../errors.ts'
import type { TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { TeamSettings } from '../teams/team-settings.ts'

interface Spent {
  readonly headers: Readonly<Record<'RateLimit-Limit' | 'RateLimit-Remaining' | 'RateLimit-Reset', string>>
}

export interface Budget {
  /** Throws RATE_LIMITED with the headers and `retryAfter`. Returns no promise if this process counts in memory. */
  spend(teamId: TeamId, budget: TeamSettings['queryBudget']): Spent | Promise<Spent>
  /** Returns the remaining budget, without counting. `resetsAt` (ISO 8601, UTC) is null if nothing was spent. */
  left(teamId: TeamId, budget: TeamSettings['queryBudget']): Promise<Left>
  /** For the metrics: how many queries were counted, and how many exceeded their budget. */
  readonly totals: { readonly spent: number; readonly exhausted: number }
}

interface Left {
  readonly limit: number
  readonly remaining: number
  readonly resetsAt: string | null
}

/** The library's limit. spentOf() checks the team's limit, so that a changed limit applies to the next query. */
const UNLIMITED = Number.MAX_SAFE_INTEGER

interface BudgetDeps {
  readonly store: Pick<Store, 'count'>
  /** Counts for several processes. If null, the store counts on PostgreSQL, and this process in memory on SQLite. */
  readonly redis?: Counter | null
}

export function openBudget({ store, redis = null }: BudgetDeps): Budget {
  const counter = redis ?? (store.count === null ? inMemory() : inStore(store.count))
  const totals = { spent: 0, exhausted: 0 }
  const judged = (counted: Counted, budget: TeamSettings['queryBudget']): Spent => {
    totals.spent++
    if (counted.consumedPoints > budget.limit) totals.exhausted++
    return spentOf(counted, budget)
  }
  return {
    totals,
    spend(teamId, budget) {
      const { windowSeconds } = budget
      // A window of another length has its own counter.
      const counted = counter.consume(`${teamId}/${windowSeconds}`, 1, { customDuration: windowSeconds })
      return counted instanceof Promise ? counted.then((it) => judged(it, budget)) : judged(counted, budget)
    },
    async left(teamId, { limit, windowSeconds }) {
      const counted = await counter.get(`${teamId}/${windowSeconds}`)
      if (counted === null || counted.consumedPoints === 0) return { limit, remaining: limit, resetsAt: null }
      const resetsAt = new Date(Date.now() + Math.max(0, counted.msBeforeNext)).toISOString()
      return { limit, remaining: Math.max(0, limit - counted.consumedPoints), resetsAt }
    },
  }
}

function spentOf(
  { consumedPoints, msBeforeNext }: Counted,
  { limit, windowSeconds }: TeamSettings['queryBudget'],
): Spent {
  const reset = Math.min(windowSeconds, Math.max(0, Math.ceil(msBeforeNext / 1000)))
  const headers = {
    'RateLimit-Limit': String(limit),
    'RateLimit-Remaining': String(Math.max(0, limit - consumedPoints)),
    'RateLimit-Reset': String(reset),
  }
  if (consumedPoints > limit) throw exhausted(headers, Math.max(1, reset))
  return { headers }
}

interface Counted {
  readonly consumedPoints: number
  readonly msBeforeNext: number
}

export interface Counter {
  consume(key: string, points: number, options: { customDuration: number }): Counted | Promise<Counted>
  get(key: string): Promise<Counted | null>
}

/** If there are more windows, those that have ended are removed before another one is added. */
const WINDOWS_KEPT = 1_000

/** A window begins with its first query. consume() returns no promise, because it runs for every query. */
export function inMemory(): Counter {
  const windows = new Map<string, { points: number; readonly endsAt: number }>()
  const tidy = (now: number): void => {
    for (const [key, { endsAt }] of windows) if (endsAt <= now) windows.delete(key)
  }
  return {
    consume(key, points, { customDuration }) {
      const now = Date.now()
      let window = windows.get(key)
      if (window === undefined || window.endsAt <= now) {
        if (windows.size >= WINDOWS_KEPT) tidy(now)
        window = { points: 0, endsAt: now + customDuration * 1000 }
        windows.set(key, window)
      }
      window.points += points
      return { consumedPoints: window.points, msBeforeNext: window.endsAt - now }
    },
    async get(key) {
      const window = windows.get(key)
      const msBeforeNext = (window?.endsAt ?? 0) - Date.now()
      return window === undefined || msBeforeNext <= 0 ? null : { consumedPoints: window.points, msBeforeNext }
    },
  }
}

/** The library needs a pool of `pg`, so this returns an object that looks like one. */
function inStore(count: NonNullable<Store['count']>): Counter {
  const storeClient = {
    async query({ text, values }: { readonly text: string; readonly values?: readonly unknown[] }) {
      const rows = await count(text, values ?? [])
      return { rows, rowCount: rows.length }
    },
  }
  const table = { storeClient, storeType: 'pool', tableName: 'counters', tableCreated: true }
  return new RateLimiterPostgres({ ...table, keyPrefix: 'queries', points: UNLIMITED, duration: 60 })
}

function exhausted(headers: Spent['headers'], retryAfter: number): AppError {
  return new AppError(
    'RATE_LIMITED',
    `The team's query budget is used up. Try again in ${retryAfter} s; an ADMIN can raise queryBudget in the team's settings.`,
    {
      extra: { retryAfter },
      headers,
    },
  )
}
