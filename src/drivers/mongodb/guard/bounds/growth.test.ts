import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../../../../test/support/mongo-catalog.ts'
import type { Verdict } from '../../../driver.ts'
import { unseal } from '../../../confined.ts'
import type { MongoQuery } from '../../confined-query.ts'
import { confine } from '../confine.ts'
import { readBody } from '../body/read-body.ts'

const PATHS = ['_id', 'a', 'b', 's', 'n', 'big']
const CATALOG = mongoCatalog({ people: PATHS }, { documents: 10, arrays: { big: 5_000 } })
const LIMITS = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 1000, maxCost: 1e6 }

const piped = (...pipeline: object[]): Verdict => confine(readBody({ collection: 'people', pipeline }), CATALOG, LIMITS)
const judged = (x: unknown): Verdict => piped({ $project: { x } })
const reduce = (step: unknown, input: unknown = '$a', initialValue: unknown = []): object => ({
  $reduce: { input, initialValue, in: step },
})
const range = (n: number): object => ({ $range: [0, n] })
const map = (input: unknown, body: unknown, as = 'this'): object => ({ $map: { input, as, in: body } })
const repeated = <T>(n: number, stage: T): T[] => Array.from({ length: n }, () => stage)
const outputs = (n: number, make: (k: number) => object): object =>
  Object.fromEntries(Array.from({ length: n }, (_, k) => [`x${k}`, make(k)]))
const conditions = (n: number, make: (k: number) => object): object[] =>
  Array.from({ length: n }, (_, k) => ({ n: make(k) }))
const chained = (n: number, first: unknown, wrap: (inner: unknown) => unknown): unknown =>
  n === 0 ? first : chained(n - 1, wrap(first), wrap)

const loop3 = (x: unknown): object => map(x, map(x, map(x, { $add: ['$n', '$$e'] }, 'g'), 'f'), 'e')

const GROWS: Readonly<Record<string, unknown>> = {
  concatArrays: reduce({ $concatArrays: ['$$value', '$$value'] }, '$a', [1]),
  concat: reduce({ $concat: ['$$value', '$$value'] }, range(60), 'x'),
  'an array that holds the value twice': reduce({ $concatArrays: [['$$value.0'], '$$value', '$$value'] }),
  setUnion: reduce(
    { $setUnion: ['$$value', { $map: { input: '$$value', in: { $add: ['$$this', 1] } } }] },
    range(60),
    [1],
  ),
  zip: reduce(
    { $concatArrays: [{ $arrayElemAt: [{ $zip: { inputs: ['$$value', '$$value'] } }, 0] }, '$$value'] },
    '$a',
    [1],
  ),
  let: reduce({ $let: { vars: { x: '$$value' }, in: { $concatArrays: ['$$x', '$$value'] } } }),
  'let in let': reduce(
    { $let: { vars: { x: '$$value' }, in: { $let: { vars: { y: '$$x' }, in: { $concat: ['$$y', '$$x'] } } } } },
    '$a',
    'x',
  ),
  map: reduce({ $concatArrays: ['$$value', map('$$value', '$$this')] }),
  'map over other things': reduce({
    $concatArrays: [
      ['x'],
      {
        $reduce: {
          input: map([1, 2, 3], '$$value', 'e'),
          initialValue: [],
          in: { $concatArrays: ['$$value', '$$this'] },
        },
      },
    ],
  }),
  mergeObjects: reduce({ $mergeObjects: ['$$value', { a: { $concat: ['$$value.a', '$$value.a'] } }] }, '$a', {
    a: 'x',
  }),
  'two fields that change places': reduce({ a: { $concat: ['$$value.b', '$$value.b'] }, b: '$$value.a' }, '$a', {
    a: 'x',
    b: 'y',
  }),
  switch: reduce(
    { $switch: { branches: [{ case: true, then: { $concat: ['$$value', '$$value'] } }], default: '' } },
    '$a',
    'x',
  ),
  cond: reduce({ $cond: [true, { $concatArrays: ['$$value', '$$value'] }, []] }),
  ifNull: reduce({ $ifNull: ['$a.none', { $concatArrays: ['$$value', '$$value'] }] }),
  filter: reduce({ $concatArrays: [{ $filter: { input: '$$value', cond: true } }, '$$value'] }),
  slice: reduce({ $concatArrays: [{ $slice: ['$$value', 1e9] }, { $reverseArray: '$$value' }] }),
  replaceAll: reduce({ $replaceAll: { input: '$$value', find: 'a', replacement: 'aa' } }, range(60), 'a'),
  'replaceAll of nothing': reduce({ $replaceAll: { input: '$$value', find: '', replacement: 'a' } }, range(60), 'a'),
  'objectToArray and back': reduce({ $concatArrays: [{ $objectToArray: { $arrayToObject: '$$value' } }, '$$value'] }),
  toString: reduce({ $concat: [{ $toString: '$$value' }, { $toUpper: '$$value' }] }, '$a', 'x'),
  getField: reduce(
    {
      $setField: {
        field: 'a',
        input: '$$value',
        value: { $concat: [{ $getField: { field: 'a', input: '$$value' } }, '$$value.a'] },
      },
    },
    '$a',
    { a: 'x' },
  ),
  'a reduce within': reduce(reduce({ $concatArrays: ['$$value', ['$$this']] }, '$$value', '$$value')),
  'its name is another': {
    $reduce: { input: '$a', initialValue: 'x', as: 'e', valueAs: 'v', in: { $concat: ['$$v', '$$v'] } },
  },
  'ranges in ranges': map(range(10_000), map(range(10_000), 1)),
  'three ranges': map(range(200), map(range(200), map(range(200), 1))),
  'a range of a range': map(range(5000), range(5000)),
  'a filter in a filter': { $filter: { input: range(5000), cond: { $filter: { input: range(5000), cond: true } } } },
  'reduce over ranges': reduce({ $add: ['$$value', { $size: range(10_000) }] }, range(10_000), 0),
  'a set of all elements so far': reduce({ $setUnion: ['$$value', ['$$this']] }, range(10_000)),
  'in a long list': map(range(10_000), { $in: ['$$this', range(10_000)] }),
  'a literal in loops': map(range(10_000), { $literal: 'x'.repeat(100_000) }),
  'a range too long': range(10_001),
  'a range computed too long, in loops': map({ $range: [0, '$n'] }, map({ $range: [0, '$n'] }, 1)),
  'a text in a reduce': reduce({ $concat: ['$$value', 'x'.repeat(10_000)] }, range(10_000), ''),
  'arrays of arrays': chained(6, 1, (inner) => map(range(100), inner)),
  'stored arrays seven deep': chained(7, 1, (inner) => map('$a', inner)),
  'split and find': map(
    { $split: ['x'.repeat(10_000), 'x'] },
    map({ $regexFindAll: { input: 'x'.repeat(10_000), regex: 'x' } }, 1),
  ),
  'all matches in a long text': { $regexFindAll: { input: { $concat: ['$s', 'x'.repeat(30_000)] }, regex: 'x' } },
  'tries in a long text': { $regexMatch: { input: 'x'.repeat(5_000), regex: 'x(?=.*[yz])' } },
  'tries upon tries': { $regexMatch: { input: { $concat: ['$s', 'x'.repeat(1_000)] }, regex: 'x*x*x*[yz]' } },
  'sets in a loop': map(range(1_000), { $setUnion: [range(1_000), ['$$this']] }),
  'sorts in a loop': map(range(1_000), { $sortArray: { input: range(1_000), sortBy: 1 } }),
  'texts split by texts': map(range(1_000), { $split: ['x'.repeat(10_000), `${'x'.repeat(1_000)}y`] }),
  'dates written at length': map(range(10_000), { $dateToString: { date: '$n', format: '%Y'.repeat(200) } }),
  'what a branch leaves': loop3({ $getField: { field: 'y', input: { $cond: ['$a', { y: range(1_000) }, null] } } }),
  'the first element of the result of a branch': loop3({ $first: { $ifNull: ['$a', [range(1_000)]] } }),
  'a field of the result of a $reduce': loop3({
    $getField: { field: 'a', input: reduce({ a: range(1_000) }, [1], {}) },
  }),
  'a list in a list': loop3({ $last: { $first: map([1], ['$$this', range(1_000)]) } }),
  'a $zip of many inputs': loop3({ $first: { $zip: { inputs: repeated(900, range(5)) } } }),
  'a field that is set by a computed name': loop3({
    $getField: { field: 'y', input: { $setField: { field: '$s', input: {}, value: range(1_000) } } },
  }),
  'lengths of written numbers': map(
    { $range: [0, { $strLenBytes: { $concat: repeated(40, { $toString: 1.23e-300 }) } }] },
    range(1_000),
  ),
  'a search for a trimmed text': map(range(2_000), {
    $replaceAll: {
      input: 'x'.repeat(1_000),
      find: { $trim: { input: `${' '.repeat(900)}x` } },
      replacement: 'y'.repeat(1_000),
    },
  }),
  'values of the query that are compared': {
    $let: {
      vars: { a: range(10_000) },
      in: {
        $let: { vars: { r: map(range(100), '$$a') }, in: map(range(2_000), { $eq: [{ $max: '$$r' }, '$s'] }) },
      },
    },
  },
  'a text whose letters may be none': loop3({
    $range: [
      0,
      {
        $strLenBytes: {
          $replaceAll: {
            input: '0123456789',
            find: { $toLower: { $concat: ['x'.repeat(1_000), '$s'] } },
            replacement: 'y'.repeat(900),
          },
        },
      },
    ],
  }),
  'a text that a reduce begins with': map(
    {
      $range: [
        0,
        { $strLenBytes: { $reduce: { input: [], initialValue: 'x'.repeat(9_000), in: { a: '$$value.a' } } } },
      ],
    },
    range(1_000),
  ),
  'decimals by variables': {
    $let: {
      vars: { r: { $toDecimal: '1E6000' }, s: { $toDecimal: '7E-6000' } },
      in: map(range(10_000), { $mod: [{ $add: ['$$this', '$$r'] }, '$$s'] }),
    },
  },
  'letters of a decimal': chained(4, 1, (inner) =>
    map({ $range: [0, { $strLenBytes: { $toLower: { $toDecimal: '$n' } } }] }, inner),
  ),
  'a year far away': map({ $range: [0, { $year: '$n' }] }, map(range(1_000), '$n')),
  'a text that is read as a number': map(range(10_000), { $toDouble: '0'.repeat(10_000) }),
  'remainders of decimals': map(range(10_000), { $mod: [{ $toDecimal: '1E6000' }, '$n'] }),
  'skewed literals': map(
    [Array.from({ length: 500 }, () => 1), [], []],
    map('$$this', map('$$this.0', map(range(1000), 1)), 'x'),
  ),
}

const STAGES: Readonly<Record<string, readonly object[]>> = {
  'a field of each element': [
    { $set: { t: map(range(5_000), { k: '$$this' }) } },
    { $set: { 't.x': { $size: map(range(5_000), { $add: [1, '$$this'] }) } } },
  ],
  'by each boundary': [
    { $bucket: { groupBy: { $size: map(range(5_000), '$s') }, boundaries: Array.from({ length: 500 }, (_, k) => k) } },
  ],
  'by a densified number': [
    { $set: { n: 1 } },
    { $densify: { field: 'n', range: { step: 9_000, bounds: [0, 9_001] } } },
    { $set: { x: loop3({ $range: [0, '$n'] }) } },
  ],
  'by a rounded number': [
    { $set: { n: 6_000 } },
    ...repeated(4, [
      { $set: { n: { $round: ['$n', -4] } } },
      { $set: { n: { $round: [{ $multiply: ['$n', 0.6] }, 0] } } },
    ]).flat(),
    { $set: { n: { $round: ['$n', -4] } } },
    { $set: { x: loop3({ $range: [0, '$n'] }) } },
  ],
  'fields of merged objects': [
    { $set: { r: range(300) } },
    { $unwind: '$r' },
    {
      $group: {
        _id: null,
        o: {
          $mergeObjects: {
            $switch: {
              branches: Array.from({ length: 300 }, (_, k) => ({ case: { $eq: ['$r', k] }, then: { [`f${k}`]: 1 } })),
              default: {},
            },
          },
        },
      },
    },
    { $set: { x: chained(3, 1, (inner) => map({ $objectToArray: '$o' }, inner, 'e')) } },
  ],
  'loops in the second of two windows': [
    { $setWindowFields: { output: { x: { $sum: 1 }, y: { $sum: { $size: map(range(100), '$s') } } } } },
  ],
  'loops in two windows that read ahead': [
    {
      $setWindowFields: {
        sortBy: { n: 1 },
        output: outputs(2, (k) => ({
          $sum: { $size: map(range(100), ['$s', k]) },
          window: { documents: ['current', 5_000] },
        })),
      },
    },
  ],
  'many whole windows': [{ $setWindowFields: { output: outputs(90, (k) => ({ $sum: { $add: ['$n', k] } })) } }],
  'a computed set beside another window': [
    { $setWindowFields: { output: { x: { $sum: 1 }, y: { $addToSet: { $toDecimal: '$s' } } } } },
  ],
  'many values that a filter excludes': [{ $match: { $and: conditions(600, (k) => ({ $ne: k })) } }],
  'many values that filters exclude by $not': [
    { $match: { $or: [{ $and: conditions(300, (k) => ({ $not: { $eq: k } })) }, { n: 1 }] } },
    { $match: { $and: conditions(300, (k) => ({ $not: { $in: [k] } })) } },
  ],
  'many short lists of values that a filter excludes': [
    { $match: { $and: conditions(200, (k) => ({ $nin: [k, -1, -2, -3, -4, -5, -6, -7] })) } },
  ],
  'many values of equal hashes to start with': [
    {
      $graphLookup: {
        from: 'people',
        startWith: map(range(5_000), { $toDecimal: '$s' }),
        connectFromField: 'a',
        connectToField: 'n',
        as: 'x',
      },
    },
  ],
  'sets of equal hashes': [{ $group: { _id: 1, all: { $setUnion: map(range(5_000), { $toDecimal: '$s' }) } } }],
  'in a sum over buckets': [
    { $bucketAuto: { groupBy: '$n', buckets: 2, output: { x: { $sum: { $size: map(range(100), '$s') } } } } },
  ],
  'a stored array for each element in a bucket': [
    { $bucketAuto: { groupBy: '$n', buckets: 2, output: { x: { $push: map('$a', '$s') } } } },
  ],
  'many sums over buckets': [
    { $bucketAuto: { groupBy: '$n', buckets: 2, output: outputs(300, (k) => ({ $sum: { $add: ['$n', k] } })) } },
  ],
  'a text of a lookup in buckets': [
    {
      $lookup: {
        from: 'people',
        let: { s: '$s' },
        pipeline: [{ $bucketAuto: { groupBy: '$n', buckets: 2, output: { x: { $push: { $concat: ['$$s', 'x'] } } } } }],
        as: 'x',
      },
    },
  ],
  'behind a sort of the stage': [
    { $setWindowFields: { sortBy: { n: 1 }, output: { x: { $sum: { $size: map(range(10_000), ['$s', '$n']) } } } } },
  ],
  'by a variable of a lookup': [
    {
      $lookup: {
        from: 'people',
        let: { r: range(10_000) },
        pipeline: [{ $set: { x: map('$$r', map('$$r', 1)) } }],
        as: 'x',
      },
    },
  ],
  'in a filter': [{ $match: { $expr: map(range(10_000), range(10_000)) } }],
  'in a sum': [{ $group: { _id: 1, n: { $sum: map(range(10_000), map(range(10_000), 1)) } } }],
  'in many sums': [
    {
      $group: {
        _id: 1,
        ...Object.fromEntries(Array.from({ length: 300 }, (_, k) => [`n${k}`, { $sum: map(range(10_000), 1) }])),
      },
    },
  ],
}

/** Queries whose values grow with stored values, so that the database measures the stored values. */
const MEASURED: Readonly<Record<string, readonly object[]>> = {
  'a text doubled': repeated(30, { $set: { s: { $concat: ['$s', '$s'] } } }),
  'an array doubled': repeated(30, { $set: { a: { $concatArrays: ['$a', '$a'] } } }),
  'an array that holds the array twice': repeated(30, { $set: { a: ['$a', '$a'] } }),
  'an object that holds the array twice': repeated(30, { $set: { a: { x: '$a', y: '$a' } } }),
  'the document in itself': repeated(30, { $set: { a: { x: '$$ROOT', y: '$$ROOT' } } }),
  'by $addFields and $project': Array.from({ length: 19 }, () => [
    { $addFields: { t: '$s' } },
    { $project: { s: { $concat: ['$s', '$t'] } } },
  ]).flat(),
  'by $replaceWith': repeated(30, { $replaceWith: { a: { $concatArrays: ['$a', '$a'] } } }),
  'by merging': repeated(30, { $replaceWith: { $mergeObjects: ['$$ROOT', { a: ['$a', '$a'] }] } }),
  'in a group': [
    { $group: { _id: 1, all: { $push: '$$ROOT' } } },
    { $set: { x: map('$all', map('$all', map('$all', map('$all', 1)))) } },
  ],
  'for each object': [
    { $set: { t: map(range(5_000), { k: '$$this' }) } },
    { $redact: { $cond: [{ $gt: [{ $size: map(range(5_000), '$s') }, 1] }, '$$DESCEND', '$$PRUNE'] } },
  ],
  'in a facet': [{ $facet: { x: repeated(30, { $set: { s: { $concat: ['$s', '$s'] } } }) } }],
  'in a lookup': [
    { $lookup: { from: 'people', pipeline: repeated(30, { $set: { s: { $concat: ['$s', '$s'] } } }), as: 'x' } },
  ],
  'the document in loops': [{ $set: { x: map(range(10_000), '$$ROOT') } }],
  'stored arrays five deep': [
    { $set: { x: map('$a', map('$a', map('$a', map('$a', map('$a', { $add: ['$$this', 1] }))))) } },
  ],
  'large stored arrays twice': [{ $set: { x: map('$big', map('$big', 1)) } }],
}

const STAYS: Readonly<Record<string, unknown>> = {
  'one after another': reduce({ $concatArrays: ['$$value', '$$this'] }),
  'a joined text': reduce(
    { $concat: ['$$value', { $cond: [{ $eq: ['$$value', ''] }, '', ', '] }, '$$this'] },
    '$a',
    '',
  ),
  'a set': reduce({ $setUnion: ['$$value', ['$$this']] }),
  'each once': reduce({
    $cond: [{ $in: ['$$this', '$$value'] }, '$$value', { $concatArrays: ['$$value', ['$$this']] }],
  }),
  'odd and even': reduce(
    { odd: { $concatArrays: ['$$value.odd', ['$$this']] }, even: { $concatArrays: ['$$value.even', ['$$this']] } },
    '$a',
    { odd: [], even: [] },
  ),
  'a list in an object': reduce(
    {
      $mergeObjects: [
        '$$value',
        { list: { $concatArrays: ['$$value.list', ['$$this']] }, n: { $add: ['$$value.n', 1] } },
      ],
    },
    '$a',
    { list: [], n: 0 },
  ),
  counted: reduce(
    { $mergeObjects: ['$$value', { $arrayToObject: [[{ k: '$$this.x', v: { $add: [1, 2] } }]] }] },
    '$a',
    {},
  ),
  'a sum with itself': reduce({ $add: ['$$value', '$$value', '$$this'] }, '$a', 1),
  'a last element': reduce(
    { $concatArrays: ['$$value', [{ $add: [{ $arrayElemAt: ['$$value', -1] }, '$$this'] }]] },
    '$a',
    [0],
  ),
  'letters taken out': reduce(
    { $replaceAll: { input: '$$value', find: '$$this', replacement: '' } },
    ['a', 'b', 'c'],
    '$s',
  ),
  'letters exchanged': reduce(
    { $replaceAll: { input: '$$value', find: '$$this', replacement: '_' } },
    ['.', ' ', '-'],
    '$s',
  ),
  'a few doublings': reduce({ $concat: ['$$value', '$$value'] }, range(5), 'x'),
  'a year of days': map(range(366), { day: '$$this', name: '$s' }),
  'a pass over a large array': map('$big', { x: '$$this.x', y: { $multiply: ['$$this.y', 2] } }),
  'a look into another array': map(
    '$a',
    { $filter: { input: '$b', as: 'o', cond: { $eq: ['$$o.id', '$$this.id'] } } },
    'this',
  ),
  'three deep': map('$a', map('$$this.b', map('$$this.c', { $add: ['$$this', 1] }))),
  'a range by a field': { $range: [0, '$n'] },
  'a range by a size': map({ $range: [0, { $size: '$a' }] }, { $arrayElemAt: ['$a', '$$this'] }),
  'replacements in each other': chained(9, '$s', (inner) => ({
    $replaceAll: { input: inner, find: 'a', replacement: 'b' },
  })),
  'an address found': { $regexFind: { input: '$s', regex: '([a-z0-9_.+-]+)@([a-z0-9_.+-]+)\\.([a-z0-9_.+-]+)' } },
  'addresses among others': {
    $filter: { input: '$a', cond: { $regexMatch: { input: '$$this', regex: '^\\S+@\\S+\\.\\S+$' } } },
  },
  reversed: reduce(
    { $concat: ['$$this', '$$value'] },
    map({ $range: [0, { $strLenCP: '$s' }] }, { $substrCP: ['$s', '$$this', 1] }),
    '',
  ),
}

test('a query whose values grow beyond the bounds is refused, with the bound, the size and what to write instead', () => {
  for (const [name, x] of Object.entries(GROWS)) assertLimit(name, judged(x))
  for (const [name, pipeline] of Object.entries(STAGES)) assertLimit(name, piped(...pipeline))
})

test('a filter that excludes values in a few conditions, or in long lists, is answered', () => {
  const numbers = Array.from({ length: 2_000 }, (_, k) => k)
  printedOf({ $match: { $and: conditions(9, () => ({ $nin: numbers })) } })
  printedOf({ $match: { $and: conditions(500, (k) => ({ $ne: k })) } })
  printedOf({ $match: { $nor: conditions(2_000, (k) => ({ $eq: k })) } })
})

test('windows with ordinary outputs are answered', () => {
  const windows = (output: object): string =>
    printedOf({ $setWindowFields: { partitionBy: '$b', sortBy: { n: 1 }, output } })
  windows({
    x: { $sum: '$n' },
    y: { $addToSet: '$s' },
    z: { $max: '$a' },
    r: { $rank: {} },
    p: { $shift: { output: '$s', by: 1 } },
  })
  windows({ x: { $addToSet: { $toDecimal: '$s' } }, r: { $rank: {} }, n: { $documentNumber: {} } })
  windows({ x: { $sum: { $size: map(range(1_000), '$s') } }, r: { $rank: {} } })
  windows(outputs(30, (k) => ({ $sum: { $add: ['$n', k] }, window: { documents: ['unbounded', 'current'] } })))
})

test('a comparison of sets is printed without operators that hash their elements', () => {
  for (const x of [{ $setEquals: ['$a', '$b', ['x']] }, { $setIsSubset: ['$a', { $setEquals: ['$a', '$b'] }] }])
    assert.doesNotMatch(printedOf({ $project: { x } }), /setEquals|setIsSubset/)
  const start = { from: 'people', startWith: '$big', connectFromField: 'a', connectToField: 'n', as: 'x' }
  assert.ok(measuredBy({ $graphLookup: start }).some(({ steps }) => products(steps).includes('|big |big')))
})

test('buckets with ordinary outputs are answered, and sets are made only after the buckets', () => {
  const buckets = (output: object): string => printedOf({ $bucketAuto: { groupBy: '$n', buckets: 5, output } })
  buckets({ n: { $sum: 1 }, total: { $sum: { $multiply: ['$n', 2] } }, mean: { $avg: '$n' }, all: { $push: '$$ROOT' } })
  const named = { $set: { o: { $arrayToObject: [[['$s', 1]]] } } }
  const merged = piped(named, { $bucketAuto: { groupBy: '$n', buckets: 5, output: { x: { $mergeObjects: '$o' } } } })
  assert.ok(merged.kind === 'denied' && merged.blocked.name === '$mergeObjects')
  buckets({ low: { $min: '$n' }, high: { $max: '$n' }, first: { $first: '$s' }, all: { $mergeObjects: '$a' } })
  assert.match(buckets({ x: { $addToSet: '$s' } }), /"x":{"\$push":"\$s"}.*{"\$set":{"x":{"\$setUnion":\["\$x"\]}}}/)
})

test('before each stage that makes or reads computed values, the query measures the stored values that make them grow', () => {
  const read = { $group: { _id: '$$ROOT' } }
  for (const [name, pipeline] of Object.entries(MEASURED))
    assert.match(printedOf(...pipeline, read), /"vt_steps".*"vt_bytes"/, name)
})

function assertLimit(name: string, verdict: Verdict): void {
  assert.ok(verdict.kind === 'denied', `${name}: ${verdict.kind === 'malformed' ? verdict.why : verdict.kind}`)
  assert.equal(verdict.blocked.kind, 'limit', `${name}: ${verdict.why}`)
  assert.match(verdict.why, /\d.*limit/, name)
  assert.ok(verdict.hint.length > 20, name)
}

test('a query whose values stay within the bounds is answered', () => {
  for (const [name, x] of Object.entries(STAYS)) {
    const verdict = judged(x)
    assert.equal(verdict.kind, 'confined', `${name}: ${verdict.kind === 'confined' ? '' : verdict.why}`)
  }
})

const printedOf = (...pipeline: object[]): string => {
  const verdict = piped(...pipeline)
  assert.ok(verdict.kind === 'confined', verdict.kind === 'confined' ? '' : verdict.why)
  return JSON.stringify(unseal<MongoQuery>(verdict.query, 'MONGODB').pipeline)
}

test('a range of computed length is printed in a form that fails beyond the bound', () => {
  const product = { $multiply: repeated(3, { $size: range(1_000) }) }
  for (const x of [
    { $range: [0, product] },
    { $range: [0, { $min: [-1e9, 5] }, -1] },
    { $range: [0, { $size: '$a' }] },
  ])
    assert.match(printedOf({ $project: { x } }), /"vt_to"/, JSON.stringify(x))
  for (const x of [range(1_000), { $range: [0, { $month: '$n' }] }, { $range: [0, { $mod: ['$n', 50] }] }])
    assert.doesNotMatch(printedOf({ $project: { x } }), /vt_to/, JSON.stringify(x))
  const long = { $range: [0, { $multiply: [{ $size: range(1_000) }, 10] }] }
  assertLimit('a product of ranges', judged(map(long, map(long, 1))))
})

type Json = Readonly<Record<string, unknown>>
const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null

/**
 * Returns the sizes that the printed query measures before its stages, in short: the length |a, the bytes #a, the
 * longest word ~a.
 */
function measuredBy(...pipeline: object[]): { steps: string; bytes: string }[] {
  const found: { steps: string; bytes: string }[] = []
  const walk = (value: unknown, around: Json): void => {
    if (!isJson(value)) return
    const vars = isJson(value['vars']) ? { ...around, ...value['vars'] } : around
    if ('vt_steps' in value)
      found.push({ steps: short(value['vt_steps'], around), bytes: short(value['vt_bytes'], around) })
    else Object.values(value).forEach((each) => walk(each, vars))
  }
  walk(JSON.parse(printedOf(...pipeline)), {})
  return found
}

function short(value: unknown, vars: Json): string {
  if (typeof value === 'string' && value.startsWith('$$vt_')) return measure(vars[value.slice(2)])
  if (!isJson(value)) return String(value)
  const [[name = '', operand] = []] = Object.entries(value)
  const all = Array.isArray(operand) ? operand.map((each) => short(each, vars)) : assert.fail(JSON.stringify(value))
  return name === '$multiply' ? all.join(' ') : all.join(' + ')
}

function measure(value: unknown): string {
  const text = JSON.stringify(value)
  const [, bytes] = /^\{"\$bsonSize":\{"v":"\$(.*)"\}\}$/.exec(text) ?? []
  if (bytes !== undefined) return `#${bytes}`
  const [, length] = /^\{"\$add":\[\{"\$size":\{"\$cond":\[\{"\$isArray":\["\$(.*?)"/.exec(text) ?? []
  if (length !== undefined) return `|${length}`
  const [, list] = /^\{"\$max":\[0,.*?"\$isArray":\["\$(.*?)"/.exec(text) ?? []
  if (list !== undefined) return `^${list}`
  const [, path = ''] = /"\$type":"\$(.*?)"/.exec(text) ?? []
  return text.startsWith('{"$size"') ? `pieces ${path}` : `~${path}`
}

/** Returns the products of sizes on which the steps of the query depend, if their coefficients are at least `least`. */
function products(amount: string, least = 0): string[] {
  const terms = amount.split(' + ').map((term) => /^([\d.e+]+) ?(.*)$/.exec(term) ?? [])
  return terms.flatMap(([, times = '', sizes = '']) => (sizes !== '' && Number(times) >= least ? [sizes] : [])).sort()
}

test('values that a stage reads often are measured directly before the stage', () => {
  const often = (least: number, ...pipeline: object[]): string[] =>
    measuredBy(...pipeline).flatMap(({ steps }) => products(steps, least))
  assert.deepEqual(often(10, { $project: { x: map(range(5_000), { $concat: ['$s', 'x'] }) } }), ['#s'])
  assert.deepEqual(often(1, { $project: { x: map(range(2_000), '$$ROOT') } }), ['#$ROOT'])
  assert.deepEqual(often(10, { $set: { t: '$s' } }, { $set: { x: map(range(100), { $toUpper: '$t' }) } }), ['#t'])
  assert.deepEqual(often(10, { $set: { x: map('$a', map(range(100), { $toUpper: '$$e' }), 'e') } }), ['#a', '|a'])
  const found = { $lookup: { from: 'people', localField: 'n', foreignField: 'n', as: 'o' } }
  const unwound = [found, { $unwind: '$o' }, { $set: { x: map(range(2_000), { $toUpper: '$o.s' }) } }]
  assert.ok(often(10, ...unwound).includes('#o.s'))
  assert.deepEqual(often(0, { $set: { x: map('$a', { $concat: ['$$this', '$s'] }) } }), ['#a', '#s |a', '|a'])
  assert.deepEqual(often(0, { $set: { x: map('$a', { $in: ['$$this', '$a'] }) } }), ['#a', '#a |a', '|a', '|a |a'])
  assert.ok(often(0, { $set: { x: { $sortArray: { input: map('$a', '$s'), sortBy: 1 } } } }).includes('#s |a'))
  for (const name of ['an address found'])
    assert.ok(
      measuredBy({ $project: { x: STAYS[name] } }).every(({ bytes }) => !bytes.includes(' ')),
      name,
    )
})

/** An expression that takes about 200 steps for each element of the enclosing loop. */
const WORK = { $size: map(range(50), { $add: ['$$k', 1] }, 'k') }
const longest = (...pipeline: object[]): string[] =>
  measuredBy(...pipeline).flatMap(({ steps }) => products(steps, 200))

test('a loop is measured in the stage where it runs, whatever collection or stage its array comes from', () => {
  const nested = (one: unknown, other: unknown): object => ({ $set: { x: map(one, map(other, WORK, 'f'), 'e') } })
  const inLookup = (x: object): object => ({ $lookup: { from: 'people', let: { t: '$a' }, as: 'o', pipeline: [x] } })
  assert.deepEqual(longest(inLookup(nested('$$t', '$b'))), ['|$t |b'])
  assert.deepEqual(longest(inLookup(nested({ $concatArrays: ['$$t', '$b'] }, '$s'))), ['|$t |s', '|b |s'])
  const firstAndLast = { $group: { _id: null, one: { $first: '$a' }, other: { $last: '$b' } } }
  assert.deepEqual(longest(firstAndLast, nested('$one', '$other')), ['|one |other'])
  const before = { $setWindowFields: { sortBy: { n: 1 }, output: { w: { $shift: { output: '$a', by: -1 } } } } }
  assert.deepEqual(longest(before, nested('$w', '$b')), ['|b |w'])
  const found = { $lookup: { from: 'people', localField: 'n', foreignField: 'n', as: 'o' } }
  const two = { $set: { one: { $first: '$o' }, other: { $last: '$o' } } }
  assert.deepEqual(longest(found, two, nested('$one.a', '$other.b')), ['|one.a |other.b'])
  const kept = { $set: { m: { $range: [0, { $size: '$b' }] } } }
  assert.deepEqual(longest(kept, nested('$m', '$a')), ['|a |m'])
  const pushed = { $group: { _id: 1, all: { $push: '$s' } } }
  assert.deepEqual(longest(pushed, nested('$all', '$all')), ['|all |all'])
})

test('a loop over parts of an element is measured by the bytes of all elements', () => {
  const steps = (x: unknown): string[] => longest({ $set: { x } })
  // Each element takes 200 steps and at least 5 bytes.
  const inBytes = (x: unknown): string[] => measuredBy({ $set: { x } }).flatMap((each) => products(each.steps, 40))
  assert.deepEqual(inBytes(map('$a', map('$$this.b', WORK, 'b'))), ['#a'])
  assert.deepEqual(inBytes(map('$a', map('$$e.x', map('$$f.y', WORK, 'g'), 'f'), 'e')), ['#a'])
  assert.deepEqual(steps(map('$a', map('$b', WORK, 'f'), 'e')), ['|a |b'])
  const two = measuredBy({ $set: { x: map('$a', map('$$e.x', map('$$e.y', WORK, 'g'), 'f'), 'e') } })
  assert.ok(two.some((each) => products(each.steps, 8).includes('#a ^a')))
  const copies = measuredBy({ $set: { x: map(map('$a', '$b'), map('$$e', WORK, 'f'), 'e') } })
  assert.ok(copies.some((each) => products(each.steps, 200).includes('|a |b')))
})

test('the query measures how many pairs of bytes a search or a regular expression may compare', () => {
  const steps = (x: unknown): string[] => measuredBy({ $set: { x } }).flatMap((each) => products(each.steps))
  const matches = (regex: string): object => ({ $regexMatch: { input: '$s', regex } })
  for (const regex of ['x.*y', '[^,]+;', '(?:a|b)*c.*']) assert.ok(steps(matches(regex)).includes('#s #s'), regex)
  for (const regex of ['\\w+@', '[a-z0-9_.+-]+@[a-z]+']) assert.deepEqual(steps(matches(regex)), ['#s', '#s ~s'], regex)
  for (const regex of ['^x.*y', 'abc', 'a\\.*b', 'a.{3}b']) assert.ok(!steps(matches(regex)).includes('#s #s'), regex)
  assert.ok(steps({ $split: ['$s', '$a'] }).includes('#a #s'))
})

test('a length check is printed only for loops over stored values that take long', () => {
  const isHeld = (...pipeline: object[]): boolean => printedOf(...pipeline).includes('16000000')
  const work = { $size: map(range(1_000), { $add: ['$$k', 1] }, 'k') }
  const some = { $size: map(range(50), { $add: ['$$k', 1] }, 'k') }
  const grown = (input: unknown, body: object, initialValue: unknown = []): object => ({
    $set: { x: { $reduce: { input, initialValue, in: body } } },
  })
  const size = { $range: [0, { $subtract: [{ $size: '$a' }, 1] }] }
  const pair = { $arrayToObject: [[[{ $toString: '$$this' }, 1]]] }
  const HELD: Readonly<Record<string, object>> = {
    'an array': { $set: { x: map('$a', work) } },
    'what replaced an array': { $set: { x: map(map('$a', 1), work) } },
    'a range by a size': { $set: { x: map(size, work) } },
    'a sorted array': { $set: { x: map({ $sortArray: { input: '$a', sortBy: 1 } }, work) } },
    'pieces of a text': { $set: { x: map({ $split: ['$s', ' '] }, work) } },
    'an array in an array': { $set: { x: map('$a', map('$$this.b', work, 'b')) } },
    'a field below an array': { $set: { 'big.y': some } },
    'objects of a document': { $redact: { $cond: [{ $eq: [some, 1] }, '$$PRUNE', '$$DESCEND'] } },
    'a list that grows': grown('$a', { $concatArrays: ['$$value', [1]] }),
    'a set that grows': grown(size, { $setUnion: ['$$value', [{ $add: ['$$this', 1] }]] }),
    'an object that grows': grown(size, { $mergeObjects: ['$$value', pair] }, {}),
    'a text that grows': grown('$a', { $concat: ['$$value', ', ', { $toString: '$$this' }] }, ''),
    'the first of many': { $set: { x: map({ $firstN: { n: 60_000, input: '$a' } }, work) } },
    'a long slice': { $set: { x: map({ $slice: ['$a', 60_000] }, work) } },
    'as many elements as a filter keeps': {
      $set: { x: map({ $filter: { input: '$a', cond: true, limit: 60_000 } }, work) },
    },
    'a field of the value that replaced an element': {
      $set: { x: { $let: { vars: { t: map('$a', { k: 1 }) }, in: map('$$t.k', work) } } },
    },
    'pieces of a text made of an array': {
      $set: { x: map({ $split: [reduce({ $concat: ['$$value', 'a'] }, '$a', ''), 'a'] }, work) },
    },
    'an object made of a range': {
      $set: { x: map({ $objectToArray: { $mergeObjects: [{ $arrayToObject: [map(size, pair)] }, { a: 1 }] } }, work) },
    },
    'tests of each element': { $match: { $nor: repeated(100, '').map((_, k) => ({ big: { $mod: [7, k] } })) } },
  }
  for (const [name, stage] of Object.entries(HELD)) assert.ok(isHeld(stage), name)
  const THROUGH: Readonly<Record<string, readonly [stage: object, path: string]>> = {
    'a filled field': [{ $fill: { sortBy: { n: 1 }, output: { a: { method: 'locf' } } } }, '$a'],
    'what fills a field': [{ $fill: { output: { n: { value: '$a' } } } }, '$n'],
    'the ends of buckets': [{ $bucketAuto: { groupBy: '$a', buckets: 2 } }, '$_id.max'],
    'a field of a union': [{ $unionWith: { coll: 'people', pipeline: [{ $project: { a: '$b' } }] } }, '$a'],
  }
  for (const [name, [stage, path]] of Object.entries(THROUGH))
    assert.ok(isHeld(stage, { $set: { x: map(path, work) } }), name)
  const FREE: Readonly<Record<string, object>> = {
    'little work': { $set: { x: { $sum: '$a.n' } } },
    'a list of parts': { $set: { x: { $slice: [{ $objectToArray: { a: '$a', n: '$n' } }, 1] } } },
    'a part of an array': { $set: { x: map({ $slice: ['$a', 10] }, work) } },
    'a constant': { $set: { x: map(range(10), work) } },
    'a few tests': { $match: { $or: [{ a: 1 }, { a: { $gt: 5 } }, { s: { $regex: '^x' } }] } },
  }
  for (const [name, stage] of Object.entries(FREE)) assert.ok(!isHeld(stage), name)
})

test('the guard bounds how much longer than a stored array a computed array can be', () => {
  const work = { $size: map(range(100), { $add: ['$$k', 1] }, 'k') }
  const lengthOf = (input: unknown): string[] => measuredBy({ $set: { x: map(input, work) } }).map((each) => each.steps)
  const stepsIn = (input: unknown, sizes: string): number =>
    Number(
      new RegExp(`(?:^|\\+ )([\\d.e+]+) ${sizes.replaceAll('|', '\\|')}(?: \\+|$)`).exec(lengthOf(input).join())?.[1],
    )
  const once = stepsIn('$a', '|a')
  assert.ok(once > 300 && once < 800, String(once))
  assert.ok(stepsIn({ $concatArrays: repeated(30, '$a') }, '|a') / once > 29)
  assert.ok(stepsIn({ $range: [0, { $divide: [{ $size: '$a' }, 0.01] }] }, '|a') / once > 99)
  assert.ok(stepsIn(reduce({ $concatArrays: ['$$value', '$$this'] }), '#a') / once > 1 / 6)
  assert.ok(stepsIn(reduce({ $concatArrays: ['$$value', '$a'] }), '|a |a') / once >= 1)
})

test('cancel points come directly before a slow stage, and keep all fields of a document with unknown fields', () => {
  const heavy = { $set: { x: map(range(8_000), { $concat: ['$s', 'x'.repeat(2_000)] }) } }
  const stages = (...pipeline: object[]): string[] =>
    (JSON.parse(printedOf(...pipeline)) as object[]).map((stage) => Object.keys(stage)[0] ?? '')
  const whole = {
    $group: {
      _id: { $size: map(range(8_000), { a: '$$ROOT.s', b: { $concat: ['$s', 'x'] } }) },
      r: { $first: '$$ROOT' },
    },
  }
  const printed = stages({ $set: { r: range(10) } }, { $unwind: '$r' }, whole)
  assert.equal(printed[printed.indexOf('$group') - 1], '$unset')
  const open = printedOf({ $replaceWith: '$a' }, heavy)
  assert.match(open, /\{"\$replaceWith":\{"vt_document":"\$\$ROOT","vt_look":/)
  assert.match(open, /\{"\$replaceWith":"\$vt_document"\}/)
})

test('if the steps of a pattern grow with a power of the text, the longest text of an array is measured', () => {
  const steps = (...pipeline: object[]): string[] => measuredBy(...pipeline).flatMap((each) => products(each.steps))
  const found = { $filter: { input: '$a', cond: { $regexMatch: { input: '$$this', regex: 'x.*y.*z' } } } }
  assert.ok(steps({ $set: { x: found } }).includes('#a ^a ^a'))
  assert.ok(steps({ $unwind: '$n' }, { $match: { big: { $regex: 'x.*y.*z' } } }).includes('#big ^big ^big'))
})

test('a slower stage gets more cancel points', () => {
  const looks = (...pipeline: object[]): number =>
    Number(/"\$max":\[(\d+),\{"\$toInt"/.exec(printedOf(...pipeline))?.[1] ?? 0)
  assert.equal(looks({ $set: { x: { $sum: '$a' } } }), 0)
  const [some, more] = [2_000, 8_000].map((n) =>
    looks({ $set: { x: map(range(n), { $concat: ['$s', '$$this', 'x'.repeat(2_000)] }) } }),
  )
  assert.ok(some !== undefined && more !== undefined && some > 1 && more > 3 * some && more < 128, `${some}, ${more}`)
  const both = printedOf(
    { $set: { vt_look: 1 } },
    { $set: { x: map(range(8_000), { $concat: ['$s', 'x'.repeat(2_000)] }) } },
  )
  assert.match(both, /"\$unset":\["vt_look_"\]/)
})

test('the arrays of all windows have at most 20,000 elements, because they are copied for each document', () => {
  const pushed = (n: number) =>
    printedOf({
      $setWindowFields: {
        sortBy: { _id: 1 },
        output: Object.fromEntries(Array.from({ length: n }, (_, k) => [`w${k}`, { $push: '$a' }])),
      },
    })
  assert.match(pushed(1), /"\$lte":\[\{"\$max":\[[^\]]*"\$w0"[^]*?,20000\]/)
  assert.match(pushed(4), /,5000\]/)
})

/** Returns the verdict on a group with n accumulators over an array $t and an object $o that the query has made. */
const accumulated = (n: number, by: object): Verdict => {
  const t = map(range(8_000), 'abcdefg')
  const outputs = Object.fromEntries(repeated(n, by).map((each, k) => [`q${k}`, each]))
  return piped(
    { $set: { t, o: { $let: { vars: { v: t }, in: { a: '$$v' } } } } },
    { $group: { _id: '$n', ...outputs } },
  )
}

test('the guard counts how often an accumulator reads each value', () => {
  const MANY: Readonly<Record<string, object>> = {
    minN: { $minN: { n: 1, input: '$t' } },
    'an unknown n': { $maxN: { n: { $size: '$a' }, input: '$o' } },
    firstN: { $firstN: { n: 1, input: '$t' } },
    max: { $max: '$o' },
    addToSet: { $addToSet: '$t' },
    median: { $median: { input: '$t', method: 'approximate' } },
    'top by an object': { $top: { sortBy: { o: 1 }, output: 1 } },
    'bottomN by an object': { $bottomN: { n: 2, sortBy: { o: 1 }, output: 1 } },
  }
  for (const [name, by] of Object.entries(MANY)) {
    assert.equal(accumulated(900, by).kind, 'denied', name)
    assert.equal(accumulated(2, by).kind, 'confined', name)
  }
})

test('the guard counts the work of comparing texts by a collation', () => {
  const [simple, collated] = [false, true].map((one) => {
    const catalog = mongoCatalog(
      { people: PATHS, others: PATHS },
      { documents: 10, arrays: { big: 50 }, types: { n: 'int' }, collated: one },
    )
    return (pipeline: object[]): string => {
      const verdict = confine(readBody({ collection: 'people', pipeline }), catalog, LIMITS)
      return verdict.kind === 'confined' ? unseal<MongoQuery>(verdict.query, 'MONGODB').printed() : verdict.kind
    }
  })
  assert.ok(simple && collated)
  const list = { $set: { t: map(range(3_000), 'abcdefgh'.repeat(5)) } }
  const NEAR: Readonly<Record<string, object[]>> = {
    $in: [list, { $set: { x: repeated(60, { $in: ['$s', '$t'] }) } }],
    $eq: [list, { $set: { x: map(range(200), { $eq: ['$t', '$t'] }) } }],
    $setUnion: [
      { $set: { t: map(range(3_000), 'abcdefgh'.repeat(20)) } },
      { $set: { x: { $setUnion: ['$t', '$t'] } } },
      { $set: { x: { $setUnion: ['$t', '$x'] } } },
    ],
    'an ignored text in a list': [list, { $set: { x: { $in: ['\u200b'.repeat(30_000), '$t'] } } }],
    'an ignored text among others': [{ $set: { x: { $max: ['\u200b'.repeat(20_000), ...repeated(900, '$s')] } } }],
    'marks in a filter': [{ $match: { s: { $lt: '\u0f71\u0f80'.repeat(1_000) } } }],
    'marks in an expression': [{ $set: { x: { $lt: ['\u0f71'.repeat(2_000), '\u0f71'.repeat(2_001)] } } }],
    'marks that the query takes from a text': [
      { $set: { m: { $substrCP: ['$s', 0, 1] } } },
      { $set: { x: { $lt: [reduce({ $concat: ['$$value', '$m'] }, range(1_000)), '$m'] } } },
    ],
    'boundaries of a bucket': [
      {
        $bucket: {
          groupBy: { $concat: ['\u200b'.repeat(20_000), '$s'] },
          boundaries: repeated(500, '').map((_, k) => `a${k}`),
        },
      },
    ],
    'a key among documents that mongod made': [
      { $set: { z: range(9) } },
      { $unwind: '$z' },
      { $group: { _id: repeated(30, { $concat: ['\u200b'.repeat(1_000), '$s'] }) } },
    ],
    'a sort for buckets': [{ $bucketAuto: { groupBy: { $concat: ['$s', 'x'] }, buckets: 5 } }],
    'a sort of a stored text for buckets': [{ $bucketAuto: { groupBy: '$s', buckets: 5 } }],
    $sortArray: [list, { $set: { x: repeated(3, { $sortArray: { input: '$t', sortBy: 1 } }) } }],
    'a key': [list, { $group: { _id: repeated(50, '$t') } }],
    'an accumulator': [
      list,
      { $group: { _id: null, ...Object.fromEntries(repeated(50, { $max: '$t' }).map((by, k) => [`m${k}`, by])) } },
    ],
    'a filter': [list, { $match: { $nor: repeated(200, '').map((_, k) => ({ t: `${k}${'x'.repeat(80)}` })) } }],
    'in a lookup': [
      {
        $lookup: { from: 'others', as: 'o', pipeline: [list, { $set: { x: map(range(200), { $eq: ['$t', '$t'] }) } }] },
      },
    ],
  }
  for (const [name, pipeline] of Object.entries(NEAR)) {
    assert.notEqual(simple(pipeline), 'denied', name)
    assert.equal(collated(pipeline), 'denied', name)
  }
  for (const stages of [
    [{ $bucketAuto: { groupBy: { $year: '$a' }, buckets: 5 } }],
    [{ $bucketAuto: { groupBy: '$a', buckets: 5, granularity: 'R5' } }],
    [{ $group: { _id: '$s', n: { $sum: '$a' } } }, { $bucketAuto: { groupBy: '$n', buckets: 5 } }],
    [{ $bucketAuto: { groupBy: '$n', buckets: 5 } }],
  ])
    assert.equal(collated(stages), simple(stages), JSON.stringify(stages))
  // A filter on stored values still runs before the projection.
  for (const filter of [
    { s: { $in: repeated(200, '').map((_, k) => `someone.${k}@example.com`) } },
    { big: { $in: ['a', 'b'] } },
  ])
    assert.match(
      collated([{ $match: filter }]),
      /^\{"(?:find"[^[]*"filter"|aggregate":"people","pipeline":\[\{"\$match")/,
    )
  // This filter reads its long text for each element, because the collation may ignore the text. So the work is
  // measured.
  assert.match(collated([{ $match: { big: { $gt: '\u200b'.repeat(30_000) } } }]), /^.{0,200}vt_look/)
  // Each rank compares the sort key again.
  const ranks = outputs(90, () => ({ $rank: {} }))
  assert.match(collated([{ $setWindowFields: { sortBy: { s: 1 }, output: ranks } }]), /"\$multiply":\[5\d\.\d*,/)
  assert.equal(
    collated([{ $set: { x: map(range(9_000), { $add: ['$$this', 1] }) } }]),
    simple([{ $set: { x: map(range(9_000), { $add: ['$$this', 1] }) } }]),
  )
})

test('the query measures the stage that closes the gaps in the arrays of a view, of a join, and of $graphLookup', () => {
  const kinds = new Map([['seen', 'view']])
  const catalog = (version: number[]) =>
    mongoCatalog({ people: PATHS, seen: ['_id', 'cards.brand'] }, { kinds, version })
  const printed = (collection: string, version: number[], ...pipeline: object[]): string => {
    const verdict = confine(readBody({ collection, pipeline }), catalog(version), LIMITS)
    assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
    return unseal<MongoQuery>(verdict.query, 'MONGODB').printed()
  }
  const graph = {
    $graphLookup: { from: 'seen', startWith: '$n', connectFromField: '_id', connectToField: '_id', as: 'g' },
  }
  const CASES: readonly string[] = [
    printed('seen', [6, 0, 5], { $project: { _id: 1 } }),
    printed('people', [6, 0, 5], { $lookup: { from: 'seen', pipeline: [], as: 'o' } }),
    printed('people', [6, 0, 5], { $unionWith: 'seen' }),
    printed('people', [6, 0, 5], graph),
    printed('people', [5, 0, 0], graph),
  ]
  for (const text of CASES) assert.match(text, /"\$unset":\["vt_look"\]\},\{"\$set":\{"(?:cards|g)":\{"\$cond"/)
})

test('the guard counts the documents that $unwind makes of a computed list', () => {
  const usual = (x: unknown): number => {
    const verdict = piped({ $set: { x } }, { $unwind: '$x' })
    assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
    return Math.max(...unseal<MongoQuery>(verdict.query, 'MONGODB').unwinds.values())
  }
  const nested = reduce({ $concatArrays: ['$$value', '$$this'] }, map(range(90), range(90)))
  assert.equal(usual(nested), 8_100)
  assert.equal(usual(reduce({ $concatArrays: ['$$value', ['$$this']] }, range(500))), 500)
  assert.ok(usual({ $split: ['a,'.repeat(3_000), ','] }) >= 3_001)
  assert.equal(usual({ $getField: { field: { $concat: ['a', ''] }, input: { a: range(9_000) } } }), 9_000)
  assert.ok(usual(reduce({ $concatArrays: ['$$value', ['$$this']] }, '$big')) <= 5_001)
  assert.equal(usual({ $split: ['$s', ','] }), 20)
})

test('the guard counts the documents that $unwind makes of the array of a window, which each document has', () => {
  const usual = (by: object): number => {
    const verdict = piped({ $setWindowFields: { sortBy: { n: 1 }, output: { x: by } } }, { $unwind: '$x' })
    assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
    return Math.max(...unseal<MongoQuery>(verdict.query, 'MONGODB').unwinds.values())
  }
  assert.equal(usual({ $push: '$n', window: { documents: [-60, 'current'] } }), 61)
  assert.equal(usual({ $push: '$n', window: { documents: ['unbounded', 'current'] } }), 20_000)
  assert.equal(usual({ $minN: { input: '$n', n: 3 } }), 3)
  assert.equal(usual({ $concatArrays: '$big', window: { documents: [-1, 1] } }), 15_000)
})

test('a filter on so many paths that its steps have no bound is refused, also before the projection', () => {
  const filtered = (paths: number): Verdict => {
    const $or = Array.from({ length: paths }, (_, k) => ({ [`a.p${k}`]: { $regex: 'x.*y.*z' }, 'a.b': 1 }))
    return confine(readBody({ collection: 'people', filter: { $or } }), CATALOG, LIMITS)
  }
  assert.equal(filtered(100).kind, 'confined')
  const verdict = filtered(400)
  assert.ok(verdict.kind === 'denied', 'the query was allowed')
  assert.match(verdict.why, /countless/)
})
