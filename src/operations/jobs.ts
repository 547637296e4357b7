// A job is found only under its own datasource.
import { cancelJob } from '../jobs/cancel-job.ts'
import { notFound } from '../errors.ts'
import type { Definitions } from './operation-types.ts'

export function jobOperations(
  deps: Parameters<typeof cancelJob>[0],
): Pick<Definitions, 'listJobs' | 'getJob' | 'cancelJob'> {
  return {
    listJobs: (at) => deps.jobs.list(at.reached.id, at.query),
    async getJob(at) {
      const job = await deps.jobs.find(at.reached.id, at.params.jobId)
      if (job === null) throw notFound()
      return job
    },
    cancelJob: (at) => cancelJob(deps, at.call, at.reached, at.params.jobId),
  }
}
