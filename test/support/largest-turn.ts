// Measures how much of the embedded store one turn of the event loop removes. Other requests wait for the end of a
// turn.
import { setImmediate } from 'node:timers/promises'

/**
 * Runs `work`, and returns the largest decrease of `left` between two turns of the event loop. `left` reads the store,
 * for example the number of rows of a table.
 */
export async function largestTurn(left: () => Promise<number>, work: () => Promise<unknown>): Promise<number> {
  let [before, most, isRunning] = [await left(), 0, true]
  const done = work().finally(() => (isRunning = false))
  while (isRunning) {
    await setImmediate()
    const now = await left()
    most = Math.max(most, before - now)
    before = now
  }
  await done
  return most
}
