// Documents are read in slices. The result must not depend on where a slice ends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON } from 'mongodb'
import { Sample, VALUES_AT_ONCE } from './sample-paths.ts'

const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))

/** Returns the number of pauses, and the paths. */
function walked(...documents: object[]) {
  const sample = new Sample()
  let pauses = 0
  for (const document of documents) for (const _ of sample.add(BSON.serialize(document))) pauses++
  const { paths, complete, odd } = sample.finish()
  const seen = paths.map(({ path, documents: n, types, elements }) => [path, n, ...types, ...elements])
  return { pauses, seen, complete, odd }
}

test('a large document is sampled in slices, and so are many small documents', () => {
  const large = walked({ list: many(95_000, (k) => k) })
  assert.equal(large.pauses, 9)
  assert.deepEqual(large.seen, [['list', 1, ['array', 1], ['int', 95_000]]])
  const objects = walked({ list: many(30_000, (k) => ({ a: k, b: [[k]] })) })
  assert.ok(objects.pauses >= (30_000 * 6) / VALUES_AT_ONCE, String(objects.pauses))
  assert.deepEqual(objects.seen, [
    ['list', 1, ['array', 1], ['object', 30_000]],
    ['list.a', 1, ['int', 30_000]],
    ['list.b', 1, ['array', 30_000], ['array', 30_000], ['int', 30_000]],
  ])
  const small = walked(...many(10_000, (k) => ({ _id: k, name: 'x' })))
  assert.ok(small.pauses >= 2)
  assert.equal(walked({ _id: 1, text: 'x'.repeat(1_000_000) }).pauses, 0)
})

test('a sample finds fields in objects and arrays, treats many names as data, and skips bytes that are not BSON', () => {
  const { seen, odd, complete } = walked(
    { _id: 1, home: { city: 'x', geo: [1, { lat: 2 }] }, 'a.b': 1 },
    { _id: 2, home: [{ city: null }], late: true },
    { _id: 3, names: Object.fromEntries(many(300, (k) => [`n${k}`, k])), end: 1 },
  )
  assert.deepEqual(seen, [
    ['_id', 3, ['int', 3]],
    ['home', 2, ['object', 1], ['array', 1], ['object', 1]],
    ['home.city', 2, ['string', 1], ['null', 1]],
    ['home.geo', 1, ['array', 1], ['int', 1], ['object', 1]],
    ['home.geo.lat', 1, ['int', 1]],
    ['late', 1, ['bool', 1]],
    ['names', 1, ['object', 1]],
    ['end', 1, ['int', 1]],
  ])
  assert.deepEqual([odd, complete], [['a.b'], true])
  const sample = new Sample()
  assert.deepEqual([...sample.add(BSON.serialize({ a: 1, b: { c: 'x' } }).subarray(0, 17))], [])
  assert.equal(sample.finish().documents, 1)
})
