import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode, LentJson } from './encode-body.ts'

test('an answer contains the rows unchanged: no number is rounded, no key is reordered', () => {
  const rows = '[[12345678901234567890,{"b":1.50,"a":1e400}]]'
  const columns = [{ name: 'a "b"', dataType: 'json' }]
  const json = encode({ columns, rows, rowCount: 1, truncated: false }, 1.23456)
  assert.ok(String(json).includes(`"rows":${rows},`))
  const read = JSON.parse(String(json))
  assert.deepEqual([read.columns, read.rowCount, read.truncated, read.durationMs], [columns, 1, false, 1.235])
})

test('rows in a buffer are not copied, and their memory is released once', () => {
  let given = 0
  const rows = Buffer.from('[["é"]]')
  const columns = [{ name: 'ä', dataType: 'text' }]
  const json = encode({ columns, rows, rowCount: 1, truncated: true, release: () => given++ }, 2)
  assert.ok(json instanceof LentJson)
  assert.ok(json.parts.includes(rows))
  assert.equal(json.byteLength, Buffer.byteLength(String(json)))
  assert.deepEqual(JSON.parse(String(json)), { columns, rows: [['é']], rowCount: 1, truncated: true, durationMs: 2 })
  json.release()
  json.release()
  assert.equal(given, 1)
  assert.throws(() => json.parts, /given back/)
})
