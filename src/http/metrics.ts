// Metrics in the Prometheus text format, on their own address. They are never served on the API port, and are off
// unless VITRINE_METRICS_ADDR is set. They contain no names, ids or texts.
import type { SideRoutes } from './side-server.ts'

export interface Metrics {
  /** Counts one answer: the operation id (or `other`) and its status. */
  count(operation: string, status: number, durationMs: number): void
  text(): string
}

export function openMetrics(): Metrics {
  const answers = new Map<string, number>()
  const seconds = new Map<string, number>()
  return {
    count(operation, status, durationMs) {
      const labels = `operation="${operation}",status="${status}"`
      answers.set(labels, (answers.get(labels) ?? 0) + 1)
      const operations = `operation="${operation}"`
      seconds.set(operations, (seconds.get(operations) ?? 0) + durationMs / 1000)
    },
    text: () =>
      [
        ...metric('vitrine_answers_total', 'counter', 'Answers by operation and status.', answers),
        ...metric('vitrine_answer_seconds_total', 'counter', 'Time spent on answers, by operation.', seconds),
        ...metric('process_resident_memory_bytes', 'gauge', 'Resident memory.', process.memoryUsage.rss()),
        ...metric('process_cpu_seconds_total', 'counter', 'Processor time.', cpuSeconds()),
        ...metric('process_uptime_seconds', 'gauge', 'Seconds since the process started.', process.uptime()),
        '',
      ].join('\n'),
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

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
