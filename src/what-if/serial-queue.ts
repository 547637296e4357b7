// Runs one task at a time, in order of arrival. Replays of several datasources would otherwise compete for the CPU and
// delay requests between them.

export interface SerialQueue {
  /**
   * Waits for its turn and runs `work`. The next task follows, whether `work` succeeds or fails. Throws the reason of
   * `signal` while waiting.
   */
  take<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
}

export function openSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve()
  return {
    async take(work, signal) {
      const before = last
      const { promise: done, resolve: leave } = Promise.withResolvers<void>()
      const { promise: aborted, resolve: abort } = Promise.withResolvers<void>()
      last = Promise.all([before, done])
      signal.addEventListener('abort', () => abort(), { once: true })
      try {
        signal.throwIfAborted()
        await Promise.race([before, aborted])
        signal.throwIfAborted()
        return await work()
      } finally {
        leave()
      }
    },
  }
}
