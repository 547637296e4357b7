// One after the other: whoever comes waits for those before. Keeps replays of different datasources from computing beside
// each other, which would only make each slower and the requests between them wait.

export interface SerialQueue {
  /** Waits for its turn, works, and lets the next one in, however it ended. Throws the reason of `signal` while waiting. */
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
