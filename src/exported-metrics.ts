// The metrics of the rooms (docs/operating/observe.md). Values are read when a collector asks for them.
import type { Durations, Family } from './metric-types.ts'
import type { Connections } from './http/connections.ts'
import type { Rooms } from './composition-root.ts'

type Metered = Pick<Rooms, 'audit' | 'budget' | 'leases' | 'meter' | 'redis' | 'running' | 'store'>

export function readingsOf(rooms: Metered, connections: Connections): readonly Family[] {
  const { meter, leases } = rooms
  return [...meter.families(), ...leases.families(), ...plainOf(rooms), ...doorOf(rooms, connections)]
}

function plainOf({ audit, budget, redis, store: { meter: store } }: Metered): readonly Family[] {
  return [
    counter('vitrine_budget_spent_total', 'Queries that a budget counted.', () => budget.totals.spent),
    counter('vitrine_budget_exhausted_total', 'Queries beyond their budget.', () => budget.totals.exhausted),
    ...(redis === null ? [] : [gauge('vitrine_redis_up', '1 if Redis counts the budgets.', () => Number(redis.isUp))]),
    gauge('vitrine_audit_waiting_rows', 'Audit rows that are not in the store yet.', () => audit.waiting.rows),
    gauge(
      'vitrine_audit_waiting_seconds',
      'Age of the oldest audit row that is not in the store yet.',
      () => audit.waiting.ms / 1000,
    ),
    gauge('vitrine_audit_writes', '1 if the last write of the audit succeeded.', () => Number(audit.writes)),
    counter('vitrine_audit_rows_total', 'Audit rows that were written.', () => audit.totals.rows),
    counter('vitrine_audit_write_failures_total', 'Writes that failed and are retried.', () => audit.totals.failures),
    gauge('vitrine_store_up', '0 while the server of the store does not answer.', () => Number(store.isUp)),
    counter('vitrine_store_failures_total', 'Statements of the store that failed.', () => store.failures),
    histogram('vitrine_store_statement_seconds', 'Time of a statement of the store.', store.statements),
    histogram('vitrine_store_transaction_seconds', 'Time of a transaction of the store.', store.transactions),
  ]
}

function doorOf({ running }: Metered, connections: Connections): readonly Family[] {
  return [
    gauge('vitrine_queries_running', 'Queries under way.', () => running.count),
    gauge('vitrine_connections', 'Open connections of the API.', () => connections.open),
    counter(
      'vitrine_connections_evicted_total',
      'Connections closed for a new one, or for too many requests.',
      () => connections.evicted,
    ),
    counter(
      'vitrine_connections_unread_total',
      'Connections closed because their clients did not read the answers.',
      () => connections.unread,
    ),
    gauge('vitrine_unread_bytes', 'Bytes of answers that clients have not read.', () => connections.unreadBytes),
    counter(
      'vitrine_connections_refused_total',
      'Connections and pipelined requests that were refused.',
      () => connections.refused,
    ),
  ]
}

const gauge = (name: string, help: string, value: () => number): Family => ({
  name,
  type: 'gauge',
  help,
  samples: () => [[{}, value()]],
})

const counter = (name: string, help: string, value: () => number): Family => ({
  ...gauge(name, help, value),
  type: 'counter',
})

const histogram = (name: string, help: string, durations: Durations): Family => ({
  name,
  type: 'histogram',
  help,
  samples: () => [[{}, durations]],
})
