// mongod's planner takes long for some filters, and no timeout ends its work. Tests the limits on these filters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../support/mongo-catalog.ts'
import { judge } from './ask.ts'
import { EXPOSED } from './fixture.ts'

const SAMPLED = mongoCatalog(EXPOSED, {
  version: [6, 0, 5],
  arrays: { tags: 5 },
  types: { name: 'string', land: 'string', score: 'double' },
})
/** A catalog without a sample of values. With it, a long filter runs after the projection, and is confined twice. */
const UNSAMPLED = mongoCatalog(EXPOSED, { version: [6, 0, 5] })

const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))
const all = (n: number, make: (k: number) => object): object => ({
  collection: 'people',
  filter: { $and: many(n, make) },
})
const range = (k: number): object => ({ name: { $gt: `a${k}`, $lt: `b${k}` } })
const either = (n: number, make: (k: number) => object): object => ({ collection: 'people', filter: { $or: many(n, make) } })
const computed = (expression: object): object => ({ collection: 'people', filter: { $expr: expression } })
const is = (k: number): object => ({ $eq: ['$name', `a${k}`] })
const alone = (n: number): object => ({ $match: { $expr: { $or: many(n, is) } } })
const staged = (...pipeline: object[]): object => ({ collection: 'people', pipeline })
const key = (k: number): object => ({ name: `a${k}`, land: `b${k}` })

const choice = (k: number): object => ({ $or: [{ score: k }, { land: `x${k}` }, { name: `y${k}` }] })
const lists = (n: number, prefix = 'a'): string[][] => many(n, (k) => [prefix + k])

/** An $or whose branches an index on land and another field may answer. */
const dated = (n: number): { $or: object[] } => ({ $or: many(n, (k) => ({ land: `x${k}`, since: { $gt: k } })) })
const filtered = (filter: object): object => ({ collection: 'people', filter })
const ids = (n: number): object => ({ name: { $in: many(n, String) } })
const chosen = (k: number): object => ({ $expr: { $or: [{ $eq: ['$score', k] }, { $eq: ['$land', `x${k}`] }, { $eq: ['$name', `y${k}`] }] } })
const excluded = (n: number): object[] => many(n, (k) => ({ name: { $ne: k } }))
const joined = (first: object, branches: number): object =>
  staged({ $limit: 1 }, { $set: { a: first } }, { $lookup: { from: 'people', localField: 'a', foreignField: 'name', pipeline: [{ $match: dated(branches) }], as: 'o' } })

/** A constant of 1 MB that mongod computes before it plans the filter. */
const LONG = { $replaceAll: { input: 'x'.repeat(1_000), find: 'x', replacement: 'y'.repeat(1_000) } }
const looked = (v: unknown, ...conditions: object[]): object =>
  staged(
    { $limit: 1 },
    { $lookup: { from: 'people', let: { v }, pipeline: [{ $match: { $and: [{ $expr: { $eq: ['$name', '$$v'] } }, ...conditions] } }], as: 'o' } },
  )

/** mongod drops these conditions, because they are always true. */
const DROPPED: Readonly<Record<string, object>> = {
  'an empty $and': { $and: [{}] },
  'an empty $or': { $or: [{}] },
  'a branch of an $or that is true': { $or: [{ land: 'BE' }, {}] },
  'an empty $nin': { land: { $nin: [] } },
  'a $not of an empty $in': { land: { $not: { $in: [] } } },
  'a $not of an empty $all': { land: { $not: { $all: [] } } },
  'a $not of an $elemMatch': { tags: { $not: { $elemMatch: { $in: [] } } } },
  'a $nor of an empty $in': { $nor: [{ land: { $in: [] } }] },
  'a $nor of an $expr': { $nor: [{ $expr: false }] },
  'an $expr that is true': { $expr: true },
  'a comparison with MinKey': { land: { $gte: { $minKey: 1 } } },
  'a $not of a comparison with MinKey': { land: { $not: { $lt: { $minKey: 1 } } } },
}

function besideDropped(): Record<string, object> {
  const beside = Object.entries(DROPPED).flatMap(([name, dropped]): [string, object][] => [
    [`many arrays beside ${name}`, either(600, (k) => ({ name: [`a${k}`], ...dropped }))],
    [`many $and with ${name}`, either(600, (k) => ({ $and: [{ name: [`a${k}`] }, dropped] }))],
  ])
  return Object.fromEntries([
    ...beside,
    ['the same test twice', either(600, (k) => ({ $and: [{ name: [`a${k}`] }, { name: [`a${k}`] }] }))],
    ['one test in two forms', either(600, (k) => ({ name: { $eq: [`a${k}`], $all: [[`a${k}`]] } }))],
  ])
}

const REFUSED: Readonly<Record<string, object>> = {
  'many $nor of one condition': all(600, (k) => ({ $nor: [{ name: k }] })),
  'many $nor of a list': all(200, (k) => ({ $nor: [{ name: { $in: many(10, (j) => 10 * k + j) } }] })),
  'many $nor of an $or': all(600, (k) => ({ $nor: [{ $or: [{ name: k }] }] })),
  'many $nor of a $nor': all(600, (k) => ({ $nor: [{ $nor: [{ $nor: [{ name: k }] }] }] })),
  'many $not of $all': all(600, (k) => ({ name: { $not: { $all: [k] } } })),
  'many $not of $elemMatch': all(600, (k) => ({ name: { $not: { $elemMatch: { $eq: k } } } })),
  'many $nor in $elemMatch': all(600, (k) => ({ cards: { $elemMatch: { $nor: [{ brand: k }] } } })),
  'many ranges in many $or': all(40, (k) => ({ $or: many(70, (j) => range(70 * k + j)) })),
  'many keys in two $or': all(2, () => ({ $or: many(1_300, key) })),
  'many equalities in an $expr': computed({ $or: many(600, is) }),
  'many $expr in an $or': either(600, (k) => ({ $expr: is(k) })),
  'many $or of equalities in an $expr': computed({ $and: many(300, (k) => ({ $or: [is(2 * k), is(2 * k + 1)] })) }),
  'many $or in many $expr': all(60, (k) => ({ $expr: { $or: many(10, (j) => is(10 * k + j)) } })),
  'equalities that constants choose': computed({ $or: many(600, (k) => ({ $cond: [true, is(k), false] })) }),
  'equalities behind a $let': computed({ $let: { vars: { v: 1 }, in: { $or: many(600, is) } } }),
  'equalities in a $switch': computed({ $switch: { branches: [{ case: true, then: { $or: many(600, is) } }] } }),
  'many lists in an $expr': computed({ $or: many(20, (k) => ({ $in: ['$name', many(900, (j) => `a${k}_${j}`)] })) }),
  'equalities after a projection': staged({ $project: { name: 1 } }, alone(600)),
  'equalities after a join': staged({ $lookup: { from: 'orders', localField: '_id', foreignField: '_id', as: 'o' } }, alone(600)),
  'equalities in a join': staged({ $lookup: { from: 'people', pipeline: [alone(600)], as: 'o' } }),
  'equalities in a union': staged({ $unionWith: { coll: 'people', pipeline: [alone(600)] } }),
  'equalities of outer values': staged({
    $lookup: { from: 'people', let: { v: '$name' }, pipeline: [{ $match: { $expr: { $or: many(600, (k) => ({ $eq: ['$name', { $concat: ['$$v', `${k}`] }] })) } } }], as: 'o' },
  }),
  'equalities in two stages': staged(alone(300), { $limit: 5 }, alone(300)),
  'equalities of two paths': either(600, (k) => (k === 0 ? { land: 'BE' } : { name: `a${k}` })),
  'many short lists in an $or': either(600, (k) => ({ name: { $in: [`a${k}`, `b${k}`] } })),
  'many arrays in an $or': either(600, (k) => ({ name: [k] })),
  'many $elemMatch in an $or': either(600, (k) => ({ tags: { $elemMatch: { $eq: k } } })),
  'short $or in an $or': either(600, (k) => ({ $or: [{ name: `a${k}` }, { name: `b${k}` }] })),
  'an $and of one condition in an $or': either(600, (k) => ({ $and: [{ $and: [{ name: [k] }] }] })),
  ...besideDropped(),
  'many arrays in an $or beside other $or': all(4, (k) => (k === 0 ? { $or: many(500, (n) => ({ name: [`a${n}`] })) } : choice(k))),
  'a list of arrays': { collection: 'people', filter: { name: { $in: lists(600) } } },
  'a list of arrays beside an $or': all(2, (k) => (k === 0 ? { name: { $in: lists(250) } } : choice(k))),
  'a list of arrays beside several $or': all(3, (k) => (k === 0 ? { name: { $in: lists(100) } } : choice(k))),
  'lists of arrays': all(3, (k) => ({ name: { $in: lists(200, `${k}_`) } })),
  'a list of arrays in a $not': { collection: 'people', filter: { tags: { $not: { $elemMatch: { $in: lists(600) } } } } },
  'many different paths': all(600, (k) => ({ [`home.geo.a${k}`]: k })),
  'many different paths in an $elemMatch': { collection: 'people', filter: { 'home.geo': { $elemMatch: { $and: many(600, (k) => ({ [`a${k}`]: k })) } } } },
  'many different paths in two stages': staged(...many(3, (j) => ({ $match: Object.fromEntries(many(200, (k) => [`home.geo.a${j}_${k}`, k])) }))),
  'a list beside an $or': filtered({ ...ids(2_000), ...dated(300) }),
  'a list beside an $or in another stage': staged({ $match: ids(2_000) }, { $match: dated(300) }),
  'a list beside an $or in an $or': filtered({ $or: [{ score: 1 }, { ...ids(2_000), ...dated(300) }] }),
  'a list beside an $or in a join': staged({ $lookup: { from: 'people', pipeline: [{ $match: { ...ids(2_000), ...dated(300) } }], as: 'o' } }),
  'a list beside nested $or': filtered({ ...ids(2_000), $or: many(20, () => dated(20)) }),
  'a list beside an $or in an $expr': filtered({ ...ids(2_000), $expr: { $or: many(100, (k) => ({ $and: [is(k), { $eq: ['$land', k] }] })) } }),
  'a list beside many $or': filtered({ ...ids(2_000), $and: many(5, choice) }),
  'short lists beside a long $or': filtered({ ...ids(50), ...dated(2_000) }),
  'many conditions beside a long $or': filtered({ $and: [...many(8, (k) => ({ name: { $gt: `a${k}` } })), dated(1_000)] }),
  'a long text beside an $or': filtered({ name: 'a'.repeat(100_000), ...dated(200) }),
  'a list of arrays beside a long $or': filtered({ name: { $in: lists(60) }, ...dated(100) }),
  'a list of arrays beside an $or in an $expr': filtered({ $and: [{ name: { $in: lists(150) } }, chosen(1)] }),
  'a list of arrays beside many $or in $expr': filtered({ $and: [{ name: { $in: lists(60) } }, ...many(3, chosen)] }),
  'excluded values beside many $or': filtered({ $and: [...excluded(200), ...many(3, choice)] }),
  'excluded values beside a long $or': filtered({ $and: [...excluded(100), dated(100)] }),
  'excluded values in two stages': staged({ $match: { $and: excluded(300) } }, { $match: { $and: excluded(300) } }),
  'excluded lists beside many $or': filtered({ $and: [...many(10, (k) => ({ name: { $nin: many(1_600, (j) => 2_000 * k + j) } })), ...many(6, choice)] }),
  'many values that are looked up beside an $or': joined({ $range: [0, 9_900] }, 50),
  'a long variable beside an $or in a join': looked('a'.repeat(150_000), dated(300)),
  'a computed long variable beside an $or in a join': looked({ $concat: [LONG, '$name'] }, dated(100)),
  'a variable that is used often beside an $or in a join': looked(LONG, ...many(20, (k) => ({ $expr: { $ne: ['$land', '$$v'], $gt: [k, 1] } })), dated(10)),
  'a long constant that mongod computes beside an $or': filtered({ $and: [{ $expr: { $eq: ['$name', LONG] } }, dated(100)] }),
  'an object with a long name beside an $or': filtered({ $and: [{ name: { ['k'.repeat(100_000)]: 1 } }, dated(200)] }),
  'an object with many names beside an $or': filtered({ $and: [{ name: Object.fromEntries(many(1_000, (k) => [`${'k'.repeat(100)}${k}`, 1])) }, dated(200)] }),
  'an $all beside an $or': filtered({ $and: [{ name: { $all: many(88, String) } }, dated(300)] }),
  'a list in a union, and an $or after it': staged({ $unionWith: { coll: 'people', pipeline: [{ $match: ids(2_000) }] } }, { $match: dated(300) }),
  'a list in a join, and an $or after it': staged(
    { $lookup: { from: 'people', let: { v: '$name' }, pipeline: [{ $match: ids(2_000) }], as: 'o' } },
    { $unwind: '$o' },
    { $match: { $or: many(300, (k) => ({ 'o.land': `x${k}`, 'o.since': { $gt: k } })) } },
  ),
  'many short $or': all(1_400, (k) => ({ $or: [{ name: { $gt: k } }, { land: { $gt: k } }, { score: { $lt: k } }, { since: k }] })),
}

for (const [name, body] of Object.entries(REFUSED))
  for (const catalog of [SAMPLED, UNSAMPLED])
    test(`a filter that mongod would plan for long is refused: ${name}, ${catalog === SAMPLED ? 'with' : 'without'} a sample`, () => {
      const verdict = judge(catalog, body)
      assert.ok('kind' in verdict, 'the query was allowed')
      assert.match(verdict.why, /before it can begin|with more than one \$or|different paths|steps for one document|may grow/)
    })

test('a $graphLookup over many arrays is refused if its filter would be planned for long', () => {
  const search = { from: 'people', startWith: '$boss', connectFromField: 'boss', connectToField: '_id', as: 'o' }
  const restrictSearchWithMatch = { $or: many(600, (k) => ({ name: [k] })) }
  const verdict = judge(SAMPLED, staged({ $graphLookup: { ...search, restrictSearchWithMatch } }))
  assert.ok('kind' in verdict, 'the query was allowed')
  assert.match(verdict.why, /before it can begin/)
})

/** mongod rewrites an $in on a measurement or on the time to an $or. */
const SERIES = mongoCatalog(EXPOSED, {
  version: [6, 0, 5],
  kinds: new Map([['gauge', 'time-series collection']]),
  arrays: {},
  types: { value: 'double' },
})
const measured = (...$and: object[]): object => ({ collection: 'gauge', filter: { $and } })
const values = (path: string, n: number): object => ({ [path]: { $in: many(n, String) } })

test('the $in of a time series is refused if mongod would plan it for long', () => {
  const refused = {
    'beside many conditions': measured(values('value', 300), ...many(500, (k) => ({ value: { $gt: k } }))),
    'on the time, beside many conditions': measured(values('at', 300), ...many(500, (k) => ({ value: { $gt: k } }))),
    'as an $or of equalities': measured({ $or: many(300, (value) => ({ value })) }, ...many(500, (k) => ({ value: { $gt: k } }))),
    'of a measurement that is renamed': {
      collection: 'gauge',
      pipeline: [{ $project: { meta: '$value', _id: 0 } }, { $match: { $and: [values('meta', 300), ...many(500, (k) => ({ meta: { $gt: k } }))] } }],
    },
    'after a union': staged(
      { $project: { value: '$score', _id: 0 } },
      { $unionWith: { coll: 'gauge', pipeline: [{ $project: { value: 1, _id: 0 } }] } },
      { $match: { $and: [values('value', 300), ...many(500, (k) => ({ value: { $gt: k } }))] } },
    ),
    'in an $expr': measured({ $expr: { $in: ['$value', many(300, Number)] } }, ...many(500, (k) => ({ value: { $gt: k } }))),
    'of a computed constant in an $expr': measured({ $expr: { $in: ['$value', { $range: [0, 5_000] }] } }, ...many(300, (k) => ({ value: { $gt: k } }))),
    'of dates, many times': measured(...many(500, (k) => ({ at: { $in: [k, k + 1] } }))),
    'that a $graphLookup makes of a list': staged(
      { $limit: 1 },
      {
        $graphLookup: {
          ...{ from: 'gauge', startWith: { $range: [0, 3_000] }, connectFromField: 'value', connectToField: 'value', as: 'o' },
          restrictSearchWithMatch: { $and: many(300, (k) => ({ value: { $gt: k } })) },
        },
      },
    ),
    'in a $graphLookup': staged({
      $graphLookup: {
        ...{ from: 'gauge', startWith: 1, connectFromField: 'value', connectToField: 'value', as: 'o' },
        restrictSearchWithMatch: { $and: [values('value', 300), ...many(500, (k) => ({ value: { $gt: k } }))] },
      },
    }),
    'that a $lookup makes of a list': staged(
      { $limit: 1 },
      { $set: { a: { $range: [0, 5_000] } } },
      { $lookup: { from: 'gauge', localField: 'a', foreignField: 'value', pipeline: [{ $match: { $and: many(300, (k) => ({ value: { $gt: k } })) } }], as: 'o' } },
    ),
    'many lists': measured(...many(9, () => values('value', 2_000))),
    'in a union': staged({ $unionWith: { coll: 'gauge', pipeline: [{ $match: { $and: many(9, () => values('value', 2_000)) } }] } }),
  }
  for (const [name, body] of Object.entries(refused)) {
    const verdict = judge(SERIES, body)
    assert.ok('kind' in verdict, name)
    assert.match(verdict.why, /before it can begin|with more than one \$or|steps for one document|may grow/, name)
  }
})

test('a time series may be filtered by a long list of measurements or devices', () => {
  const allowed = [
    measured(values('value', 2_000), { at: { $gt: { $date: '2026-01-01T00:00:00Z' } } }),
    measured(values('meta.device', 200), values('value', 20), { at: { $gt: { $date: '2026-01-01T00:00:00Z' } } }),
    measured(values('meta.device', 300), values('value', 3), { at: { $gt: { $date: '2026-01-01T00:00:00Z' } } }),
  ]
  for (const body of allowed) {
    const verdict = judge(SERIES, body)
    assert.ok(!('kind' in verdict), 'kind' in verdict ? verdict.why : '')
  }
})

test('a long text beside an $or is refused if mongod would read it by a collation for each copy', () => {
  const catalog = mongoCatalog(EXPOSED, { version: [6, 0, 5], collated: true })
  const refused = {
    'letters': filtered({ name: 'y'.repeat(3_000), ...dated(400) }),
    'marks': filtered({ name: `a${'\u0f71'.repeat(300)}`, ...dated(20) }),
    'letters in an $expr': filtered({ $and: [{ $expr: { $eq: ['$name', 'y'.repeat(3_000)] } }, dated(400)] }),
  }
  for (const [name, body] of Object.entries(refused)) {
    assert.ok(!('kind' in judge(UNSAMPLED, body)), name)
    const verdict = judge(catalog, body)
    assert.ok('kind' in verdict, name)
    assert.match(verdict.why, /before it can begin/, name)
  }
  assert.ok(!('kind' in judge(catalog, filtered({ ...ids(100), ...dated(100) }))))
})

const ALLOWED: Readonly<Record<string, object>> = {
  'a short variable beside an $or in a join': looked('$name', dated(100)),
  'a list in a union, and a short $or after it': staged({ $unionWith: { coll: 'people', pipeline: [{ $match: ids(1_000) }] } }, { $match: dated(10) }),
  '540 excluded values': all(540, (k) => ({ name: { $ne: k } })),
  'ten excluded lists': all(10, (k) => ({ name: { $nin: many(1_600, (j) => 2_000 * k + j) } })),
  'a $nor of many conditions': { collection: 'people', filter: { $nor: many(3_000, (k) => ({ name: k })) } },
  'a $nor of a long list': { collection: 'people', filter: { $nor: [{ name: { $in: many(2_000, (k) => k) } }, { score: null }] } },
  'many values of one path in an $or': either(4_000, (k) => ({ name: k % 2 === 0 ? `a${k}` : { $eq: k } })),
  'many ranges in an $or': either(2_000, range),
  'two lists in an $or': either(2, (k) => ({ [k === 0 ? 'name' : 'land']: { $in: many(2_000, String) } })),
  '500 equalities in an $expr': computed({ $or: many(500, is) }),
  'a list in an $expr': computed({ $in: ['$name', many(2_000, String)] }),
  'a literal list in an $expr': computed({ $in: ['$name', { $literal: many(2_000, (k) => ({ $eq: k })) }] }),
  'many ranges of two conditions in an $or': either(1_500, (k) => ({ $and: [{ name: { $gt: `a${k}` } }, { name: { $lte: `b${k}` } }] })),
  'many pages of a key in an $or': either(2_000, (k) => ({ name: `a${k}`, score: { $gt: k, $exists: true } })),
  'many keys without a field in an $or': either(2_000, (k) => ({ name: `a${k}`, land: { $exists: false } })),
  'many keys with an exclusion in an $or': either(500, (k) => ({ name: [k], land: { $not: { $in: ['BE'] } } })),
  '60 arrays in an $or beside other $or': all(4, (k) => (k === 0 ? { $or: many(60, (n) => ({ name: [`a${n}`] })) } : choice(k))),
  '500 arrays in an $or': either(500, (k) => ({ name: [k] })),
  'a list of 500 arrays': { collection: 'people', filter: { name: { $in: lists(500) } } },
  'a list of 35 arrays beside several $or': all(3, (k) => (k === 0 ? { name: { $in: lists(35) } } : choice(k))),
  '1,000 ids beside an $or': filtered({ ...ids(1_000), ...dated(20) }),
  '1,000 ids beside five $or': filtered({ ...ids(1_000), $and: many(5, choice) }),
  '1,000 ids, and a join with an $or': staged({ $match: ids(1_000) }, { $lookup: { from: 'people', pipeline: [{ $match: dated(100) }], as: 'o' } }),
  'an $or of 100 branches beside excluded values': filtered({ land: { $nin: many(100, String) }, ...dated(100) }),
  'an $or of 1,000 branches beside four conditions': filtered({ land: 'BE', since: { $gt: 1, $lt: 9 }, score: 3, ...dated(1_000) }),
  'lists in the branches of an $or': either(20, (k) => ({ land: k, name: { $in: many(500, String) } })),
  'excluded lists of two paths': filtered({ name: { $nin: many(1_600, String) }, land: { $nin: many(1_600, String) } }),
  'values that are looked up beside an $or': joined({ $range: [0, 1_000] }, 10),
  '490 different paths': all(490, (k) => ({ [`home.geo.a${k}`]: k })),
  'the same paths in many conditions': all(5_000, (k) => ({ [`home.geo.a${k % 450}`]: { $gt: k } })),
  'many keys in one $or': { collection: 'people', filter: { land: 'BE', $or: many(3_000, key) } },
  'many keys in an $or, and another $or': all(2, (k) => ({ $or: k === 0 ? many(2_400, key) : [{ score: null }, { score: { $gt: 5 } }] })),
  'two $or of long lists': all(2, () => ({ $or: [{ name: { $in: many(2_000, String) } }, { land: { $in: many(2_000, String) } }] })),
}

for (const [name, body] of Object.entries(ALLOWED))
  for (const catalog of [SAMPLED, UNSAMPLED])
    test(`a filter is allowed: ${name}, ${catalog === SAMPLED ? 'with' : 'without'} a sample`, () => {
      const verdict = judge(catalog, body)
      assert.ok(!('kind' in verdict), 'kind' in verdict ? verdict.why : '')
    })

test('the $or of restrictSearchWithMatch is printed in a form that mongod does not plan', () => {
  const search = { from: 'people', startWith: '$boss', connectFromField: 'boss', connectToField: '_id', as: 'o' }
  const printed = (restrictSearchWithMatch: object): unknown => {
    const verdict = judge(SAMPLED, staged({ $graphLookup: { ...search, restrictSearchWithMatch } }))
    assert.ok(!('kind' in verdict), 'kind' in verdict ? verdict.why : '')
    const stages: readonly { readonly [name: string]: unknown }[] = verdict.pipeline
    const stage = stages.find((each) => '$graphLookup' in each)?.['$graphLookup']
    return Object.entries(Object(stage)).find(([name]) => name === 'restrictSearchWithMatch')?.[1]
  }
  const $or = [{ land: 'BE' }, { score: { $in: [1, 2] } }]
  assert.deepEqual(printed({ $or }), { $nor: [{ $nor: $or }] })
  assert.deepEqual(printed({ name: 'a', $or, $nor: [{ land: 'NL' }] }), {
    name: 'a',
    $nor: [{ land: 'NL' }, { $nor: $or }],
  })
  assert.deepEqual(printed({ $and: [{ $or: [{ $or }, { name: 'a' }] }] }), {
    $and: [{ $nor: [{ $nor: [{ $nor: [{ $nor: $or }] }, { name: 'a' }] }] }],
  })
})
