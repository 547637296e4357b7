// What a sample tells of a column, beside what can be counted by hand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ColumnSample, compare } from './column-sample.ts'
import type { ColumnProfile, Scalar, ValueKind } from './driver.ts'

const ALL: Parameters<ColumnSample['profile']>[1] = { rows: null, complete: true }

function profiled(kind: ValueKind, values: readonly (Scalar | null | undefined)[], whole = ALL): ColumnProfile {
  const sample = new ColumnSample(kind)
  for (const value of values) sample.add(value)
  return sample.profile('c', whole)
}

test('of a whole table every number is exact', () => {
  const told = profiled('text', ['a', 'b', 'a', null, 'a'])
  assert.equal(told.nullFrac, 0.2)
  assert.equal(told.distinctCount, 2)
  assert.deepEqual(told.values, [
    { value: 'a', share: 0.6, rows: 3 },
    { value: 'b', share: 0.2, rows: 1 },
  ])
  assert.equal(told.range, null)
})

test('an empty column tells nothing', () => {
  const told = profiled('number', [])
  assert.deepEqual([told.nullFrac, told.distinctCount, told.values, told.range], [null, null, [], null])
  assert.equal(profiled('number', [null, null]).nullFrac, 1)
})

test('the ends of numbers are told by value, however long they are; NaN and infinities are none', () => {
  const values = [2, '9007199254740993', 'NaN', -7, '-90071992547409930.5', 'Infinity', '12345678901234567890']
  assert.deepEqual(profiled('number', values).range, { min: '-90071992547409930.5', max: '12345678901234567890' })
  assert.equal(profiled('number', ['NaN']).range, null)
})

test('the ends of times leave out what RFC 3339 cannot say', () => {
  const values = ['2024-02-29T10:00:00.5Z', '1999-12-31T00:00:00Z', 'infinity', '0044-03-15 BC']
  assert.deepEqual(profiled('time', values).range, { min: '1999-12-31T00:00:00Z', max: '2024-02-29T10:00:00.5Z' })
})

test('values that are no scalars are counted and not told', () => {
  const told = profiled('text', [undefined, undefined, null])
  assert.deepEqual([told.nullFrac, told.distinctCount, told.values], [1 / 3, null, null])
})

test('what looks like something is told by its share, and long texts are no values', () => {
  const long = 'x'.repeat(65)
  const told = profiled('text', ['ada@example.com', 'bob@example.com', 'none', long])
  assert.equal(told.sample?.looks['email'], 0.5)
  assert.equal(told.sample?.longest, 65)
  assert.ok(told.values?.every(({ value }) => value !== long))
})

test('distinct values are estimated over the whole table', () => {
  const ids = Array.from({ length: 1000 }, (_, n) => n)
  assert.equal(profiled('number', ids, { rows: 50_000, complete: false }).distinctCount, 50_000)
  const few = ids.map((n) => n % 7)
  const told = profiled('number', few, { rows: 50_000, complete: false })
  assert.equal(told.distinctCount, 7)
  assert.equal(told.values?.[0]?.rows, 143)
})

test('a sample of more distinct values than are told apart is not guessed at', () => {
  const told = profiled(
    'number',
    Array.from({ length: 20_002 }, (_, n) => n),
  )
  assert.deepEqual([told.distinctCount, told.values], [null, null])
  assert.deepEqual(told.range, { min: 0, max: 20_001 })
})

test('compare() puts decimals in the order of their values', () => {
  const sorted = ['-12345678901234567890.5', '-10', -9.5, 0, '0.5', 3, '12345678901234567890', '12345678901234567890.1']
  for (const [n, a] of sorted.entries()) {
    for (const [m, b] of sorted.entries()) assert.equal(Math.sign(compare(a, b)) + 0, Math.sign(n - m) + 0, `${a} ${b}`)
  }
})
