// Starts a job on a caller's request, records it in the audit and returns its id. The job survives a restart. The
// folder that registered the kind of job does the work.
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import { AppError } from '../errors.ts'
import type { DatasourceId, JobId, TeamId } from '../ids.ts'
import type { Jobs } from './jobs.ts'

interface Order {
  readonly kind: string
  /** Plain data. An equal request joins the running job. */
  readonly input: unknown
  /** The maximum number of running jobs of this kind per datasource. */
  readonly atMost: number
  /** The error text if the maximum is reached. */
  readonly busy: string
}

/**
 * Starts or joins a job. Throws CONFLICT with the text `busy` if the maximum number of jobs of this kind is running.
 */
export async function orderJob(
  deps: { readonly audit: Audit; readonly jobs: Jobs },
  call: Call,
  at: { readonly id: DatasourceId; readonly teamId: TeamId },
  { kind, input, atMost, busy }: Order,
): Promise<{ readonly jobId: JobId }> {
  const job = await deps.jobs.begin(at.id, kind, input, atMost, call.caller.accountId)
  if (job === null) throw new AppError('CONFLICT', busy)
  const target = { kind: 'job', id: job.id, name: kind } as const
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED', target })
  return { jobId: job.id }
}
