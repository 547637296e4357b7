// Serves metrics in the text format of Prometheus, on the address in VITRINE_METRICS_ADDR and never on the API port.
// Without this variable, metrics are off. They contain no names, ids or texts of people, teams or datasources.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counts, Durations, type Family } from '../metric-types.ts'
import type { SideRoutes } from './second-listener.ts'

export interface Metrics extends Disposable {
  /** Counts one answer. `operation` is the operation id or `other`. `code` is the error code, or null. */
  count(operation: string, status: number, durationMs: number, code: string | null): void
  text(): string
}

/** `more` returns further metrics. It is called each time the metrics are read. */
export function openMetrics(more: () => readonly Family[] = () => []): Metrics {
  const answers = new Counts<{ operation: string; status: string }>()
  const refusals = new Counts<{ code: string }>()
  const seconds = new Map<string, Durations>()
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  return {
    count(operation, status, durationMs, code) {
      answers.add({ operation, status: String(status) })
      if (code !== null) refusals.add({ code })
      let histogram = seconds.get(operation)
      if (histogram === undefined) seconds.set(operation, (histogram = new Durations()))
      histogram.add(durationMs)
    },
    text: () => {
      const delaySeconds = delay.percentile(99) / 1e9
      delay.reset()
      const own: readonly Family[] = [
        family('vitrine_answers_total', 'counter', 'Answers by operation and status.', () => answers.samples()),
        family('vitrine_refusals_total', 'counter', 'Refusals and failures by code.', () => refusals.samples()),
        family('vitrine_answer_seconds', 'histogram', 'Time to answer, by operation.', () =>
          [...seconds].map(([operation, durations]) => [{ operation }, durations]),
        ),
      ]
      const ofProcess: readonly Family[] = [
        plain('vitrine_event_loop_delay_seconds', 'gauge', 'p99 since the metrics were last read.', delaySeconds),
        plain('process_resident_memory_bytes', 'gauge', 'Resident memory.', process.memoryUsage.rss()),
        plain('process_cpu_seconds_total', 'counter', 'Processor time.', cpuSeconds()),
        plain('process_uptime_seconds', 'gauge', 'Seconds since the process started.', process.uptime()),
      ]
      return [...[...own, ...more(), ...ofProcess].flatMap(written), ''].join('\n')
    },
    [Symbol.dispose]: () => void delay.disable(),
  }
}

export function metricsRoutes(metrics: Metrics): SideRoutes {
  const contentType = 'text/plain; version=0.0.4; charset=utf-8'
  return { '/metrics': () => ({ status: 200, contentType, body: metrics.text() }) }
}

function family(name: string, type: Family['type'], help: string, samples: Family['samples']): Family {
  return { name, type, help, samples }
}

function plain(name: string, type: Family['type'], help: string, value: number): Family {
  return family(name, type, help, () => [[{}, value]])
}

function written({ name, type, help, samples }: Family): string[] {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]
  for (const [labels, value] of samples()) {
    if (typeof value === 'number') lines.push(`${name}${labelled(labels)} ${value}`)
    else lines.push(...histogram(name, labels, value))
  }
  return lines
}

function histogram(name: string, labels: Readonly<Record<string, string>>, durations: Durations): string[] {
  const buckets = durations.cumulative()
  const count = buckets.at(-1)?.[1] ?? 0
  return [
    ...buckets.map(([bound, upTo]) => {
      const le = bound === Infinity ? '+Inf' : String(bound)
      return `${name}_bucket${labelled({ ...labels, le })} ${upTo}`
    }),
    `${name}_sum${labelled(labels)} ${durations.seconds}`,
    `${name}_count${labelled(labels)} ${count}`,
  ]
}

function labelled(labels: Readonly<Record<string, string>>): string {
  const all = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
  return all.length === 0 ? '' : `{${all.join(',')}}`
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
