// Compares the profile of a sample with values counted by hand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ColumnSample, compare } from './profile-from-sample.ts'
import type { ColumnProfile, Scalar, ValueKind } from './driver.ts'

const ALL: Parameters<ColumnSample['profile']>[1] = { rows: null, complete: true }

function profiled(kind: ValueKind, values: readonly (Scalar | null | undefined)[], whole = ALL): ColumnProfile {
  const sample = new ColumnSample(kind)
  for (const value of values) sample.add(value)
  return sample.profile('c', whole)
}

test('if the sample is the whole table, the numbers of the profile are exact', () => {
  const profile = profiled('text', ['a', 'b', 'a', null, 'a'])
  assert.equal(profile.nullFrac, 0.2)
  assert.equal(profile.distinctCount, 2)
  assert.deepEqual(profile.values, [
    { value: 'a', share: 0.6, rows: 3 },
    { value: 'b', share: 0.2, rows: 1 },
  ])
  assert.equal(profile.range, null)
})

test('the profile of an empty column has no values, range or shares', () => {
  const profile = profiled('number', [])
  assert.deepEqual([profile.nullFrac, profile.distinctCount, profile.values, profile.range], [null, null, [], null])
  assert.equal(profiled('number', [null, null]).nullFrac, 1)
})

test('the range of numbers compares numbers of any length by value, and leaves out NaN and infinities', () => {
  const values = [2, '9007199254740993', 'NaN', -7, '-90071992547409930.5', 'Infinity', '12345678901234567890']
  assert.deepEqual(profiled('number', values).range, { min: '-90071992547409930.5', max: '12345678901234567890' })
  assert.equal(profiled('number', ['NaN']).range, null)
})

test('the range of times leaves out dates that RFC 3339 cannot express', () => {
  const values = ['2024-02-29T10:00:00.5Z', '1999-12-31T00:00:00Z', 'infinity', '0044-03-15 BC']
  assert.deepEqual(profiled('time', values).range, { min: '1999-12-31T00:00:00Z', max: '2024-02-29T10:00:00.5Z' })
})

test('a column with values that are no scalars has a share of nulls, but no distinct count and no values', () => {
  const profile = profiled('text', [undefined, undefined, null])
  assert.deepEqual([profile.nullFrac, profile.distinctCount, profile.values], [1 / 3, null, null])
})

test('a profile has the share of each kind of text, and lists no long texts', () => {
  const long = 'x'.repeat(65)
  const profile = profiled('text', ['ada@example.com', 'bob@example.com', 'none', long])
  assert.equal(profile.sample?.looks['email'], 0.5)
  assert.equal(profile.sample?.longest, 65)
  assert.ok(profile.values?.every(({ value }) => value !== long))
})

test('a profile estimates the number of distinct values in the whole table', () => {
  const ids = Array.from({ length: 1000 }, (_, n) => n)
  assert.equal(profiled('number', ids, { rows: 50_000, complete: false }).distinctCount, 50_000)
  const few = ids.map((n) => n % 7)
  const profile = profiled('number', few, { rows: 50_000, complete: false })
  assert.equal(profile.distinctCount, 7)
  assert.equal(profile.values?.[0]?.rows, 143)
})

test('a sample with more than 20,000 distinct values has a range, but no distinct count', () => {
  const profile = profiled(
    'number',
    Array.from({ length: 20_002 }, (_, n) => n),
  )
  assert.deepEqual([profile.distinctCount, profile.values], [null, null])
  assert.deepEqual(profile.range, { min: 0, max: 20_001 })
})

test('compare() orders decimals by value', () => {
  const sorted = ['-12345678901234567890.5', '-10', -9.5, 0, '0.5', 3, '12345678901234567890', '12345678901234567890.1']
  for (const [n, a] of sorted.entries()) {
    for (const [m, b] of sorted.entries()) assert.equal(Math.sign(compare(a, b)) + 0, Math.sign(n - m) + 0, `${a} ${b}`)
  }
})
