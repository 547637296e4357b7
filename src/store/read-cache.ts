// A cache of recent reads for the hot path. After forget(), no value read before is returned: an answered change is
// visible to the next request.

/**
 * The longest time that a change by another process, such as a revoked key, may stay invisible if its announcement is lost.
 * Including the time to read it, at most one second (docs/session.md#when-a-change-takes-effect).
 */
export const CACHE_MAX_AGE_MS = 750

export interface Recall {
  /** Returns the cached value, or loads it. Concurrent loads of a key are shared. A failed load is not cached. */
  recall<T>(key: string, load: () => Promise<T>): Promise<T>
  /** Returns what recall() would return, without loading. Returns undefined if nothing is cached yet. */
  known<T>(key: string): T | undefined
  forget(): void
}

interface Entry {
  readonly value: Promise<unknown>
  readonly at: number
  /** The value, set when it is loaded. */
  known?: unknown
}

/** `maxAgeMs`: how long a change by another process may stay invisible. Infinity if there is no other process. */
export function recallFor(maxAgeMs: number, entriesMax = 5_000, now: () => number = () => performance.now()): Recall {
  const cache = new Map<string, Entry>()
  return {
    recall<T>(key: string, load: () => Promise<T>): Promise<T> {
      const cached = cache.get(key)
      // Each key has one value type, chosen by its caller. The cast trusts this.
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
      // As in recall().
      // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
      return entry.known as T | undefined
    },
    // Drops loads in progress too: they may have read the state before the change.
    forget: () => cache.clear(),
  }
}
