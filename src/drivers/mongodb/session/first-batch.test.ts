import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON } from 'mongodb'
import { readFirstBatch } from './first-batch.ts'

const cursor = (id: bigint, firstBatch: readonly object[]): Uint8Array =>
  BSON.serialize({ firstBatch, id: BSON.Long.fromBigInt(id), ns: 'a.b', partialResultsReturned: false })

test('the documents of a first batch are the bytes of the server, and a cursor tells of more', () => {
  for (const documents of [[], [{ a: 1 }, { b: ['x'.repeat(1_000)] }]]) {
    const { bytes, hasMore } = readFirstBatch(cursor(0n, documents))
    assert.deepEqual(Object.values(BSON.deserialize(bytes)), documents)
    assert.equal(hasMore, false)
    assert.equal(readFirstBatch(cursor(7n << 40n, documents)).hasMore, true)
  }
})

test('bytes that are no cursor are refused', () => {
  const whole = cursor(0n, [{ a: 1 }])
  const wrong: readonly unknown[] = [
    undefined,
    {},
    whole.subarray(0, 20),
    BSON.serialize({ id: 1 }),
    BSON.serialize({ firstBatch: [] }),
    new Uint8Array(),
  ]
  for (const each of wrong) assert.throws(() => readFirstBatch(each), RangeError)
  for (let at = 0; at < whole.length; at++) {
    const broken = Buffer.from(whole)
    broken[at] = 0xff
    try {
      readFirstBatch(broken)
    } catch (error) {
      assert.ok(error instanceof RangeError, String(error))
    }
  }
})
