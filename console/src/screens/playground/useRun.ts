// Runs a query and keeps its answer or error. Stopping aborts the request, which ends the query in the database.
import { useCallback, useEffect, useRef, useState } from 'react'
import { call } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { Answer } from '../../api/types.ts'
import type { Body } from './query-body.ts'

export interface Ran {
  readonly body: Body
  readonly datasourceId: string
  readonly answer: Answer<'runQuery'> | null
  readonly error: unknown
}

export interface Run {
  readonly ran: Ran | null
  readonly running: boolean
  readonly stopped: boolean
  start(at: { readonly teamId: string; readonly id: string }, body: Body): Promise<Ran | null>
  stop(): void
  forget(): void
}

export function useRun(): Run {
  const [ran, setRan] = useState<Ran | null>(null)
  const [running, setRunning] = useState(false)
  const [stopped, setStopped] = useState(false)
  const current = useRef<AbortController | null>(null)
  useEffect(() => () => current.current?.abort(), [])
  const start = useCallback(async (at: { readonly teamId: string; readonly id: string }, body: Body) => {
    current.current?.abort()
    const hangUp = new AbortController()
    current.current = hangUp
    setRunning(true)
    setStopped(false)
    try {
      const done = await outcomeOf(at, body, hangUp.signal)
      if (current.current === hangUp) setRan(done)
      return done
    } catch (error) {
      if (!hangUp.signal.aborted) throw error
      return null
    } finally {
      if (current.current === hangUp) setRunning(false)
      void queryClient.invalidateQueries({ queryKey: ['getUsage'] })
    }
  }, [])
  const stop = useCallback(() => {
    if (current.current === null || current.current.signal.aborted) return
    current.current.abort()
    setStopped(true)
    setRunning(false)
  }, [])
  return { ran, running, stopped, start, stop, forget: useCallback(() => setRan(null), []) }
}

async function outcomeOf(
  at: { readonly teamId: string; readonly id: string },
  body: Body,
  signal: AbortSignal,
): Promise<Ran> {
  const about = { body, datasourceId: at.id }
  try {
    return { ...about, answer: await call('runQuery', { params: at, body }, signal), error: null }
  } catch (error) {
    if (signal.aborted) throw error
    return { ...about, answer: null, error }
  }
}
