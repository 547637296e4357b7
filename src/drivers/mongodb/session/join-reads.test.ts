import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../../../test/support/mongo-catalog.ts'
import { unseal } from '../../confined.ts'
import { confine } from '../guard/confine.ts'
import { readBody } from '../guard/body/read-body.ts'
import type { MongoQuery } from '../confined-query.ts'
import { costBound } from './estimate.ts'

const DOCUMENTS = 80

const PATHS = ['_id', 'n', 'list']
const catalog = mongoCatalog(
  { a: PATHS, b: PATHS },
  { documents: DOCUMENTS, indexedPaths: ['_id'], arrays: { list: 50 } },
)
const limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 60_000, maxCost: 1e6 }

async function bound(...pipeline: object[]): Promise<number> {
  const verdict = confine(readBody({ collection: 'a', pipeline }), catalog, limits)
  assert.ok(verdict.kind === 'confined', verdict.kind === 'confined' ? '' : verdict.why)
  return await costBound(unseal<MongoQuery>(verdict.query, 'MONGODB'), async () => DOCUMENTS)
}

const all = (pipeline: object[]): object => ({ $lookup: { from: 'b', let: { n: '$n' }, pipeline, as: 'x' } })
const by = (foreignField: string): object => ({ $lookup: { from: 'b', localField: 'n', foreignField, as: 'x' } })

test('for a join inside a join, the reads are multiplied', async () => {
  assert.equal(await bound(all([])), 80 + 80 ** 2)
  assert.equal(await bound(all([all([])])), 80 + 80 ** 2 + 80 ** 3)
  assert.equal(await bound(all([all([all([all([])])])])), 80 + 80 ** 2 + 80 ** 3 + 80 ** 4 + 80 ** 5)
  assert.equal(await bound({ $facet: { one: [all([all([])])], two: [all([])] } }), 80 + 2 * 80 ** 2 + 80 ** 3)
})

test('a limit reduces only the reads of later stages', async () => {
  assert.equal(await bound({ $limit: 2 }, all([])), 80 + 2 * 80)
  assert.equal(await bound({ $limit: 2 }, { $unwind: '$list' }, all([])), 80 + 2 * 50 * 80)
  assert.equal(
    await bound({ $limit: 2 }, { $set: { r: { $range: [0, 500] } } }, { $unwind: '$r' }, all([])),
    80 + 2 * 500 * 80,
  )
  assert.equal(await bound({ $limit: 2 }, { $unionWith: 'b' }, all([])), 80 + 80 + 82 * 80)
  const dense = { $densify: { field: 'n', range: { step: 1, bounds: [0, 1000] } } }
  assert.equal(await bound({ $limit: 2 }, dense, all([])), 80 + 1002 * 80)
  assert.equal(await bound(all([]), { $limit: 2 }), 80 + 80 ** 2)
})

test('an array that $bucketAuto or a window gathers becomes many documents again', async () => {
  const each = { $lookup: { from: 'b', let: { k: '$_id' }, pipeline: [], as: 'x' } }
  const buckets = (output: object): object => ({ $bucketAuto: { groupBy: '$n', buckets: 2, output } })
  assert.equal(await bound(buckets({ n: { $sum: 1 } }), each), 80 + 2 * 80)
  assert.equal(await bound(buckets({ list: { $push: '$n' } }), { $unwind: '$list' }, each), 80 + 80 ** 2)
  const window = { list: { $push: '$n', window: { documents: [-9, 0] } } }
  const found = await bound({ $setWindowFields: { sortBy: { n: 1 }, output: window } }, { $unwind: '$list' }, each)
  assert.equal(found, 80 + 80 * 10 * 80)
})

test('an $unwind after a $limit makes as many documents as the arrays have gathered', async () => {
  const each = { $lookup: { from: 'b', let: { k: 1 }, pipeline: [], as: 'x' } }
  const group = { $group: { _id: '$n', all: { $push: '$$ROOT' }, n: { $first: '$n' } } }
  const [limit, unwind] = [{ $limit: 1 }, { $unwind: '$all' }]
  const from = (...stages: readonly object[]) => bound(group, limit, ...stages, each)
  const gathered = 80 + 80 * 80
  assert.equal(await from(unwind), gathered)
  assert.equal(await bound(group, { $sample: { size: 1 } }, unwind, each), gathered)
  assert.equal(await from({ $project: { some: '$all' } }, { $unwind: '$some' }), gathered)
  assert.equal(await from({ $group: { _id: null, outer: { $push: '$all' } } }, { $unwind: '$outer' }), gathered)
  assert.equal(await from({ $set: { all: { $slice: ['$all', 5] } } }, unwind), 80 + 5 * 80)
  assert.equal(await from({ $unwind: '$n' }), 80 + 80)
  assert.equal(await bound(group, { $limit: 2 }, by('_id'), { $unwind: '$x' }, by('_id')), 80 + 2 + 2)
  assert.equal(await bound({ $facet: { some: [{ $limit: 30 }] } }, { $unwind: '$some' }, each), 80 + 30 * 80)
  const joined = { $lookup: { from: 'b', pipeline: [{ $group: { _id: null, all: { $push: '$n' } } }], as: 'x' } }
  assert.equal(
    await bound(joined, { $limit: 1 }, { $unwind: '$x' }, { $unwind: '$x.all' }, by('_id')),
    80 + 80 + 80 ** 2,
  )
})

test('joins by an index, and $unwind of their results, cost little', async () => {
  assert.equal(await bound(by('_id'), { $unwind: '$x' }, by('_id'), { $unwind: '$x' }, by('_id')), 80 + 3 * 80)
  assert.equal(
    await bound(
      { $group: { _id: '$n', all: { $push: '$$ROOT' } } },
      { $unwind: '$all' },
      { $set: { n: '$all.n' } },
      by('_id'),
    ),
    80 + 80,
  )
  assert.equal(await bound({ $lookup: { from: 'b', pipeline: [], as: 'x' } }), 80 + 80)
})

test('in a $graphLookup without an index, each round reads the collection', async () => {
  const graph = (field: string, maxDepth: number): object => ({
    $graphLookup: { from: 'b', startWith: '$n', connectFromField: 'n', connectToField: field, as: 'x', maxDepth },
  })
  assert.equal(await bound(graph('n', 2)), 80 + 80 * 3 * 80)
  assert.equal(await bound(graph('_id', 2)), 80 + 80 * 3)
})
