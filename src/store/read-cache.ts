// A cache of recent reads for the hot path. After forget(), no value read before is returned: an answered change is
// visible to the next request.

export interface Recall {
  /** Returns the cached value, or loads it. Concurrent loads of a key are shared. A failed load is not cached. */
  recall<T>(key: string, load: () => Promise<T>): Promise<T>
  forget(): void
}

interface Entry {
  readonly value: Promise<unknown>
  readonly at: number
}

/** `maxAgeMs`: how long a change by another process may stay unseen. Infinity if there is no other process. */
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
      const entry: Entry = { value: load(), at: now() }
      cache.delete(key)
      cache.set(key, entry)
      const oldest = cache.keys().next()
      if (cache.size > entriesMax && !oldest.done) cache.delete(oldest.value)
      entry.value.catch(() => {
        if (cache.get(key) === entry) cache.delete(key)
      })
      // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
      return entry.value as Promise<T>
    },
    // Drops loads in progress too: they may have read the state before the change.
    forget: () => cache.clear(),
  }
}
