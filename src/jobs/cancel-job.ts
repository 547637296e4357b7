// Cancels a job and records this in the audit.
import type { Audit } from '../audit/audit.ts'
import { changesOf } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import { notFound } from '../errors.ts'
import type { DatasourceId, JobId, TeamId } from '../ids.ts'
import type { Jobs } from './jobs.ts'

/** Throws NOT_FOUND if the datasource has no such job. A job that has ended stays unchanged. */
export async function cancelJob(
  deps: { readonly audit: Audit; readonly jobs: Jobs },
  call: Call,
  at: { readonly id: DatasourceId; readonly teamId: TeamId },
  id: JobId,
): Promise<void> {
  const job = await deps.jobs.find(at.id, id)
  if (job === null || !(await deps.jobs.cancel(at.id, id))) throw notFound()
  const after = await deps.jobs.find(at.id, id)
  const changes = changesOf({ state: job.state }, { state: after?.state ?? job.state })
  const what = { target: { kind: 'job', id, name: job.kind }, changes } as const
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED', ...what })
  await deps.audit.flush()
}
