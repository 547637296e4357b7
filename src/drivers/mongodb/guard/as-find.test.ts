import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../../../test/support/mongo-catalog.ts'
import { unseal } from '../../confined.ts'
import type { MongoQuery } from '../confined-query.ts'
import { confine } from './confine.ts'
import { readBody } from './body/read-body.ts'

const EXPOSED = { people: ['name', 'home.city', 'age'], shown: ['name'] }
const catalog = mongoCatalog(EXPOSED, { kinds: new Map([['shown', 'view']]) })
const projection = { name: 1, 'home.city': 1, age: 1, _id: 0 }

function made(body: object, rowCap = 100): MongoQuery {
  const limits = { rowCap, maxResponseBytes: 1 << 20, timeoutMs: 1_000, maxCost: 1e6 }
  const verdict = confine(readBody({ collection: 'people', ...body }), catalog, limits)
  return verdict.kind === 'confined'
    ? unseal<MongoQuery>(verdict.query, 'MONGODB')
    : assert.fail(JSON.stringify(verdict))
}

test('a query of a filter, a sort, a skip and a limit is sent and printed as a find command', () => {
  const filter = { name: { $gt: 'a' } }
  const none = { sort: null, skip: null, projection }
  assert.deepEqual(made({}).find, { ...none, filter: {}, limit: 101 })
  assert.deepEqual(made({ filter }).find, { ...none, filter, limit: 101 })
  assert.deepEqual(made({ filter, limit: 5 }).find, { ...none, filter, limit: 6 })
  const pipeline = [{ $match: filter }, { $sort: { age: -1, name: 1 } }, { $skip: 3 }, { $limit: 7 }]
  const query = made({ pipeline })
  assert.deepEqual(query.find, { filter, sort: { age: -1, name: 1 }, skip: 3, limit: 7, projection })
  assert.equal(
    query.printed(),
    '{"find":"people","filter":{"name":{"$gt":"a"}},"sort":{"age":-1,"name":1},"skip":3,"limit":7,"projection":{"name":1,"home.city":1,"age":1,"_id":0}}',
  )
  // The limit on rows still applies if the query has a larger limit.
  assert.equal(made({ pipeline: [{ $limit: 5_000 }] }).find?.limit, 101)
  assert.equal(made({ pipeline: [{ $limit: { $numberLong: '7' } }] }).find?.limit, 7)
  assert.deepEqual(Object.keys(made({ filter }).find?.filter ?? {}), ['name'])
})

test('a query with other stages, or another order of stages, is sent as a pipeline', () => {
  const stages: readonly (readonly object[])[] = [
    [{ $limit: 3 }, { $skip: 1 }],
    [{ $limit: 3 }, { $sort: { age: 1 } }],
    [{ $skip: 3 }, { $sort: { age: 1 } }],
    [{ $sort: { age: 1 } }, { $sort: { name: 1 } }],
    [{ $limit: 3 }, { $limit: 2 }],
    [{ $match: { age: 1 } }, { $match: { name: 'a' } }],
    [{ $project: { name: 1 } }],
    [{ $set: { x: 1 } }],
    [{ $match: { $expr: { $eq: ['$age', 1] } } }],
    [{ $match: { 'home.city': null } }],
    [{ $sort: { 'home.city': 1 } }, { $limit: 3 }],
    [{ $sample: { size: 3 } }],
    [{ $group: { _id: '$age' } }],
    [{ $lookup: { from: 'people', localField: 'name', foreignField: 'name', as: 'x' } }],
  ]
  for (const pipeline of stages) {
    const query = made({ pipeline })
    assert.equal(query.find, null, JSON.stringify(pipeline))
    assert.match(query.printed(), /^\{"aggregate":"people","pipeline":\[/)
  }
  assert.equal(made({ collection: 'shown' }).find, null)
  assert.equal(made({}, 1_001).find, null)
})
