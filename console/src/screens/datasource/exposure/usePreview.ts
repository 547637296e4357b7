// Finds the audited queries of the last 7 days that a proposed exposure would newly refuse or newly allow, and the
// queries that cannot be judged. The service replays the queries in a job. A newer proposal cancels the older job.
import { useEffect, useState } from 'react'
import { call } from '../../../api/client.ts'
import type { Datasource } from '../../../api/types.ts'
import { tablesOf, type Choice } from './choice.ts'

export const IMPACT_DAYS = 7
const SETTLE_MS = 900
const POLL_MS = 300

interface Replayed {
  readonly count: number
  readonly auditIds: readonly string[]
}

export interface Impact {
  readonly nowRefused: Replayed
  readonly nowAllowed: Replayed
  readonly cannotTell: Replayed
}

export type ImpactState =
  | { readonly state: 'replaying'; readonly done: number; readonly total: number }
  | { readonly state: 'done'; readonly impact: Impact }
  | { readonly state: 'failed'; readonly error: unknown }

interface Known {
  readonly proposal: Choice
  readonly is: ImpactState
}

const BEGUN: ImpactState = { state: 'replaying', done: 0, total: 0 }

export function usePreview({ teamId, id }: Datasource, proposal: Choice | null): ImpactState | null {
  const [known, setKnown] = useState<Known | null>(null)
  useEffect(() => {
    if (proposal === null) return undefined
    const abort = new AbortController()
    const { signal } = abort
    const timer = setTimeout(() => {
      replay({ teamId, id }, proposal, signal, (is) => !signal.aborted && setKnown({ proposal, is })).catch(
        (error: unknown) => !signal.aborted && setKnown({ proposal, is: { state: 'failed', error } }),
      )
    }, SETTLE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [teamId, id, proposal])
  if (proposal === null) return null
  return known?.proposal === proposal ? known.is : BEGUN
}

async function replay(
  at: { readonly teamId: string; readonly id: string },
  proposal: Choice,
  signal: AbortSignal,
  tell: (state: ImpactState) => void,
): Promise<void> {
  const body = { tables: tablesOf(proposal), days: IMPACT_DAYS }
  const { jobId } = await call('previewExposure', { params: at, body }, signal)
  const params = { ...at, jobId }
  signal.addEventListener('abort', () => void call('cancelJob', { params }).catch(() => undefined), { once: true })
  for (;;) {
    signal.throwIfAborted()
    const job = await call('getJob', { params }, signal)
    if (job.state === 'DONE') {
      const impact = impactOf(job.result)
      if (impact === null) throw new Error('the result of the preview is not readable')
      return tell({ state: 'done', impact })
    }
    if (job.state === 'FAILED' || job.state === 'CANCELLED')
      throw new ReplayEnded(job.error ?? 'The replay was cancelled.')
    tell({ state: 'replaying', done: job.done, total: job.total })
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** The job ended without a result. */
export class ReplayEnded extends Error {}

function impactOf(result: unknown): Impact | null {
  if (typeof result !== 'object' || result === null) return null
  if (!('nowRefused' in result && 'nowAllowed' in result && 'cannotTell' in result)) return null
  const [nowRefused, nowAllowed, cannotTell] = [result.nowRefused, result.nowAllowed, result.cannotTell].map(replayedOf)
  if (!nowRefused || !nowAllowed || !cannotTell) return null
  return { nowRefused, nowAllowed, cannotTell }
}

function replayedOf(value: unknown): Replayed | null {
  if (typeof value !== 'object' || value === null || !('count' in value && 'auditIds' in value)) return null
  const { count, auditIds } = value
  if (typeof count !== 'number' || !Array.isArray(auditIds)) return null
  return { count, auditIds: auditIds.filter((each): each is string => typeof each === 'string') }
}
