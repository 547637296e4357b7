import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inSlices, mapInSlices } from './event-loop-slices.ts'

/** Longer than a slice. */
function work(): void {
  const end = performance.now() + 9
  while (performance.now() < end);
}

test('other work gets a turn between any two slices, whatever the number of long tasks', async () => {
  const log: (number | 'turn')[] = []
  let isOver = false
  const count = (): void => {
    log.push('turn')
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const tasks = Array.from({ length: 16 }, async (_, task) => {
    // Like requests that arrive in the same turn.
    await nextTurn()
    const pause = inSlices()
    for (let step = 0; step < 3; step++) {
      await pause()
      log.push(task)
      work()
    }
  })
  await Promise.all(tasks)
  isOver = true
  const slices = log.filter((entry) => entry !== 'turn')
  const adjacent = log.filter((entry, at) => entry !== 'turn' && at > 0 && log[at - 1] !== 'turn')
  assert.equal(slices.length, 48)
  assert.deepEqual(adjacent, [])
  // The task that began first got its slice at once. From then on, each task gets one slice in each round.
  const rounds = [1, 17].map((from) => new Set(slices.slice(from, from + 16)).size)
  assert.deepEqual(rounds, [16, 16])
})

test('work in slices ends when its signal aborts', async () => {
  const controller = new AbortController()
  const reason = new Error('the caller hung up')
  let done = 0
  const mapped = mapInSlices(
    [1, 2, 3, 4],
    (n) => {
      work()
      done = n
      if (n === 2) controller.abort(reason)
    },
    controller.signal,
  )
  await assert.rejects(mapped, reason)
  assert.equal(done, 2)
})
