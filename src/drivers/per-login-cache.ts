// Caches what one login sees of a database. The connections of that login share it for five minutes. Then it is read
// again, because the database may have changed.
import type { ConnectionSettings } from './driver.ts'

const ENTRY_MS = 300_000
const ENTRIES_MAX = 500

/**
 * Returns a function that returns the value for a database and a user name. `make` makes a new value if the last value
 * is older than five minutes.
 */
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
