/** Returns the result of the work. If the signal aborts first, throws its reason and does not wait for the work. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  work.catch(() => undefined)
  promise.catch(() => undefined)
  try {
    signal.throwIfAborted()
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Runs `work` on at most `atOnce` items at a time. The results have the order of the items. After the first failure,
 * starts no further item, and aborts the signal of the running items.
 */
export async function mapConcurrently<T, R>(
  all: readonly T[],
  atOnce: number,
  signal: AbortSignal,
  work: (each: T, signal: AbortSignal) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const failed = new AbortController()
  const ended = AbortSignal.any([signal, failed.signal])
  let next = 0
  const worker = async (): Promise<void> => {
    for (let n = next++; n < all.length; n = next++) {
      ended.throwIfAborted()
      const each = all[n]
      if (each !== undefined) results[n] = await work(each, ended)
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(atOnce, all.length) }, worker))
  } catch (error) {
    failed.abort(error)
    throw error
  }
  return results
}
