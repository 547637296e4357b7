// Starts a resumable job for a caller, and records this in the audit.
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import { AppError } from '../errors.ts'
import type { DatasourceId, JobId, TeamId } from '../ids.ts'
import type { Jobs } from './jobs.ts'

interface Order {
  readonly kind: string
  /** Plain data. A request with equal input joins the running job. */
  readonly input: unknown
  readonly atMost: number
  readonly busy: string
}

/** Throws CONFLICT with the text `busy` if too many jobs of this kind are running, and RATE_LIMITED. */
export async function orderJob(
  deps: { readonly audit: Audit; readonly jobs: Jobs },
  call: Call,
  at: { readonly id: DatasourceId; readonly teamId: TeamId },
  { kind, input, atMost, busy }: Order,
): Promise<{ readonly jobId: JobId }> {
  const job = await deps.jobs.begin(at.id, kind, input, atMost, { ...call, teamId: at.teamId })
  if (job === null) throw new AppError('CONFLICT', busy)
  const target = { kind: 'job', id: job.id, name: kind } as const
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED', target })
  return { jobId: job.id }
}
