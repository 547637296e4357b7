// Counts durations in buckets that are 15 % wide, and computes percentiles, which are accurate to about 7 %.

export type Times = Map<number, number>

const LEAST_MS = 0.05
const LOG_STEP = Math.log(1.15)

export function addTime(times: Times, ms: number): void {
  const bucket = ms <= LEAST_MS ? 0 : Math.round(Math.log(ms / LEAST_MS) / LOG_STEP)
  times.set(bucket, (times.get(bucket) ?? 0) + 1)
}

export function addTimes(to: Times, from: ReadonlyMap<number, number>): void {
  for (const [bucket, count] of from) to.set(bucket, (to.get(bucket) ?? 0) + count)
}

/** Returns the time in ms that a `share` of the calls did not exceed, or null if there are no calls. */
export function percentile(times: ReadonlyMap<number, number>, share: number): number | null {
  const buckets = [...times].sort(([a], [b]) => a - b)
  const all = buckets.reduce((sum, [, count]) => sum + count, 0)
  let seen = 0
  for (const [bucket, count] of buckets) {
    seen += count
    if (seen >= all * share) return Number((LEAST_MS * Math.exp(bucket * LOG_STEP)).toPrecision(3))
  }
  return null
}
