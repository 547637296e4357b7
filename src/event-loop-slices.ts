// Splits long work into slices, so that other requests can run in between.
import { setImmediate } from 'node:timers/promises'

const SLICE_MS = 8

/**
 * Returns a function to call and await between two steps of the work. It returns undefined, or after each slice, a
 * promise that lets other requests run.
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
