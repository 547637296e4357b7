import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Counts, Durations } from './metric-types.ts'

test('a duration counts in its bucket and in all larger ones', () => {
  const durations = new Durations()
  for (const ms of [0, 5, 6, 31_000]) durations.add(ms)
  const buckets = new Map(durations.cumulative())
  assert.deepEqual(
    [0.0005, 0.005, 0.01, 30, Infinity].map((bound) => buckets.get(bound)),
    [1, 2, 3, 3, 4],
  )
  assert.equal(durations.seconds, 31.011)
})

test('each combination of labels has its own count', () => {
  const counts = new Counts<{ a: string; b: string }>()
  counts.add({ a: 'x', b: 'y' })
  counts.add({ a: 'x', b: 'z' })
  counts.add({ a: 'x', b: 'y' })
  assert.deepEqual(
    [...counts.samples()],
    [
      [{ a: 'x', b: 'y' }, 2],
      [{ a: 'x', b: 'z' }, 1],
    ],
  )
})
