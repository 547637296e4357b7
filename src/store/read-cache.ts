// Caches values from the store. After forget(), no older value is returned.

/**
 * If the announcement that another process revoked a key is lost, the key still works for this time. With the time of
 * the read, this is at most one second (docs/session.md#when-a-change-takes-effect).
 */
export const CACHE_MAX_AGE_MS = 750

export interface Recall {
  /** Returns the cached value, or loads it. Concurrent loads of a key share one load. A failed load is not cached. */
  recall<T>(key: string, load: () => Promise<T>): Promise<T>
  /** Loads nothing. */
  known<T>(key: string): T | undefined
  forget(): void
}

interface Entry {
  readonly value: Promise<unknown>
  readonly at: number
  /** Undefined while the value is being loaded. */
  known?: unknown
}

/** Entries expire after `maxAgeMs`. Use Infinity if no other process can change the store. */
export function recallFor(maxAgeMs: number, entriesMax = 5_000, now: () => number = () => performance.now()): Recall {
  const cache = new Map<string, Entry>()
  return {
    recall<T>(key: string, load: () => Promise<T>): Promise<T> {
      const cached = cache.get(key)
      // All values of a key have the same type, so the cast is safe.
      if (cached !== undefined && now() - cached.at <= maxAgeMs) {
        // Move the entry to the end, because the first entry is evicted.
        cache.delete(key)
        cache.set(key, cached)
        // oxlint-disable-next-line typescript/consistent-type-assertions
        return cached.value as Promise<T>
      }
      // The store may change during the load, so the age counts from the start of the load.
      const value = load()
      const entry: Entry = { value, at: now(), known: undefined }
      cache.delete(key)
      cache.set(key, entry)
      const oldest = cache.keys().next()
      if (cache.size > entriesMax && !oldest.done) cache.delete(oldest.value)
      value.then(
        (loaded) => {
          entry.known = loaded
        },
        () => {
          if (cache.get(key) === entry) cache.delete(key)
        },
      )
      return value
    },
    known<T>(key: string): T | undefined {
      const entry = cache.get(key)
      if (entry === undefined || (maxAgeMs !== Infinity && now() - entry.at > maxAgeMs)) return undefined
      // The cast is safe, as in recall().
      // oxlint-disable-next-line typescript/consistent-type-assertions
      return entry.known as T | undefined
    },
    // Also drops a load in progress, which may have read the old state.
    forget: () => cache.clear(),
  }
}
