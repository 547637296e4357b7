// Metrics in the Prometheus text format, on their own address. They are never served on the API port, and are off
// unless VITRINE_METRICS_ADDR is set. They contain no names, ids or texts.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { SideRoutes } from './side-server.ts'

export interface Metrics extends Disposable {
  /** Counts one answer: the operation id (or `other`) and its status. */
  count(operation: string, status: number, durationMs: number): void
  text(): string
}

/** A value that is read when the metrics are asked for. */
export interface Gauge {
  readonly name: string
  readonly type: 'gauge' | 'counter'
  readonly help: string
  readonly value: () => number
}

/** Upper bounds of the histogram, in seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

interface Histogram {
  /** One count per bucket, and one for what is longer. */
  readonly counts: number[]
  sum: number
}

/** `gauges`: asked for whenever the metrics are. */
export function openMetrics(gauges: () => readonly Gauge[] = () => []): Metrics {
  const answers = new Map<string, number>()
  const seconds = new Map<string, Histogram>()
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  return {
    count(operation, status, durationMs) {
      const labels = `operation="${operation}",status="${status}"`
      answers.set(labels, (answers.get(labels) ?? 0) + 1)
      const operations = `operation="${operation}"`
      let histogram = seconds.get(operations)
      if (histogram === undefined) seconds.set(operations, (histogram = { counts: BUCKETS.map(() => 0), sum: 0 }))
      const bucket = BUCKETS.findIndex((bound) => durationMs <= bound * 1000)
      const at = bucket === -1 ? BUCKETS.length : bucket
      histogram.counts[at] = (histogram.counts[at] ?? 0) + 1
      histogram.sum += durationMs / 1000
    },
    text: () => {
      const delaySeconds = delay.percentile(99) / 1e9
      delay.reset()
      return [
        ...metric('vitrine_answers_total', 'counter', 'Answers by operation and status.', answers),
        ...histograms('vitrine_answer_seconds', 'Time to answer, by operation.', seconds),
        ...gauges().flatMap(({ name, type, help, value }) => metric(name, type, help, value())),
        ...metric('vitrine_event_loop_delay_seconds', 'gauge', 'p99 since the last reading.', delaySeconds),
        ...metric('process_resident_memory_bytes', 'gauge', 'Resident memory.', process.memoryUsage.rss()),
        ...metric('process_cpu_seconds_total', 'counter', 'Processor time.', cpuSeconds()),
        ...metric('process_uptime_seconds', 'gauge', 'Seconds since the process started.', process.uptime()),
        '',
      ].join('\n')
    },
    [Symbol.dispose]: () => void delay.disable(),
  }
}

/** The route of the metrics, for a side server. */
export function metricsRoutes(metrics: Metrics): SideRoutes {
  const contentType = 'text/plain; version=0.0.4; charset=utf-8'
  return { '/metrics': () => ({ status: 200, contentType, body: metrics.text() }) }
}

function metric(name: string, type: string, help: string, values: number | ReadonlyMap<string, number>): string[] {
  const lines =
    typeof values === 'number'
      ? [`${name} ${values}`]
      : [...values].map(([labels, value]) => `${name}{${labels}} ${value}`)
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines]
}

function histograms(name: string, help: string, values: ReadonlyMap<string, Histogram>): string[] {
  const lines = [...values].flatMap(([labels, { counts, sum }]) => {
    let total = 0
    const upTo = (bound: string, count: number) => `${name}_bucket{${labels},le="${bound}"} ${(total += count)}`
    const buckets = BUCKETS.map((bound, n) => upTo(String(bound), counts[n] ?? 0))
    const all = upTo('+Inf', counts[BUCKETS.length] ?? 0)
    return [...buckets, all, `${name}_sum{${labels}} ${sum}`, `${name}_count{${labels}} ${total}`]
  })
  return [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...lines]
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
