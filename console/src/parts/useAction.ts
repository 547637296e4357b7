// Runs an asynchronous action that a person started. Returns whether the action is running, and the error of the last
// run.
import { useCallback, useRef, useState } from 'react'

export interface Action {
  readonly busy: boolean
  readonly error: unknown
  /** Does nothing if the action is already running. */
  run(): void
  clear(): void
}

export function useAction(act: () => Promise<void>): Action {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const running = useRef(false)
  const run = () => {
    if (running.current) return
    running.current = true
    setBusy(true)
    setError(null)
    act()
      .catch(setError)
      .finally(() => {
        running.current = false
        setBusy(false)
      })
  }
  return { busy, error, run, clear: useCallback(() => setError(null), []) }
}
