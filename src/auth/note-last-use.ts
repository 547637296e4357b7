// Stores when a key or grant was last used, at most once a minute, in the background.
import type { Kysely } from 'kysely'
import { clientOf } from './client-name-and-address.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'

const PRECISION_MS = 60_000
const CACHED_MAX = 10_000

/**
 * Must set `last_used_at` only if it is null or at most `before`, because another process may have stored a newer use.
 */
type Write<Id> = (
  db: Kysely<Tables>,
  use: { id: Id; time: string; before: string; client: string | null },
) => Promise<unknown>

export function lastUses<Id>(
  store: Pick<Store, 'later'>,
  write: Write<Id>,
): (id: Id, at: number, userAgent?: string) => void {
  const used = new BoundedMap<Id, number>(CACHED_MAX)
  return (id, at, userAgent) => {
    if (at - (used.get(id) ?? -Infinity) < PRECISION_MS) return
    used.set(id, at)
    const time = new Date(at).toISOString()
    const before = new Date(at - PRECISION_MS).toISOString()
    const client = clientOf(userAgent) ?? null
    store.later((db) => write(db, { id, time, before, client }))
  }
}
