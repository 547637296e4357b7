// One after the other: whoever comes waits for those before. Keeps replays of different datasources from computing beside
// each other, which would only make each slower and the requests between them wait.

export interface Turns {
  /** Waits for its turn, works, and lets the next one in, however it ended. Throws the reason of `signal` while waiting. */
  take<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
}

export function openTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve()
  return {
    async take(work, signal) {
      const before = last
      const { promise: done, resolve: leave } = Promise.withResolvers<void>()
      last = Promise.all([before, done])
      try {
        await Promise.race([before, aborted(signal)])
        signal.throwIfAborted()
        return await work()
      } finally {
        leave()
      }
    },
  }
}

/** Settles when the signal aborts; whoever races it against something that ends leaves nothing behind. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
