// The second wall (docs/drivers/bigquery.md#the-second-wall). Before a query runs, BigQuery does a dry run of it and
// reports what the query is and which tables it would read. It does not report the columns, so only the guard checks
// columns. If the job type, the statement type or the bytes are missing in the report, the query is refused. Only an
// emulator may omit them.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { AppError } from '../../../errors.ts'
import { mayReport, type BigQueryQuery } from '../confined-query.ts'
import { overCost } from './cost-refusal.ts'
import { Unreadable } from './http-exchange.ts'
import { jobErrorOf } from './error-response.ts'
import type { Rest } from './rest.ts'

/** The project in which jobs run and which pays for them, and their location. */
export interface Place {
  readonly billingProject: string
  readonly location: string
}

const Bytes = z.union([
  z
    .string()
    .regex(/^\d{1,18}$/)
    .transform(Number),
  z.int().min(0),
])

const Table = z.object({ projectId: z.string(), datasetId: z.string(), tableId: z.string() })

const Statistics = z.looseObject({
  statementType: z.string().optional(),
  totalBytesProcessed: Bytes.optional(),
  totalBytesProcessedAccuracy: z.string().optional(),
  referencedTables: z.array(Table).optional(),
})

const Answer = z.object({
  configuration: z.looseObject({
    jobType: z.string().optional(),
    query: z
      .looseObject({
        destinationTable: z.object({ datasetId: z.string().catch(''), tableId: z.string().catch('') }).optional(),
      })
      .optional(),
  }),
  statistics: z.looseObject({
    totalBytesProcessed: Bytes.optional(),
    query: Statistics,
  }),
})
type Answer = z.infer<typeof Answer>

export type DryRun = Answer

/**
 * A dry run runs nothing and costs nothing. Throws the errors of Rest.json(). Throws ErrorResponse if a response with
 * status 200 contains an error.
 */
export async function dryRun(
  rest: Rest,
  place: Place,
  { text, params }: Pick<BigQueryQuery, 'text' | 'params'>,
  signal: AbortSignal,
): Promise<DryRun> {
  const body = {
    configuration: {
      dryRun: true,
      // A dry run bills nothing, so it needs no maximumBytesBilled. With this field, BigQuery would refuse a query over
      // the limit without reporting the estimate.
      query: { query: text, useLegacySql: false, useQueryCache: false, ...params },
    },
    jobReference: { projectId: place.billingProject, location: place.location },
  }
  const json = await rest.json({ method: 'POST', path: ['projects', place.billingProject, 'jobs'], body }, signal)
  const refused = jobErrorOf(json, false)
  if (refused !== null) throw refused
  const answer = Answer.safeParse(json)
  if (!answer.success) throw new Unreadable('an invalid dry run')
  return answer.data
}

/** Returns the bytes that the query would read, or null if the response does not say so. */
export function bytesOf({ statistics }: DryRun): number | null {
  const { totalBytesProcessed: inner } = statistics.query
  const { totalBytesProcessed: outer } = statistics
  return inner === undefined && outer === undefined ? null : Math.max(inner ?? 0, outer ?? 0)
}

/** Returns the tables that the query would read, as `project.dataset.table`. */
export function tablesOf({ statistics }: DryRun): readonly string[] {
  return (statistics.query.referencedTables ?? []).map(
    ({ projectId, datasetId, tableId }) => `${projectId}.${datasetId}.${tableId}`,
  )
}

/** Keys of statistics.query that show another statement than the guard prints. */
const IMPOSSIBLE =
  /^(ddl|dcl)|^(referencedRoutines|undeclaredQueryParameters|dmlStats|numDmlAffectedRows|exportDataStatistics|loadQueryStatistics|mlStatistics|modelTraining.*|sparkStatistics|externalServiceCosts|referencedPropertyGraphs)$/

/**
 * Returns why the response does not match the confined query, or null if it matches. The reason may name hidden tables,
 * so it is only for the log. If `lenient` is true, fields may be missing.
 */
function disagreement(query: BigQueryQuery, answer: DryRun, lenient: boolean): string | null {
  const { configuration, statistics } = answer
  const { statementType } = statistics.query
  const missed = <T>(value: T | undefined): boolean => value === undefined && !lenient
  if (missed(configuration.jobType) || (configuration.jobType ?? 'QUERY') !== 'QUERY') return 'it is no query job'
  if (missed(statementType) || (statementType ?? 'SELECT') !== 'SELECT') return `it is a ${statementType ?? 'nothing'}`
  const table = tablesOf(answer).find((each) => !mayReport(query, each))
  if (table !== undefined) return `it reads ${table}`
  const unexpected = Object.entries(statistics.query).find(([key, value]) => IMPOSSIBLE.test(key) && !isEmpty(value))
  if (unexpected !== undefined) return `it has ${unexpected[0]}`
  for (const key of ['scriptStatistics', 'sessionInfo']) if (!isEmpty(statistics[key])) return `it has ${key}`
  const to = configuration.query?.destinationTable
  // BigQuery also reports its own anonymous table for the result.
  if (to !== undefined && !(to.datasetId.startsWith('_') && to.tableId.startsWith('anon'))) return 'it writes a table'
  return missed(bytesOf(answer) ?? undefined) ? 'it does not say what it would read' : null
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}

/**
 * The guard and BigQuery disagree about a query. One of them has a defect, or a table or view has changed since
 * introspection. The hash of the SQL helps to find the query.
 */
export class Disagreement extends Error {
  override readonly name = 'Disagreement'
  readonly textSha256: string

  constructor(query: BigQueryQuery, what: string) {
    super(`BigQuery interprets a confined query differently from the guard: ${what}`)
    this.textSha256 = createHash('sha256').update(query.text).digest('hex')
  }
}

/**
 * Returns the bytes that the query would read, or 0 if BigQuery does not say. Throws AppError QUERY_DENIED if the
 * response does not match the query.
 */
export function judge(query: BigQueryQuery, answer: DryRun, at: Judging): number {
  const what = disagreement(query, answer, at.lenient)
  if (what !== null) {
    const cause = new Disagreement(query, what)
    at.alarm(cause)
    throw new AppError('QUERY_DENIED', 'BigQuery interprets this query differently from Vitrine, so it was not run.', {
      extra: {
        blocked: { kind: 'statement', name: 'dry run' },
        hint: 'Write the query more simply. If a table or view was changed lately, an administrator must introspect again.',
      },
      cause,
    })
  }
  return bytesOf(answer) ?? 0
}

export interface Judging {
  readonly lenient: boolean
  readonly alarm: (disagreement: Disagreement) => void
}

/** Throws AppError QUERY_DENIED if `bytes` exceeds the limit. */
export function checkCost(bytes: number, limit: number): void {
  if (bytes > limit) throw overCost(bytes, limit)
}
