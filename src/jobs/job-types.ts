// Types: the work of a job, waiting for a job, and its public state.
import type { AccountId, DatasourceId, JobId } from '../ids.ts'
import type { JobTable } from '../store/tables.ts'

/**
 * Reports the progress of a job and its current item, such as a table. The progress is stored from time to time.
 * Without `step`, the last step stays.
 */
export type Progress = (done: number, total: number, step?: string) => void

/**
 * The work of a job. Its return value, plain data, becomes the job's `result`. `id` is the job's id, which a restart
 * does not change.
 */
export type Work = (progress: Progress, signal: AbortSignal, id: JobId) => Promise<unknown>

/** Recreates the work of a job from its input, in the process that resumes it. */
export type Resume = (datasourceId: DatasourceId, input: unknown) => Work

export interface Job {
  readonly id: JobId
  /**
   * Settles when the work has ended and the end is stored. For a job of another process, returns the result, or throws
   * CONFLICT with the job's error.
   */
  ended(): Promise<unknown>
  /** True if the job was already running. */
  readonly isShared: boolean
  /** True if another process runs the job. */
  readonly isElsewhere: boolean
}

/** A job as GET …/jobs/{jobId} shows it. */
export interface JobState {
  readonly id: JobId
  readonly kind: string
  readonly state: JobTable['state']
  readonly done: number
  readonly total: number
  /** The item that a running job is processing. */
  readonly step: string | null
  /** Null if the service started the job. `name` is null if the account was deleted. */
  readonly startedBy: { readonly accountId: AccountId; readonly name: string | null } | null
  readonly result?: unknown
  readonly error?: string
  readonly createdAt: string
  readonly updatedAt: string
}

/** Selects which jobs of a datasource to list. */
export interface JobFilter {
  readonly state?: JobTable['state'] | undefined
  readonly kind?: string | undefined
}

/** The error of a job whose process ended. */
export const INTERRUPTED = 'The service restarted while this job ran. Start the job again.'

export function hasEnded(state: JobTable['state']): boolean {
  return state !== 'QUEUED' && state !== 'RUNNING'
}
