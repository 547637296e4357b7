// Splits long work into slices and yields to the event loop between them.
import { setImmediate } from 'node:timers/promises'

/** The time after which the next step yields to the event loop. */
const SLICE_MS = 8

/**
 * Returns a function to call and await between two steps. The function returns undefined until the slice is used up.
 * Then the function yields to the event loop.
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
