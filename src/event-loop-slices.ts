// Splits long work into slices, so that other requests can run in between.
import { setImmediate } from 'node:timers/promises'

const SLICE_MS = 8

/**
 * Returns a function that must be called and awaited between two steps. At the end of a slice, it yields to the event
 * loop. Before that, it returns undefined.
 */
export function inSlices(): () => Promise<void> | undefined {
  let began = performance.now()
  return () => {
    if (performance.now() - began < SLICE_MS) return undefined
    return setImmediate().then(() => {
      began = performance.now()
    })
  }
}
