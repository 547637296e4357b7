// How a room starts a job that somebody ordered and that goes on after a restart: begun, told to the audit, answered by its
// id. What it does is for the room that made its kind resumable.
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import { AppError } from '../errors.ts'
import type { DatasourceId, JobId, TeamId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'

interface Order {
  readonly kind: string
  /** Plain data; the same asked for again while it runs is the same job. */
  readonly input: unknown
  /** So many of the kind may run for the datasource. */
  readonly atMost: number
  /** What whoever asks for one more is told. */
  readonly busy: string
}

/** Throws CONFLICT, which says `busy`, where as many of the kind run already. */
export async function orderJob(
  deps: { readonly audit: Audit; readonly jobs: Jobs },
  call: Call,
  at: { readonly id: DatasourceId; readonly teamId: TeamId },
  { kind, input, atMost, busy }: Order,
): Promise<{ readonly jobId: JobId }> {
  const job = await deps.jobs.begin(at.id, kind, input, atMost)
  if (job === null) throw new AppError('CONFLICT', busy)
  const target = { kind: 'job', id: job.id, name: kind } as const
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED', target })
  return { jobId: job.id }
}
