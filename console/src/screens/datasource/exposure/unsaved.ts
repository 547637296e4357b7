// Stores unsaved changes of an exposure in this tab, so that a reload does not lose them.
import { useEffect, useRef } from 'react'
import { keep, readKept } from '../../../api/unsaved-input.ts'
import { isEmpty, type Difference, type TableNames } from './choice.ts'

const nameOf = (id: string) => `exposure.${id}`
const SETTLE_MS = 250

export function readUnsaved(id: string): Difference | null {
  const kept = readKept(nameOf(id))
  if (typeof kept !== 'object' || kept === null || !('added' in kept) || !('removed' in kept)) return null
  const { added, removed } = kept
  if (!isTables(added) || !isTables(removed)) return null
  return isEmpty({ added, removed }) ? null : { added, removed }
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
  keep(nameOf(id), isEmpty(difference) ? null : difference)
}

/**
 * Stores the changes when they have not changed for a moment, and when the person closes the page or leaves the editor.
 * Stores no new changes while `paused`.
 */
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
