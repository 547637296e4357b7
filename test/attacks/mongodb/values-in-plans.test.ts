// A query may compute the values that a $lookup looks up, or the date of a $densify. No timeout ends mongod's work on
// some of these values, so mongod must fail the query before.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON, MongoServerError, type Document } from 'mongodb'
import { toBson } from '../../../src/drivers/mongodb/session/to-bson.ts'
import { startMongod, startNewest, type TestMongo } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { catalog, judge } from './ask.ts'
import { BARE, FULL, load } from './fixture.ts'

const one = (value: object): Document[] => [{ $sort: { _id: 1 } }, { $limit: 1 }, { $project: { v: value } }]
const each = (n: number, value: unknown): object => ({ $map: { input: { $range: [0, n] }, in: value } })
const patterns = (n: number): object[] => Array.from({ length: n }, (_, k) => ({ $regularExpression: { pattern: `q${k}`, options: '' } }))
const lookup = (localField: string): Document => ({ $lookup: { from: 'orders', localField, foreignField: '_id', as: 'o' } })
const graph = (startWith: string): Document => ({
  $graphLookup: { from: 'people', startWith, connectFromField: 'boss', connectToField: '_id', as: 'o' },
})
const date = (ms: string): object => ({ $toDate: { $numberLong: ms } })
const month = (unit: string): Document => ({
  $densify: { field: 'v', range: { step: 1, unit, bounds: [{ $date: '1970-01-01T00:00:00Z' }, { $date: '1970-03-01T00:00:00Z' }] } },
})

const FAILS: Readonly<Record<string, Document[]>> = {
  'a lookup by many arrays': [...one(each(600, ['$$this'])), lookup('v')],
  'a lookup by arrays with several $or in its pipeline': [
    ...one(each(200, ['$$this'])),
    { $lookup: { from: 'orders', localField: 'v', foreignField: '_id', as: 'o', pipeline: [{ $match: { $and: [1, 2].map((total) => ({ $or: [{ total }, { state: 'a' }] })) } }] } },
  ],
  'a lookup by many regular expressions': [...one({ $literal: patterns(1_000) }), lookup('v')],
  'a lookup by many arrays in one object of an array': [...one([{ w: each(600, ['$$this']) }]), lookup('v.w')],
  'a lookup by many arrays in an object': [...one({ w: each(600, ['$$this']) }), lookup('v.w')],
  'a $graphLookup that begins with many arrays': [...one(each(600, ['$$this'])), graph('$v')],
  'a $densify by month up to a date far in the future': [...one(date('9200000000000000000')), month('month')],
  'a $densify by year from a date far in the past': [...one(date('-9200000000000000000')), month('year')],
}

const ANSWERED: Readonly<Record<string, Document[]>> = {
  'a lookup by some arrays': [...one(each(200, ['$$this'])), lookup('v')],
  'a lookup by many numbers': [...one(each(10_000, '$$this')), lookup('v')],
  'a lookup by many objects of an array': [...one(each(2_000, { w: '$$this' })), lookup('v.w')],
  'a lookup by a regular expression': [...one({ $literal: patterns(1) }), lookup('v')],
  'a lookup by a value that is no array': [...one({ $literal: 'a' }), lookup('v')],
  'a $graphLookup that begins with some arrays': [...one(each(200, ['$$this'])), graph('$v')],
  'a $densify by month': [...one(date('9200000000')), month('month')],
  'a $densify by month of no date': [...one({ $literal: null }), month('month')],
}

test('a $lookup by very many values is refused, because each plan of the planner has a copy of them', () => {
  const list = (n: number): object => ({ $concatArrays: Array.from({ length: n }, () => each(10_000, '$$this')) })
  for (const [n, isRefused] of [
    [1, false],
    [10, true],
  ] as const)
    assert.equal('kind' in judge(catalog([6, 0, 5]), { collection: 'people', pipeline: [...one(list(n)), lookup('v')] }), isRefused)
})

for (const [engine, start] of [
  ['the real mongod', startMongod],
  ['the newest engine', startNewest],
] as const)
  test(`values that mongod works on for long fail: ${engine}`, async (t) => {
    const mongo = await engineOrSkip<TestMongo>(t, start)
    if (mongo === null) return
    await using _ = mongo
    const full = mongo.client.db(FULL)
    await load(full, mongo.client.db(BARE))
    const exposed = catalog(mongo.version)
    const answer = async (pipeline: Document[]): Promise<unknown> => {
      const query = judge(exposed, { collection: 'people', pipeline })
      if ('kind' in query) return query
      const stages = query.pipeline.map((stage): Document => toBson({ BSON }, stage))
      const found = await full.collection('people').aggregate(stages, { maxTimeMS: 20_000 }).toArray().catch((error: unknown) => error)
      return found instanceof MongoServerError ? found.code : found
    }
    for (const [name, pipeline] of Object.entries(FAILS)) assert.equal(await answer(pipeline), 28_729, name)
    for (const [name, pipeline] of Object.entries(ANSWERED)) assert.ok(Array.isArray(await answer(pipeline)), name)
  })
