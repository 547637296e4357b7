// Introspects a database: reads its tables and columns. If that takes long, the service answers with a job. This file
// polls the job and reports its progress.
import { useRef, useState } from 'react'
import { call } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import { useAction, type Action } from '../../parts/useAction.ts'

interface At {
  readonly teamId: string
  readonly id: string
}

export interface Progress {
  readonly done: number
  readonly total: number
  readonly step: string | null
}

const POLL_MS = 500

/** The job of an introspection failed or was cancelled. */
export class LookEnded extends Error {}

export interface Look extends Action {
  readonly progress: Progress | null
}

export function useLook({ teamId, id }: At, onDone: () => void | Promise<void> = () => undefined): Look {
  const [progress, setProgress] = useState<Progress | null>(null)
  const latest = useRef(onDone)
  latest.current = onDone
  const action = useAction(async () => {
    setProgress(null)
    await look({ teamId, id }, setProgress)
    await queryClient.invalidateQueries()
    await latest.current()
  })
  return { ...action, progress: action.busy ? progress : null }
}

export async function look(params: At, tell: (progress: Progress) => void): Promise<void> {
  const started = await call('introspectDatasource', { params })
  if (!('jobId' in started)) return
  for (;;) {
    const job = await call('getJob', { params: { ...params, jobId: started.jobId } })
    if (job.state === 'DONE') return
    if (job.state === 'FAILED' || job.state === 'CANCELLED')
      throw new LookEnded(job.error ?? 'Reading the tables was cancelled.')
    tell({ done: job.done, total: job.total, step: job.step })
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
