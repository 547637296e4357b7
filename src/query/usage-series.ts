// Sums a team's usage by hour or day: for the whole team, and on request for each key, datasource or client.
import { addTimes, percentile, type Times } from '../audit/duration-histogram.ts'
import type { UsageSlot } from '../audit/usage-by-hour.ts'

export type By = 'key' | 'datasource' | 'client'
export type Step = 'hour' | 'day'

/** `p50Ms` and `p95Ms` are percentiles of the durations of answered queries. All other fields are sums. */
interface Totals {
  readonly queries: number
  readonly denied: number
  readonly failed: number
  readonly rows: number
  readonly bytes: number
  readonly durationMs: number
  /** The estimated cost of the queries that were refused for their cost. */
  readonly estimate: number
  readonly p50Ms: number | null
  readonly p95Ms: number | null
}

export type UsagePoint = Totals & { readonly at: string }

export interface UsageSeries extends Totals {
  readonly accountId?: string
  /** Null for sessions. */
  readonly keyId?: string | null
  readonly datasourceId?: string
  readonly client?: string
  readonly points: readonly UsagePoint[]
}

const SERIES_MAX = 20

/** Call add() for each line, which has the counts of one hour. Then read the sums once. */
export class UsageSums {
  readonly #step: Step
  readonly #by: By | undefined
  readonly #points = new Map<string, Sum>()
  readonly #series = new Map<
    string,
    { readonly line: UsageSlot; readonly sum: Sum; readonly points: Map<string, Sum> }
  >()

  constructor(step: Step, by: By | undefined) {
    this.#step = step
    this.#by = by
  }

  /** Adds a line. `isOwn` is true if the caller may see the key or client of the line. */
  add(line: UsageSlot, isOwn: boolean): void {
    const at = this.#step === 'hour' ? `${line.slot}:00:00Z` : `${line.slot.slice(0, 10)}T00:00:00Z`
    addTo(this.#points, at, line)
    if (this.#by === undefined || (this.#by !== 'datasource' && !isOwn)) return
    const key = { key: `${line.account_id} ${line.key_id}`, datasource: line.datasource_id, client: line.client }[
      this.#by
    ]
    let series = this.#series.get(key)
    if (series === undefined) this.#series.set(key, (series = { line, sum: newSum(), points: new Map() }))
    addLine(series.sum, line)
    addTo(series.points, at, line)
  }

  get points(): readonly UsagePoint[] {
    return pointsOf(this.#points)
  }

  /** Undefined if the caller requested no series. */
  get series(): readonly UsageSeries[] | undefined {
    const by = this.#by
    if (by === undefined) return undefined
    return [...this.#series.values()]
      .sort((a, b) => b.sum.queries - a.sum.queries)
      .slice(0, SERIES_MAX)
      .map(({ line, sum, points }) => ({ ...whoOf(line, by), ...totals(sum), points: pointsOf(points) }))
  }
}

function whoOf(line: UsageSlot, by: By): Partial<UsageSeries> {
  switch (by) {
    case 'key':
      return { accountId: line.account_id, keyId: line.key_id === '' ? null : line.key_id }
    case 'datasource':
      return { datasourceId: line.datasource_id }
    case 'client':
      return { client: line.client }
    default:
      return by satisfies never
  }
}

interface Sum {
  queries: number
  denied: number
  failed: number
  rows: number
  bytes: number
  durationMs: number
  estimate: number
  readonly times: Times
}

function newSum(): Sum {
  return { queries: 0, denied: 0, failed: 0, rows: 0, bytes: 0, durationMs: 0, estimate: 0, times: new Map() }
}

function addTo(sums: Map<string, Sum>, at: string, line: UsageSlot): void {
  let sum = sums.get(at)
  if (sum === undefined) sums.set(at, (sum = newSum()))
  addLine(sum, line)
}

function addLine(sum: Sum, line: UsageSlot): void {
  sum.queries += line.queries
  sum.denied += line.denied
  sum.failed += line.failed
  sum.rows += line.row_count
  sum.bytes += line.bytes
  sum.durationMs += line.duration_ms
  sum.estimate += line.estimate
  addTimes(sum.times, line.times)
}

function totals({ times, ...sums }: Sum): Totals {
  return { ...sums, p50Ms: percentile(times, 0.5), p95Ms: percentile(times, 0.95) }
}

function pointsOf(sums: ReadonlyMap<string, Sum>): readonly UsagePoint[] {
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([at, sum]) => ({ at, ...totals(sum) }))
}
