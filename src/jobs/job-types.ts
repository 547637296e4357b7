import type { AccountId, DatasourceId, JobId, TeamId } from '../ids.ts'
import type { JobTable } from '../store/tables.ts'

/** Reports progress, and the item that is being processed, such as a table. Without `step`, the item stays the same. */
export type Progress = (done: number, total: number, step?: string) => void

/**
 * The work of a job. The returned value must be plain data, and becomes the job's `result`. A resumed job keeps its id.
 */
export type Work = (progress: Progress, signal: AbortSignal, id: JobId) => Promise<unknown>

/** Creates the work again from the stored input, in a process that resumes the job. */
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
   * Resolves or rejects when the work has ended and its end is stored. Rejects with CONFLICT and the stored error if
   * another process runs the job and it fails.
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
