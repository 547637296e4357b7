// What a job is: the work it does, how it is waited for and how it is shown. Shapes alone.
import type { DatasourceId, JobId } from '../ids.ts'
import type { JobTable } from '../store/tables.ts'

/** Says how far a job is; written to the store now and then. */
export type Progress = (done: number, total: number) => void

/** What a job does; its value, plain data, becomes the job's `result`. `id` is its own, the same after a restart. */
export type Work = (progress: Progress, signal: AbortSignal, id: JobId) => Promise<unknown>

/** Makes the work of a job from what it was started with, in whichever process goes on with it. */
export type Again = (datasourceId: DatasourceId, input: unknown) => Work

export interface Job {
  readonly id: JobId
  /**
   * Settles with the work, after its end stands in the store. Of a job that another process runs it gives the result, or
   * throws CONFLICT with what the job says of its failure.
   */
  ended(): Promise<unknown>
  /** It was running already. */
  readonly isShared: boolean
  /** Another process runs it. */
  readonly isElsewhere: boolean
}

/** A job as GET …/jobs/{jobId} shows it. */
export interface JobState {
  readonly id: JobId
  readonly kind: string
  readonly state: JobTable['state']
  readonly done: number
  readonly total: number
  readonly result?: unknown
  readonly error?: string
  readonly createdAt: string
  readonly updatedAt: string
}

/** What is told of a job whose process went away. */
export const INTERRUPTED = 'The service was restarted while this ran. Start it again.'

export function hasEnded(state: JobTable['state']): boolean {
  return state !== 'QUEUED' && state !== 'RUNNING'
}
