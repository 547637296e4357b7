import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON } from 'mongodb'
import { readReply } from './read-reply.ts'

const cursorOf = (id: bigint, firstBatch: readonly object[]): object => ({
  ...{ firstBatch, id: BSON.Long.fromBigInt(id), ns: 'a.b', partialResultsReturned: false },
})
const reply = (document: object): Buffer => Buffer.from(BSON.serialize(document))

test('the first batch of an answer keeps the bytes of the server, and a cursor means that there are more documents', () => {
  for (const documents of [[], [{ a: 1 }, { b: ['x'.repeat(1_000)] }]]) {
    for (const ok of [new BSON.Double(1), 1, BSON.Long.fromNumber(1)]) {
      const read = readReply(reply({ cursor: cursorOf(0n, documents), ok, operationTime: new BSON.Timestamp(1n) }))
      assert.deepEqual(Object.values(BSON.deserialize(read?.bytes ?? Buffer.of())), documents)
      assert.equal(read?.cursor, null)
    }
    for (const id of [7n, 7n << 40n]) {
      assert.equal(readReply(reply({ ok: 1, cursor: cursorOf(id, documents) }))?.cursor === null, false)
    }
  }
})

test('an answer with an error has no batch, even if the answer has a cursor', () => {
  assert.equal(readReply(reply({ ok: new BSON.Double(0), code: 50 })), null)
  assert.equal(readReply(reply({ cursor: cursorOf(0n, []), ok: 0 })), null)
})

test('bytes that are no answer with a cursor are refused', () => {
  const whole = reply({ cursor: cursorOf(0n, [{ a: 1 }]), ok: new BSON.Double(1) })
  const wrong = [
    Buffer.of(),
    whole.subarray(0, 20),
    reply({}),
    reply({ ok: 1 }),
    reply({ ok: 1, cursor: 1 }),
    reply({ ok: 1, cursor: { id: 1 } }),
    reply({ ok: 1, cursor: { firstBatch: [] } }),
    reply({ cursor: cursorOf(0n, []) }),
  ]
  for (const each of wrong) assert.throws(() => readReply(each), RangeError)
  for (let at = 0; at < whole.length; at++) {
    const broken = Buffer.from(whole)
    broken[at] = 0xff
    try {
      readReply(broken)
    } catch (error) {
      assert.ok(error instanceof RangeError, String(error))
    }
  }
})
