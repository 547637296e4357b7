// The metrics of queries. This file runs for every query, so it only increments numbers.
import { outcomeOf } from '../audit/audit.ts'
import type { BlockedKind } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import type { Code } from '../errors.ts'
import { Counts, Durations, type Family } from '../metric-types.ts'

/** The time of each step, by performance.now(), or 0 if the query did not reach the step. */
export interface QueryMarks {
  readonly began: number
  guardedAt: number
  leasedAt: number
  ranAt: number
}

interface Kind {
  answered: number
  denied: number
  failed: number
  abandoned: number
  rows: number
  bytes: number
  readonly total: Durations
  readonly guard: Durations
  readonly wait: Durations
  readonly database: Durations
}

export interface QueryMeter {
  answered(type: DatasourceType, marks: QueryMarks, endedAt: number, rows: number, bytes: number): void
  /** Counts a refused or failed query. `code` is null if the caller hung up. */
  refused(type: DatasourceType, marks: QueryMarks, code: Code | null, blocked: BlockedKind | null): void
  families(): readonly Family[]
}

export function openQueryMeter(): QueryMeter {
  const kinds: Readonly<Record<DatasourceType, Kind>> = { POSTGRES: newKind(), MONGODB: newKind(), BIGQUERY: newKind() }
  const refusals = new Counts<{ kind: DatasourceType; code: Code; blocked: BlockedKind | '' }>()
  return {
    answered(type, marks, endedAt, rows, bytes) {
      const kind = kinds[type]
      kind.answered++
      kind.rows += rows
      kind.bytes += bytes
      addTimes(kind, marks, endedAt)
    },
    refused(type, marks, code, blocked) {
      const kind = kinds[type]
      addTimes(kind, marks, performance.now())
      if (code === null) {
        kind.abandoned++
        return
      }
      if (outcomeOf(code) === 'DENIED') kind.denied++
      else kind.failed++
      refusals.add({ kind: type, code, blocked: blocked ?? '' })
    },
    families: () => familiesOf(kinds, refusals),
  }
}

function newKind(): Kind {
  const counts = { answered: 0, denied: 0, failed: 0, abandoned: 0, rows: 0, bytes: 0 }
  return { ...counts, total: new Durations(), guard: new Durations(), wait: new Durations(), database: new Durations() }
}

function addTimes(kind: Kind, { began, guardedAt, leasedAt, ranAt }: QueryMarks, endedAt: number): void {
  kind.total.add(endedAt - began)
  if (guardedAt === 0) return
  kind.guard.add(guardedAt - began)
  if (leasedAt === 0) return
  kind.wait.add(leasedAt - guardedAt)
  kind.database.add((ranAt === 0 ? endedAt : ranAt) - leasedAt)
}

function familiesOf(
  kinds: Readonly<Record<DatasourceType, Kind>>,
  refusals: Counts<{ kind: DatasourceType; code: Code; blocked: BlockedKind | '' }>,
): readonly Family[] {
  const all = Object.entries(kinds)
  const counter = (name: string, help: string, of: (kind: Kind) => number): Family => ({
    name,
    type: 'counter',
    help,
    samples: () => all.map(([kind, counts]) => [{ kind }, of(counts)]),
  })
  const histogram = (name: string, help: string, of: (kind: Kind) => Durations): Family => ({
    name,
    type: 'histogram',
    help,
    samples: () => all.map(([kind, counts]) => [{ kind }, of(counts)]),
  })
  const outcomes = ['answered', 'denied', 'failed', 'abandoned'] as const
  return [
    {
      name: 'vitrine_queries_total',
      type: 'counter',
      help: 'Queries by kind of database and outcome. Abandoned: the caller hung up.',
      samples: () =>
        all.flatMap(([kind, counts]) => outcomes.map((outcome) => [{ kind, outcome }, counts[outcome]] as const)),
    },
    {
      name: 'vitrine_query_refusals_total',
      type: 'counter',
      help: 'Refused and failed queries by code; denied queries also by what was blocked.',
      samples: () => refusals.samples(),
    },
    counter('vitrine_query_rows_total', 'Rows in answers.', ({ rows }) => rows),
    counter('vitrine_query_bytes_total', 'Bytes of answers.', ({ bytes }) => bytes),
    histogram('vitrine_query_seconds', 'Whole time of a query.', ({ total }) => total),
    histogram('vitrine_query_guard_seconds', 'From arrival to the verdict of the guard.', ({ guard }) => guard),
    histogram('vitrine_query_wait_seconds', 'Wait for a connection to the database.', ({ wait }) => wait),
    histogram('vitrine_query_database_seconds', 'Time in the database.', ({ database }) => database),
  ]
}
