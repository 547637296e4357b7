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
  test(`nearest() finds the expected names: ${name}`, () => assert.deepEqual(nearest(wanted, NAMES), expected))
}

test('nearest() returns three names by default, and keeps the order of equally near candidates', () => {
  assert.deepEqual(nearest('col', ['col1', 'col2', 'col3', 'col4']), ['col1', 'col2', 'col3'])
})

test('nearest() takes limited time for long names and many candidates', () => {
  const long = 'a'.repeat(100_000)
  assert.deepEqual(nearest(long, [`${'a'.repeat(63)}b`]), [`${'a'.repeat(63)}b`])
  let asked = 0
  function* many() {
    for (; asked < 1_000_000; asked++) yield 'zzzzzzzzzz'
  }
  nearest('orders', many())
  assert.ok(asked <= 5_001)
})

test('nearest() stops early if many long names are similar', () => {
  const names = Array.from({ length: 5_000 }, (_, n) => `a${String(n).padStart(5, '0')}_x${'bcdefg'.repeat(9)}z`)
  let asked = 0
  function* many() {
    for (const name of names) {
      asked++
      yield name
    }
  }
  assert.equal(nearest(`y00000_${'bcxefg'.repeat(9)}q`, many()).length, 3)
  assert.ok(asked < 2_000, `${asked} names were compared`)
})

/** Returns the edit distance, computed from its definition. */
function plainDistance(a: string, b: string): number {
  const table: number[][] = []
  for (let i = 0; i <= a.length; i++)
    for (let j = 0; j <= b.length; j++) {
      const at = (x: number, y: number): number => table[x]?.[y] ?? Infinity
      const ways = [at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)]
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) ways.push(at(i - 2, j - 2) + 1)
      ;(table[i] ??= [])[j] = i + j === 0 ? 0 : Math.min(...ways)
    }
  return table[a.length]?.[b.length] ?? 0
}

test('for random names, nearest() computes the same distance as the definition', () => {
  let state = 20_261_123
  const random = (most: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * most)
  }
  const word = (): string => Array.from({ length: 1 + random(14) }, () => 'abc'[random(3)]).join('')
  for (let n = 0; n < 5_000; n++) {
    const [a, b] = [word(), word()]
    const distance = plainDistance(a, b)
    const [longer, shorter] = [Math.max(a.length, b.length), Math.min(a.length, b.length)]
    const holds = shorter >= 3 && (a.includes(b) || b.includes(a))
    const isNear = (distance <= Math.max(1, Math.floor(longer / 3)) && distance < shorter) || holds
    assert.deepEqual(nearest(a, [b]), isNear ? [b] : [], `${a} ${b} ${distance}`)
  }
})

test('didYouMean() returns a sentence', () => {
  assert.equal(didYouMean([]), '')
  assert.equal(didYouMean(['a']), 'Did you mean a?')
  assert.equal(didYouMean(['a', 'b', 'c']), 'Did you mean a, b or c?')
})
