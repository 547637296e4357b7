import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../../../../test/support/mongo-catalog.ts'
import { confine } from '../confine.ts'
import { readBody } from '../body/read-body.ts'

const CATALOG = mongoCatalog({ people: ['_id', 'a', 'n'] }, { documents: 10 })
const LIMITS = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 1000, maxCost: 1e6 }

type Stages = readonly object[]
const isAllowed = (pipeline: Stages): boolean => {
  const verdict = confine(readBody({ collection: 'people', pipeline }), CATALOG, LIMITS)
  if (verdict.kind === 'denied') assert.equal(verdict.blocked.name, 'memory')
  return verdict.kind === 'confined'
}

const SUMS = { $group: { _id: '$_id', n: { $sum: 1 } } }
const SETS = { $group: { _id: '$_id', all: { $addToSet: '$n' } } }
const KEYS = { $group: { _id: '$_id' } }
const SORT = { $sort: { n: 1 } }
const COUNT = { $count: 'n' }
const facet = (n: number, ...branch: Stages): object => ({
  $facet: Object.fromEntries(Array.from({ length: n }, (_, k) => [`b${k}`, branch])),
})
const bucketed = (n: number, output: object): object => ({
  $bucketAuto: {
    groupBy: '$n',
    buckets: 3,
    output: Object.fromEntries(Array.from({ length: n }, (_, k) => [`x${k}`, output])),
  },
})
const lookup = (...pipeline: Stages): object => ({ $lookup: { from: 'people', pipeline, as: 'o' } })

test('stages that hold documents at the same time share a limit on memory', () => {
  const CASES: Readonly<Record<string, readonly [allowed: Stages, refused: Stages]>> = {
    'groups in a facet': [[facet(9, SUMS)], [facet(10, SUMS)]],
    'groups and sorts in a facet': [[facet(8, SUMS, SORT, SUMS)], [facet(9, SUMS, SORT, SUMS)]],
    'sets in a facet': [[facet(4, SETS)], [facet(5, SETS)]],
    'groups without accumulators': [[facet(3, KEYS, COUNT)], [facet(4, KEYS, COUNT)]],
    'windows in a facet': [
      [facet(4, { $setWindowFields: { output: { r: { $sum: 1 } } } })],
      [facet(5, { $setWindowFields: { output: { r: { $sum: 1 } } } })],
    ],
    'behind a group': [
      [SUMS, facet(8, SUMS)],
      [SUMS, facet(9, SUMS)],
    ],
    'around lookups': [
      [SUMS, lookup(SUMS, lookup(SUMS)), SUMS],
      [SUMS, lookup(SUMS, SORT, lookup(SUMS, SORT, lookup(SUMS, SORT))), SUMS],
    ],
    'a facet in a lookup': [[lookup(facet(8, SUMS))], [lookup(facet(9, SUMS))]],
    'a facet in a union': [
      [{ $unionWith: { coll: 'people', pipeline: [facet(7, SUMS)] } }, SUMS, SORT],
      [{ $unionWith: { coll: 'people', pipeline: [facet(9, SUMS)] } }, SUMS, SORT],
    ],
    'lists in buckets': [[bucketed(9, { $push: 1 })], [bucketed(10, { $push: 1 })]],
    'the largest values in buckets': [
      [bucketed(9, { $maxN: { n: 3, input: 1 } })],
      [bucketed(3, { $maxN: { n: 1_000, input: 1 } })],
    ],
    'buckets in a facet': [
      [facet(9, { $bucketAuto: { groupBy: '$n', buckets: 3 } })],
      [facet(10, { $bucket: { groupBy: '$n', boundaries: [1, 2] } })],
    ],
  }
  for (const [name, [allowed, refused]] of Object.entries(CASES)) {
    assert.ok(isAllowed(allowed), name)
    assert.ok(!isAllowed(refused), name)
  }
})

test('stages that run one after the other, counts and totals hold little memory', () => {
  assert.ok(isAllowed(Array.from({ length: 20 }, () => [SUMS, SORT]).flat()))
  assert.ok(isAllowed([facet(10, COUNT)]))
  assert.ok(isAllowed([facet(10, { $group: { _id: null, n: { $sum: '$n' }, mean: { $avg: '$n' } } })]))
})
