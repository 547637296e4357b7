import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openClockDoubt, watchClock } from './clock-doubt.ts'

const DAY = 86_400_000

function clocks() {
  const at = { wall: Date.parse('2026-11-22T12:00:00Z'), passed: 5_000 }
  const pass = (ms: number) => {
    at.wall += ms
    at.passed += ms
  }
  const open = (lastSeen: number | null) =>
    openClockDoubt(
      () => at.wall,
      () => at.passed,
      lastSeen,
    )
  return { at, pass, open }
}

test('a clock is trusted as long as it agrees with the elapsed time', () => {
  const { at, pass, open } = clocks()
  const doubt = open(at.wall - DAY)
  for (let n = 0; n < 100; n++) {
    assert.equal(doubt.reason(), null)
    pass(DAY)
  }
})

test('after a jump of 40 days, forwards or backwards, the clock is doubted for a day', () => {
  for (const jump of [40 * DAY, -40 * DAY]) {
    const { at, pass, open } = clocks()
    const doubt = open(null)
    at.wall += jump
    assert.match(doubt.reason() ?? '', /^the clock jumped by -?40\.0 days$/)
    pass(DAY - 1_000)
    assert.notEqual(doubt.reason(), null)
    pass(2_000)
    assert.equal(doubt.reason(), null)
    at.wall -= jump
    assert.notEqual(doubt.reason(), null, 'the correction is a jump too')
  }
})

test('if the service starts 40 days after the newest stored time, the clock is doubted for a day', () => {
  const { at, pass, open } = clocks()
  const doubt = open(at.wall - 40 * DAY)
  assert.match(doubt.reason() ?? '', /^the clock is 40\.0 days after the last entry$/)
  pass(DAY)
  assert.equal(doubt.reason(), null)
})

test('a correction of the clock by minutes does not count as a jump', () => {
  const { at, open } = clocks()
  const doubt = open(null)
  at.wall += 600_000
  assert.equal(doubt.reason(), null)
})

test('the log warns only once about a jump of the clock', async () => {
  const { at, open } = clocks()
  const warned: string[] = []
  await using watch = watchClock(open(at.wall), { warn: (_, message) => void warned.push(message) })
  watch.look()
  assert.deepEqual(warned, [])
  at.wall += 40 * DAY
  watch.look()
  watch.look()
  assert.deepEqual(warned, ['the clock may be wrong: nothing is removed by age for a day'])
})
