// Caches what connections learn about one database as one login, and shares it for some minutes, so changes become
// visible.
import type { ConnectionSettings } from './driver.ts'

const ENTRY_MS = 300_000
const ENTRIES_MAX = 500

/** Returns the value made for the same address and login in the last five minutes, or makes a new one. */
export function sharedCache<Value>(make: () => Value): (at: ConnectionSettings) => Value {
  const entries = new Map<string, { readonly value: Value; readonly at: number }>()
  return ({ host, port, database, username }) => {
    const key = JSON.stringify([host, port, database, username])
    const now = performance.now()
    const entry = entries.get(key)
    if (entry !== undefined && now - entry.at < ENTRY_MS) return entry.value
    if (entries.size >= ENTRIES_MAX) entries.clear()
    const value = make()
    entries.set(key, { value, at: now })
    return value
  }
}
