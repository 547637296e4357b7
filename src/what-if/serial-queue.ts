// Runs one task at a time, in order of arrival. If several datasources replayed their queries at the same time, other
// requests would have to wait for all of them.

export interface SerialQueue {
  /** Runs `work` when all earlier tasks have ended. Throws the reason of `signal` if it aborts before `work` starts. */
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
