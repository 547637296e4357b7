import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { listOf } from './long-lists.ts'

const Row = z.strictObject({ name: z.string().min(1), parts: listOf(z.string(), 1_000).nullable() })
const rows = (n: number, other: readonly unknown[] = []): unknown[] => [
  ...Array.from({ length: n }, (_, k) => ({ name: `n${k}`, parts: ['a', String(k)] })),
  ...other,
]
const wrong = (value: unknown, most = 1_000, least = 0) =>
  listOf(Row, most, least)
    .safeParse(value)
    .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)

test('listOf() reads a valid list like z.array()', () => {
  for (const n of [0, 1, 31, 32, 33, 1_000]) {
    assert.deepEqual(listOf(Row, 1_000).parse(rows(n)), z.array(Row).parse(rows(n)))
  }
})

test('listOf() reports a problem at its position, with the message of z.array()', () => {
  for (const other of [{}, 5, { name: '' }, { name: 'x', parts: ['a', 5] }, { name: 'x', parts: null, more: 1 }]) {
    const plain = z
      .array(Row)
      .safeParse(rows(70, [other]))
      .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
    assert.deepEqual(wrong(rows(70, [other])), plain)
  }
  const many = Array.from({ length: 100 }, () => 'x')
  assert.deepEqual(wrong([{ name: 'x', parts: [...many, 7] }])?.length, 1)
  assert.match(String(wrong([{ name: 'x', parts: [...many, 7] }])), /^0\.parts\.100: /)
})

test('listOf() checks the number of elements before it reads any', () => {
  assert.match(String(wrong(rows(11), 10)), /Too big.*10/)
  assert.match(String(wrong([], 10, 1)), /Too small.*1/)
  assert.match(String(wrong({}, 10)), /expected array/)
})

test('listOf() stops reading after the first problems', () => {
  let looked = 0
  const Counted = z.custom<string>(() => {
    looked++
    return false
  })
  const found = listOf(Counted, 100_000).safeParse(Array.from({ length: 50_000 }, () => ({})))
  assert.ok(looked <= 100 && (found.error?.issues.length ?? 0) <= 100, `${looked} looked at`)
})
