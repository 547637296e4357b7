// While mongod works on all outputs of $bucketAuto, and on most outputs of $setWindowFields that read the whole
// partition, no timeout ends its work. Tests the limits on these outputs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../support/mongo-catalog.ts'
import { judge } from './ask.ts'
import { EXPOSED } from './fixture.ts'

const CATALOG = mongoCatalog(EXPOSED, {
  version: [6, 0, 5],
  arrays: { tags: 5 },
  types: { _id: 'objectId', name: 'string', land: 'string', score: 'double', since: 'date', 'home.city': 'string' },
})

const MOVING = { documents: [-600_000, 600_000] }
const named = (n: number, output: object): object =>
  Object.fromEntries(Array.from({ length: n }, (_, k) => [`m${k}`, output]))
const people = (...pipeline: object[]): object => ({ collection: 'people', pipeline })
const buckets = (output: object): object => people({ $bucketAuto: { groupBy: '$score', buckets: 4, output } })
const windows = (output: object): object =>
  people({ $setWindowFields: { partitionBy: '$land', sortBy: { score: 1 }, output } })

const top = { $top: { sortBy: { score: -1 }, output: '$score' } }
const topN = { $topN: { n: 3, sortBy: { score: -1 }, output: '$score' } }
const bottom = { $bottom: { sortBy: { score: -1, since: 1 }, output: '$score' } }

const REFUSED: Readonly<Record<string, object>> = {
  'many counts in buckets': buckets(named(900, { $count: {} })),
  'many counts beside a sum': windows({ a: { $sum: '$score' }, ...named(900, { $count: {} }) }),
  'many counts of windows that move': windows(named(900, { $count: {}, window: MOVING })),
  'many sort keys in buckets': buckets(named(20, top)),
  'many lists by a sort key in buckets': buckets(named(9, topN)),
  'many sort keys of a whole partition': windows(named(20, top)),
  'many lists by a sort key of a whole partition': windows(named(20, topN)),
  'many sort keys of windows that move': windows(named(8, { ...bottom, window: MOVING })),
  'many areas': windows(named(40, { $integral: { input: '$score' } })),
}

/** The query chooses these values, so many of them may have the same hash. */
const CHOSEN: Readonly<Record<string, object>> = {
  decimals: { $add: ['$score', { $numberDecimal: '1' }] },
  'parts of a constant': { $substrCP: ['abcdefghijklmnop', '$score', 2] },
  'constants chosen by a condition': { $concat: [{ $cond: [{ $gt: ['$score', 1] }, 'a', 'b'] }, '$name'] },
  'constants for missing dates': { $concat: [{ $dateToString: { date: '$since', format: 'a', onNull: 'b' } }, '$name'] },
  'texts of computed numbers': { $toString: { $add: ['$score', { $numberDecimal: '1' }] } },
}

for (const [name, element] of Object.entries(CHOSEN))
  test(`a set of values that the query chooses is refused beside another output: ${name}`, () => {
    const verdict = judge(CATALOG, windows({ n: { $sum: 1 }, s: { $addToSet: element } }))
    assert.ok('kind' in verdict, 'the query was allowed')
    assert.match(verdict.why, /Put the set of computed values into a separate \$setWindowFields/)
  })

for (const [name, body] of Object.entries(REFUSED))
  test(`outputs that no timeout ends are refused: ${name}`, () => {
    const verdict = judge(CATALOG, body)
    assert.ok('kind' in verdict, 'the query was allowed')
    assert.match(verdict.why, /^the outputs of .* steps for one document, and no timeout ends this work/)
  })

const ALLOWED: Readonly<Record<string, object>> = {
  'the usual numbers of a bucket': buckets({ n: { $count: {} }, sum: { $sum: '$score' }, avg: { $avg: '$score' }, min: { $min: '$since' }, max: { $max: '$since' }, best: top, worst: bottom }),
  'the usual numbers of a partition': windows({ n: { $count: {} }, sum: { $sum: '$score' }, avg: { $avg: '$score' }, min: { $min: '$since' }, max: { $max: '$since' }, three: topN, best: top, worst: bottom }),
  'numbers of windows that move': windows({ n: { $count: {}, window: MOVING }, avg: { $avg: '$score', window: MOVING }, best: { ...top, window: MOVING }, worst: { ...bottom, window: MOVING } }),
  'a set of stored texts in lower case': windows({ n: { $sum: 1 }, cities: { $addToSet: { $toLower: '$home.city' } } }),
  'a set of texts in upper case from a $set': people({ $set: { c: { $toUpper: { $trim: { input: '$name' } } } } }, { $setWindowFields: { partitionBy: '$land', output: { n: { $sum: 1 }, c: { $addToSet: '$c' } } } }),
  'a set of joined texts': windows({ n: { $sum: 1 }, names: { $addToSet: { $concat: ['$name', ' ', '$land'] } } }),
  'a set of days': windows({ n: { $sum: 1 }, days: { $addToSet: { $dateTrunc: { date: '$since', unit: 'day' } } } }),
  'a set of computed numbers in a separate window stage': people({ $setWindowFields: { partitionBy: '$land', output: { n: { $sum: 1 } } } }, { $setWindowFields: { partitionBy: '$land', output: { s: { $addToSet: { $add: ['$score', { $numberDecimal: '1' }] } } } } }),
  'thirty sums': windows(named(30, { $sum: '$score' })),
}

for (const [name, body] of Object.entries(ALLOWED))
  test(`outputs are allowed: ${name}`, () => {
    const verdict = judge(CATALOG, body)
    assert.ok(!('kind' in verdict), 'kind' in verdict ? verdict.why : '')
  })
