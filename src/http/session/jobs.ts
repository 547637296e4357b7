// What takes long: how far it is, and its end. A job of another datasource is not found.
import { notFound } from '../../errors.ts'
import type { Jobs } from '../../jobs/jobs.ts'
import type { Handlers } from '../handler.ts'

export function jobHandlers(deps: { readonly jobs: Jobs }): Pick<Handlers, 'getJob' | 'cancelJob'> {
  return {
    async getJob(at) {
      const job = await deps.jobs.find(at.reached.id, at.params.jobId)
      if (job === null) throw notFound()
      return job
    },
    async cancelJob(at) {
      if (!(await deps.jobs.cancel(at.reached.id, at.params.jobId))) throw notFound()
    },
  }
}
