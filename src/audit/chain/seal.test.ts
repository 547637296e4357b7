import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { newId, type AccountId } from '../../ids.ts'
import { RowMaker } from '../make-rows.ts'
import { CONTENT, rowOf, sameSeal, sealWith, textOf, type Content } from './seal.ts'

const key = Buffer.from([...Array(32).keys()])
const seal = sealWith(key)
const row = (query: string, name?: string): Content =>
  new RowMaker(() => 0).of(
    { action: 'a', caller: { kind: 'session', accountId: newId<AccountId>(), name } },
    { outcome: 'ANSWERED', query },
  )

test('a link is the HMAC-SHA-256 of its content, for texts of any length and script', () => {
  for (const text of ['', 'x', 'ä€😀', '\ud800', '\u2028"\\'].flatMap((piece) =>
    [1, 100, 3_000, 5_400, 6_000, 200_000].map((n) => piece.repeat(n)),
  )) {
    for (const [name, columns] of [[undefined, CONTENT.slice(0, -1)] as const, [text, CONTENT] as const]) {
      const bound = row(text, name)
      const parts = ['link', 'before', 'chain', 7, ...columns.map((column) => bound[column])]
      const expected = createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url')
      assert.equal(seal.link('before', 'chain', 7, textOf(bound)), expected)
      assert.equal(seal.linkOf('before', 'chain', 7, Buffer.from(textOf(bound))), expected)
      assert.deepEqual(rowOf(textOf(bound)), bound)
    }
  }
})

test('a row has another seal if the same values are in other columns or have another type', () => {
  const bound = row('SELECT 1')
  const seals = [
    seal.alone(bound),
    seal.link('', '', 1, textOf(bound)),
    seal.link('', '1', 1, textOf(bound)),
    seal.link('1', '', 1, textOf(bound)),
    seal.alone({ ...bound, query: null }),
    seal.alone({ ...bound, query: '' }),
    seal.alone({ ...bound, query: bound.printed, printed: bound.query }),
    seal.alone({ ...bound, row_count: 1 }),
    seal.alone({ ...bound, bytes: 1 }),
    seal.registry({ first: 1, last: 2, since: '', before: 0 }),
    seal.registry({ first: 2, last: 1, since: '', before: 0 }),
    seal.registry({ first: 1, last: 2, since: '', before: 1 }),
    sealWith(Buffer.alloc(32)).alone(bound),
  ]
  assert.equal(new Set(seals).size, seals.length)
  assert.ok(sameSeal(seals[0] ?? '', seal.alone(bound)))
  assert.ok(!sameSeal(seals[0] ?? '', null) && !sameSeal(seals[0] ?? '', ''))
})
