// The second wall (docs/drivers/bigquery.md#the-second-wall): BigQuery's own account of a text before the text runs. The dry
// run knows nothing of columns; those are the guard's. A missing field counts against the query, except with an emulator.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { AppError } from '../../../errors.ts'
import { mayReport, type BigQueryQuery } from '../query.ts'
import { overCost } from './cost.ts'
import { Unreadable } from './exchange.ts'
import { refusedByJob } from './refused.ts'
import type { Rest } from './rest.ts'

/** Where jobs run. */
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

/** What a dry run says of a text. */
export type DryRun = Answer

/** Nothing runs and nothing is billed. Throws what Rest.json() throws, and Refused for an error in a 200. */
export async function dryRun(
  rest: Rest,
  place: Place,
  { text, params }: Pick<BigQueryQuery, 'text' | 'params'>,
  signal: AbortSignal,
): Promise<DryRun> {
  const body = {
    configuration: {
      dryRun: true,
      // No maximumBytesBilled: a dry run bills nothing, and over the limit it would answer an error without the estimate.
      query: { query: text, useLegacySql: false, useQueryCache: false, ...params },
    },
    jobReference: { projectId: place.billingProject, location: place.location },
  }
  const json = await rest.json({ method: 'POST', path: ['projects', place.billingProject, 'jobs'], body }, signal)
  const refused = refusedByJob(json, false)
  if (refused !== null) throw refused
  const answer = Answer.safeParse(json)
  if (!answer.success) throw new Unreadable('a dry run that says nothing')
  return answer.data
}

/** Bytes that the query would read; null where it does not say. */
export function bytesOf({ statistics }: DryRun): number | null {
  const { totalBytesProcessed: inner } = statistics.query
  const { totalBytesProcessed: outer } = statistics
  return inner === undefined && outer === undefined ? null : Math.max(inner ?? 0, outer ?? 0)
}

/** The tables that it would read, as `project.dataset.table`. */
export function tablesOf({ statistics }: DryRun): readonly string[] {
  return (statistics.query.referencedTables ?? []).map(
    ({ projectId, datasetId, tableId }) => `${projectId}.${datasetId}.${tableId}`,
  )
}

/** Of statistics.query: what no SELECT of ours has. */
const FOREIGN =
  /^(ddl|dcl)|^(referencedRoutines|undeclaredQueryParameters|dmlStats|numDmlAffectedRows|exportDataStatistics|loadQueryStatistics|mlStatistics|modelTraining.*|sparkStatistics|externalServiceCosts|referencedPropertyGraphs)$/

/**
 * Why the answer is not that of the query that the guard let pass; null where it is. For the log: it names what the
 * caller may not read. `lenient`: what is left out is not missed.
 */
function disagreement(query: BigQueryQuery, answer: DryRun, lenient: boolean): string | null {
  const { configuration, statistics } = answer
  const { statementType } = statistics.query
  const missed = <T>(value: T | undefined): boolean => value === undefined && !lenient
  if (missed(configuration.jobType) || (configuration.jobType ?? 'QUERY') !== 'QUERY') return 'it is no query job'
  if (missed(statementType) || (statementType ?? 'SELECT') !== 'SELECT') return `it is a ${statementType ?? 'nothing'}`
  const table = tablesOf(answer).find((each) => !mayReport(query, each))
  if (table !== undefined) return `it reads ${table}`
  const foreign = Object.entries(statistics.query).find(([key, value]) => FOREIGN.test(key) && !isEmpty(value))
  if (foreign !== undefined) return `it has ${foreign[0]}`
  for (const key of ['scriptStatistics', 'sessionInfo']) if (!isEmpty(statistics[key])) return `it has ${key}`
  const to = configuration.query?.destinationTable
  // BigQuery's own place for an answer is shown there too.
  if (to !== undefined && !(to.datasetId.startsWith('_') && to.tableId.startsWith('anon'))) return 'it writes a table'
  return missed(bytesOf(answer) ?? undefined) ? 'it does not say what it would read' : null
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}

/** A disagreement between the guard and BigQuery: a defect of one of them, to be looked into by the text's hash. */
export class Disagreement extends Error {
  override readonly name = 'Disagreement'
  readonly textSha256: string

  constructor(query: BigQueryQuery, what: string) {
    super(`BigQuery reads a confined query otherwise than the guard: ${what}`)
    this.textSha256 = createHash('sha256').update(query.text).digest('hex')
  }
}

/** Throws AppError QUERY_DENIED where the answer is another query's, or over the limit; the bytes otherwise. */
export function judge(query: BigQueryQuery, answer: DryRun, at: Judging): number {
  const what = disagreement(query, answer, at.lenient)
  if (what !== null) {
    const cause = new Disagreement(query, what)
    at.alarm(cause)
    throw new AppError('QUERY_DENIED', 'BigQuery reads this query otherwise than this service does: it was not run.', {
      extra: {
        blocked: { kind: 'statement', name: 'dry run' },
        hint: 'Write it more simply. Where a table or view was changed lately, an administrator introspects again.',
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

/** Throws AppError QUERY_DENIED (cost). */
export function checkCost(bytes: number, limit: number): void {
  if (bytes > limit) throw overCost(bytes, limit)
}
