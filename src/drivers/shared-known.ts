// Caches what connections learn about one database as one login, and shares it for some minutes, so changes become
// visible.
import type { ConnectionSettings } from './driver.ts'

const KNOWN_MS = 300_000
const KNOWN_MAX = 500

/** Returns the value made for the same address and login in the last five minutes, or makes a new one. */
export function sharedKnown<Known>(make: () => Known): (at: ConnectionSettings) => Known {
  const all = new Map<string, { readonly known: Known; readonly at: number }>()
  return ({ host, port, database, username }) => {
    const key = JSON.stringify([host, port, database, username])
    const now = performance.now()
    const entry = all.get(key)
    if (entry !== undefined && now - entry.at < KNOWN_MS) return entry.known
    if (all.size >= KNOWN_MAX) all.clear()
    const known = make()
    all.set(key, { known, at: now })
    return known
  }
}
