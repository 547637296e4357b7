// What takes long: how far it is, and its end. A job of another datasource is not found.
import { cancelJob } from '../../datasources/connect.ts'
import { notFound } from '../../errors.ts'
import type { Handlers } from '../handler.ts'

export function jobHandlers(deps: Parameters<typeof cancelJob>[0]): Pick<Handlers, 'getJob' | 'cancelJob'> {
  return {
    async getJob(at) {
      const job = await deps.jobs.find(at.reached.id, at.params.jobId)
      if (job === null) throw notFound()
      return job
    },
    cancelJob: (at) => cancelJob(deps, at.call, at.reached, at.params.jobId),
  }
}
