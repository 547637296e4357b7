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
