// mongod must not run large pipelines in its slot-based engine, because there no timeout ends the compilation of a
// plan.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON, type Document } from 'mongodb'
import { toBson } from '../../../src/drivers/mongodb/session/to-bson.ts'
import { startMongod, startNewest, type TestMongo } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { catalog, judge } from './ask.ts'
import { BARE, FULL, load } from './fixture.ts'

const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))
const isScore = (k: number): object => ({ $cond: [{ $eq: ['$score', k] }, 1, 0] })
const named = (n: number, make: (k: number) => unknown): object =>
  Object.fromEntries(many(n, (k) => [`n${k}`, make(k)]))

const SHAPES: Readonly<Record<string, (n: number) => Document[]>> = {
  sums: (n) => [{ $group: { _id: '$land', ...named(n, (k) => ({ $sum: isScore(k) })) } }],
  'a key': (n) => [{ $group: { _id: named(n, isScore) } }],
  'one sum': (n) => [{ $group: { _id: '$land', n: { $sum: { $add: many(n, isScore) } } } }],
  'a projection before a group': (n) => [
    { $project: { land: 1, ...named(n, isScore) } },
    { $group: { _id: '$land', n: { $sum: '$n5' } } },
  ],
  'a projection before a lookup': (n) => [
    { $project: { land: 1, ...named(n, isScore) } },
    { $lookup: { from: 'orders', localField: 'n5', foreignField: '_id', as: 'o' } },
  ],
  'a filter before a group': (n) => [
    { $match: { $or: many(n, (k) => ({ score: { $gt: k }, name: `x${k}` })) } },
    { $group: { _id: '$land', n: { $sum: '$score' } } },
  ],
  'fields in one list': (n) => [{ $group: { _id: '$land', n: { $sum: { $add: many(n * 4, () => '$score') } } } }],
  'a union': (n) => [
    { $unionWith: { coll: 'people', pipeline: [{ $group: { _id: '$land', ...named(n, (k) => ({ $sum: isScore(k) })) } }] } },
  ],
}

for (const [engine, start] of [
  ['the real mongod', startMongod],
  ['the newest engine', startNewest],
] as const) {
  test(`large pipelines do not run in the slot-based engine: ${engine}`, async (t) => {
    const mongo = await engineOrSkip<TestMongo>(t, start)
    if (mongo === null) return
    await using _ = mongo
    const full = mongo.client.db(FULL)
    await load(full, mongo.client.db(BARE))
    const exposed = catalog(mongo.version)
    for (const [name, shape] of Object.entries(SHAPES)) {
      const explained = async (n: number): Promise<string> => {
        const query = judge(exposed, { collection: 'people', pipeline: shape(n) })
        if ('kind' in query) return assert.fail(`${name}: ${JSON.stringify(query)}`)
        const pipeline = query.pipeline.map((stage): Document => toBson({ BSON }, stage))
        const aggregate = { aggregate: 'people', pipeline, cursor: {} }
        const plan = await full.command({ explain: aggregate, verbosity: 'queryPlanner' })
        return JSON.stringify(plan)
      }
      // If the defect came back, a plan of 900 expressions would take minutes. So try 100 first.
      assert.doesNotMatch(await explained(100), /slotBasedPlan/, name)
      assert.doesNotMatch(await explained(900), /slotBasedPlan/, name)
      // A small pipeline runs in the slot-based engine. This shows that the pattern recognizes such a plan.
      if (mongo.version[0] === 6 && name === 'sums') assert.match(await explained(5), /slotBasedPlan/)
    }
  })
}
