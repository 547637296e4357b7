// What was read lately, so that a hot path does not ask the store again. It never answers what was read before the
// last forget(): a change that was answered holds from the next request on.

export interface Recall {
  /** What `load` gave for this key lately; loads of the same key at once are shared, a failed one is not kept. */
  recall<T>(key: string, load: () => Promise<T>): Promise<T>
  forget(): void
}

interface Entry {
  readonly value: Promise<unknown>
  readonly at: number
}

/** `maxAgeMs`: how long another process's change may stay unseen; Infinity where there is no other process. */
export function recallFor(maxAgeMs: number, entriesMax = 5_000, now: () => number = () => performance.now()): Recall {
  const kept = new Map<string, Entry>()
  return {
    recall<T>(key: string, load: () => Promise<T>): Promise<T> {
      const held = kept.get(key)
      // A key stands for one kind of value only, its caller's: the one place where that is taken on trust.
      if (held !== undefined && now() - held.at <= maxAgeMs) {
        // To the end of the order: what is asked for stays, however many others are looked for in vain.
        kept.delete(key)
        kept.set(key, held)
        // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
        return held.value as Promise<T>
      }
      // Its age counts from the start of the load: the store may change while it is under way.
      const entry: Entry = { value: load(), at: now() }
      kept.delete(key)
      kept.set(key, entry)
      const oldest = kept.keys().next()
      if (kept.size > entriesMax && !oldest.done) kept.delete(oldest.value)
      entry.value.catch(() => {
        if (kept.get(key) === entry) kept.delete(key)
      })
      // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
      return entry.value as Promise<T>
    },
    // Loads under way are dropped too: what they read may be from before the change.
    forget: () => kept.clear(),
  }
}
