import type { AccountId, DatasourceId, JobId, TeamId } from '../ids.ts'
import type { JobTable } from '../store/tables.ts'

/** Without `step`, the step stays the same. */
export type Progress = (done: number, total: number, step?: string) => void

/** The result must be plain data, and becomes the job's `result`. A resumed job keeps its id. */
export type Work = (progress: Progress, signal: AbortSignal, id: JobId) => Promise<unknown>

/** In another process, creates the work again from the stored input. */
export type Resume = (datasourceId: DatasourceId, input: unknown) => Work

export interface Starter {
  readonly caller: { readonly accountId: AccountId }
  readonly address?: string | undefined
  readonly teamId: TeamId
}

export interface Job {
  readonly id: JobId
  /** Settles when the end is stored. Rejects with CONFLICT and the stored error if the job fails in another process. */
  ended(): Promise<unknown>
  readonly isShared: boolean
  readonly isElsewhere: boolean
}

export interface JobState {
  readonly id: JobId
  readonly kind: string
  readonly state: JobTable['state']
  readonly done: number
  readonly total: number
  /** For example a table. */
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
