import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readBody } from './body/read-body.ts'
import { redactedJson } from './redact.ts'

test('redactedJson() removes values, and keeps names of fields, operators and the collection', () => {
  const { text } = readBody({
    collection: 'orders',
    filter: { 'customer.email': 'SECRET', total: { $gt: 41, $in: ['SECRET', 1, null] }, at: { $date: 'SECRET' } },
    pipeline: [{ $group: { _id: '$SECRET', n: { $sum: 1 } } }, { $sort: { n: -1 } }],
    limit: 10,
  })
  assert.equal(
    redactedJson(text),
    '{"collection":"orders","filter":{"customer.email":"?","total":{"$gt":"?","$in":["?"]},"at":{"$date":"?"}},' +
      '"pipeline":[{"$group":{"_id":"?","n":{"$sum":"?"}}},{"$sort":{"n":"?"}}],"limit":"?"}',
  )
})

test('redactedJson() removes a key or a collection that is not a plain name', () => {
  const kept = redactedJson(
    '{"collection":"a SECRET","filter":{"x@SECRET":1,"y":[{"z SECRET":true},[]]},"aggregate":["SECRET"]}',
  )
  assert.equal(kept, '{"collection":"?","filter":{"?":"?","y":[{"?":"?"},[]]},"aggregate":["?"]}')
})

test('redactedJson() returns null for a text that is not a JSON object, and for very deep nesting', () => {
  for (const text of ['', 'x', '[]', '"SECRET"', `{"a":${'['.repeat(700)}{}${']'.repeat(700)}}`]) {
    assert.equal(redactedJson(text), null, text.slice(0, 20))
  }
})
