import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, nearest } from './nearest.ts'

const NAMES = ['orders', 'order_items', 'customers', 'products', 'id', 'to_char']

const CASES = [
  ['a missing letter', 'oders', ['orders']],
  ['letters swapped', 'cusotmers', ['customers']],
  ['different case', 'Orders', ['orders']],
  ['the beginning of two names', 'order', ['orders', 'order_items']],
  ['a name inside a longer one', 'all_products', ['products']],
  ['nothing near', 'zebra', []],
  ['one letter', 'x', []],
  ['no name', '', []],
] as const

for (const [name, wanted, expected] of CASES) {
  test(`nearest: ${name}`, () => assert.deepEqual(nearest(wanted, NAMES), expected))
}

test('nearest: returns three names by default, and keeps the order of equally near candidates', () => {
  assert.deepEqual(nearest('col', ['col1', 'col2', 'col3', 'col4']), ['col1', 'col2', 'col3'])
})

test('nearest: long names and many candidates take bounded time', () => {
  const long = 'a'.repeat(100_000)
  assert.deepEqual(nearest(long, [`${'a'.repeat(63)}b`]), [`${'a'.repeat(63)}b`])
  let asked = 0
  function* many() {
    for (; asked < 1_000_000; asked++) yield 'zzzzzzzzzz'
  }
  nearest('orders', many())
  assert.ok(asked <= 5_001)
})

test('didYouMean returns a sentence', () => {
  assert.equal(didYouMean([]), '')
  assert.equal(didYouMean(['a']), 'Did you mean a?')
  assert.equal(didYouMean(['a', 'b', 'c']), 'Did you mean a, b or c?')
})
