// Runs one task at a time, in order of arrival. Otherwise replays of several datasources would alternate, and requests
// would wait for all of them.

export interface SerialQueue {
  /**
   * Waits until all earlier tasks have ended, and runs `work`. Throws the reason of `signal` if it aborts before `work`
   * starts.
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
