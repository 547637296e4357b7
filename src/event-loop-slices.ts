// Splits long work into slices, so that other requests can run in between.
import { setImmediate } from 'node:timers/promises'

const SLICE_MS = 8

/**
 * Returns a function. Call it and await its result between two steps of the work. It returns undefined until a slice is
 * over, and then a promise that gives other requests a turn.
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
