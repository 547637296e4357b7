// An answer is one JSON text that embeds the driver's JSON.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode } from './encode-body.ts'

test('embeds the rows unchanged: no number is rounded, no key is reordered', () => {
  const rows = '[[12345678901234567890,{"b":1.50,"a":1e400}]]'
  const columns = [{ name: 'a "b"', dataType: 'json' }]
  const json = encode({ columns, rows, rowCount: 1, truncated: false }, 1.23456)
  assert.ok(json.includes(`"rows":${rows},`))
  const read = JSON.parse(String(json))
  assert.deepEqual([read.columns, read.rowCount, read.truncated, read.durationMs], [columns, 1, false, 1.235])
})
