// Long work on the one thread, in slices: between two of them whoever waits has their turn.
import { setImmediate } from 'node:timers/promises'

/** Longer nobody is made to wait by it, but for its longest step. */
const SLICE_MS = 8

/** To be awaited between two steps; it answers at once where the slice is not over. */
export function inSlices(): () => Promise<void> | undefined {
  let began = performance.now()
  return () => {
    if (performance.now() - began < SLICE_MS) return undefined
    return setImmediate().then(() => {
      began = performance.now()
    })
  }
}
