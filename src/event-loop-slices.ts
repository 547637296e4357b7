// Splits long work into slices, so that other requests can run in between.
import { setImmediate } from 'node:timers/promises'

const SLICE_MS = 8

/** Call and await the returned function between two steps. After each slice, it lets other requests run. */
export function inSlices(): () => Promise<void> | undefined {
  let began = performance.now()
  return () => {
    if (performance.now() - began < SLICE_MS) return undefined
    return setImmediate().then(() => {
      began = performance.now()
    })
  }
}

/** Like Array.map(), in slices. Begins with a new slice, because reading the items already took time. */
export async function mapInSlices<T, U>(items: readonly T[], map: (item: T, n: number) => U): Promise<readonly U[]> {
  const mapped: U[] = []
  await setImmediate()
  const pause = inSlices()
  for (const [n, item] of items.entries()) {
    await pause()
    mapped.push(map(item, n))
  }
  return mapped
}
