import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rowsWithin } from './fit-rows.ts'

const answerOf = (rows: readonly unknown[][], name = 'a') =>
  JSON.stringify({
    columns: [{ name, dataType: 'text' }],
    rows,
    rowCount: rows.length,
    truncated: false,
    durationMs: 1,
  })

test('an answer to run_query that is short enough is not changed', () => {
  assert.equal(rowsWithin(answerOf([[1], [2]]), 1_000), null)
})

test('a long answer to run_query loses as few rows from the end as possible', () => {
  const rows = [['a"],["b'], ['\\'], [{ rows: [[1]] }], ['é😀'], ['"rows":['], ['last']]
  for (const name of ['a', '"rows":[', ']}', '\\"']) {
    const whole = answerOf(rows, name)
    for (let bytesMax = Buffer.byteLength(answerOf([], name)) + 2; bytesMax < Buffer.byteLength(whole); bytesMax++) {
      const cut = rowsWithin(whole, bytesMax)
      assert.ok(cut !== null && Buffer.byteLength(cut.json) <= bytesMax)
      const { rows: left, rowCount, truncated } = JSON.parse(cut.json)
      assert.deepEqual([left, rowCount, truncated], [rows.slice(0, cut.rowCount), cut.rowCount, true])
      assert.ok(Buffer.byteLength(answerOf(rows.slice(0, cut.rowCount + 1), name)) > bytesMax)
    }
  }
})

test('an answer to run_query whose columns alone are too long has no rows', () => {
  const cut = rowsWithin(answerOf([[1], [2]], 'x'.repeat(500)), 100)
  assert.deepEqual(JSON.parse(cut?.json ?? '').rows, [])
})
