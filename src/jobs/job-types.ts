import type { AccountId, DatasourceId, JobId, TeamId } from '../ids.ts'
import type { JobTable } from '../store/tables.ts'

/** Reports progress, and the item that is being processed, such as a table. Without `step`, the last item stays. */
export type Progress = (done: number, total: number, step?: string) => void

/**
 * The work of a job. The returned value must be plain data, and becomes the job's `result`. The id stays the same when
 * a job is resumed.
 */
export type Work = (progress: Progress, signal: AbortSignal, id: JobId) => Promise<unknown>

/** When a process resumes a job, this function creates its work again from the stored input. */
export type Resume = (datasourceId: DatasourceId, input: unknown) => Work

/** The caller who starts a job, and the team of the datasource. */
export interface Starter {
  readonly caller: { readonly accountId: AccountId }
  /** The client's network address, if known. */
  readonly address?: string | undefined
  readonly teamId: TeamId
}

export interface Job {
  readonly id: JobId
  /**
   * Resolves or rejects when the work has ended and this is stored. If another process runs the job and the job
   * fails, rejects with CONFLICT and the stored error.
   */
  ended(): Promise<unknown>
  readonly isShared: boolean
  readonly isElsewhere: boolean
}

/** A job as `GET …/jobs/{jobId}` returns it. */
export interface JobState {
  readonly id: JobId
  readonly kind: string
  readonly state: JobTable['state']
  readonly done: number
  readonly total: number
  /** The item that is being processed, such as a table. */
  readonly step: string | null
  /** Null if the service started the job. `name` is null if the account was deleted. */
  readonly startedBy: { readonly accountId: AccountId; readonly name: string | null } | null
  readonly result?: unknown
  readonly error?: string
  readonly createdAt: string
  readonly updatedAt: string
}

export interface JobFilter {
  readonly state?: JobTable['state'] | undefined
  readonly kind?: string | undefined
}

/** The error of a job that was not resumed after its process ended. */
export const INTERRUPTED = 'The service restarted while this job ran. Start the job again.'

export function hasEnded(state: JobTable['state']): boolean {
  return state !== 'QUEUED' && state !== 'RUNNING'
}
