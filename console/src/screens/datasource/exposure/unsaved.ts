// Keeps unsaved changes of an exposure in this tab, so that a reload does not lose them. Storage may be disabled or full;
// then they last as long as the page.
import { useEffect, useRef } from 'react'
import { isEmpty, type Difference, type TableNames } from './choice.ts'

const nameOf = (id: string) => `vitrine.exposure.${id}`
const SETTLE_MS = 250

export function readUnsaved(id: string): Difference | null {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(nameOf(id)) ?? 'null')
    if (typeof stored !== 'object' || stored === null || !('added' in stored) || !('removed' in stored)) return null
    const { added, removed } = stored
    if (!isTables(added) || !isTables(removed)) return null
    return isEmpty({ added, removed }) ? null : { added, removed }
  } catch {
    return null
  }
}

const isStrings = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

const isTables = (value: unknown): value is readonly TableNames[] =>
  Array.isArray(value) &&
  value.every((each: unknown) => {
    if (typeof each !== 'object' || each === null || !('columns' in each)) return false
    return 'schema' in each && 'table' in each && typeof each.schema === 'string' && isStrings(each.columns)
  })

export function writeUnsaved(id: string, difference: Difference): void {
  try {
    if (isEmpty(difference)) sessionStorage.removeItem(nameOf(id))
    else sessionStorage.setItem(nameOf(id), JSON.stringify(difference))
  } catch {
    // The changes stay on the page.
  }
}

/** Stores the difference when it settled, and at the latest when the page goes. `paused`: stores nothing. */
export function useKeepUnsaved(id: string, difference: Difference, paused: boolean): void {
  const waiting = useRef<(() => void) | null>(null)
  useEffect(() => {
    if (paused) return undefined
    waiting.current = () => {
      waiting.current = null
      writeUnsaved(id, difference)
    }
    const timer = setTimeout(() => waiting.current?.(), SETTLE_MS)
    return () => clearTimeout(timer)
  }, [id, difference, paused])
  useEffect(() => {
    const flush = () => waiting.current?.()
    addEventListener('pagehide', flush)
    return () => {
      removeEventListener('pagehide', flush)
      flush()
    }
  }, [])
}
