// A cache of recent reads for the hot path. After forget(), the cache returns no earlier value, so an answered change
// is visible to the next request.

/**
 * The maximum age of an entry. If another process changes something, for example revokes a key, and its announcement is
 * lost, the change is visible after this time. Including the read, this takes at most one second
 * (docs/session.md#when-a-change-takes-effect).
 */
export const CACHE_MAX_AGE_MS = 750

export interface Recall {
  /** Returns the cached value, or loads it. Concurrent loads of a key are shared. A failed load is not cached. */
  recall<T>(key: string, load: () => Promise<T>): Promise<T>
  /** Returns the cached value of recall() without loading. Returns undefined if no value is cached. */
  known<T>(key: string): T | undefined
  forget(): void
}

interface Entry {
  readonly value: Promise<unknown>
  readonly at: number
  /** The value, set when it is loaded. */
  known?: unknown
}

/** Opens a cache. Entries expire after `maxAgeMs`, which is Infinity if no other process changes the store. */
export function recallFor(maxAgeMs: number, entriesMax = 5_000, now: () => number = () => performance.now()): Recall {
  const cache = new Map<string, Entry>()
  return {
    recall<T>(key: string, load: () => Promise<T>): Promise<T> {
      const cached = cache.get(key)
      // The cast is safe, because each key has one value type, which its caller chooses.
      if (cached !== undefined && now() - cached.at <= maxAgeMs) {
        // Moves the entry to the end of the order, so that used entries are evicted last.
        cache.delete(key)
        cache.set(key, cached)
        // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
        return cached.value as Promise<T>
      }
      // The age counts from the start of the load: the store may change during the load.
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
      // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
      return entry.known as T | undefined
    },
    // This also drops loads in progress, which may have read the state before the change.
    forget: () => cache.clear(),
  }
}
