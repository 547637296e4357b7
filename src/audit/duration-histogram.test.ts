import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addTime, addTimes, percentile, type Times } from './duration-histogram.ts'

test('a percentile is within 8 % of the exact percentile', () => {
  for (const scale of [0.06, 1, 77, 60_000]) {
    const times: Times = new Map()
    const exact = Array.from({ length: 1_000 }, (_, n) => scale * (1 + n / 100))
    for (const ms of exact) addTime(times, ms)
    for (const share of [0.01, 0.5, 0.95, 1]) {
      const wanted = exact[Math.ceil(share * 1_000) - 1] ?? assert.fail()
      const found = percentile(times, share) ?? assert.fail()
      assert.ok(Math.abs(found / wanted - 1) < 0.08, `${scale} ${share}: ${found} instead of ${wanted}`)
    }
  }
})

test('adding the counts of two histograms gives the same percentiles as counting everything in one', () => {
  const [whole, one, other]: [Times, Times, Times] = [new Map(), new Map(), new Map()]
  for (let n = 0; n < 200; n++) {
    addTime(whole, n)
    addTime(n % 3 === 0 ? one : other, n)
  }
  addTimes(one, other)
  assert.equal(percentile(one, 0.5), percentile(whole, 0.5))
  assert.equal(percentile(one, 0.95), percentile(whole, 0.95))
})

test('a histogram without durations has no percentile, and a duration of 0 counts as 0.05 ms', () => {
  assert.equal(percentile(new Map(), 0.5), null)
  const times: Times = new Map()
  addTime(times, 0)
  assert.equal(percentile(times, 0.5), 0.05)
})
