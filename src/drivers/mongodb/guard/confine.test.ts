import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../../../test/support/mongo-catalog.ts'
import { unseal } from '../../confined.ts'
import type { Catalog, Verdict } from '../../driver.ts'
import { confine } from './confine.ts'
import { printed } from './print.ts'
import type { MongoQuery } from '../confined-query.ts'
import { readBody } from './body/read-body.ts'

const EXPOSED = { people: ['_id', 'name', 'home.city', 'cards.brand', 'meta'], orders: ['person', 'total'] }

const catalog = (version: readonly number[] = [6, 0, 5]): Catalog => mongoCatalog(EXPOSED, { version })

const LIMITS = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 1000, maxCost: 1e6 }

function verdict(body: object, version?: readonly number[]): Verdict {
  return confine(readBody({ collection: 'people', ...body }), catalog(version), LIMITS)
}

function queryOf(body: object): MongoQuery {
  const judged = verdict(body)
  assert.ok(judged.kind === 'confined', judged.kind === 'confined' ? '' : judged.why)
  return unseal<MongoQuery>(judged.query, 'MONGODB')
}

const P = { $project: { _id: 1, name: 1, 'home.city': 1, 'cards.brand': 1, meta: 1 } }
const END = { $limit: 101 }
const computed = (name: string): object => ({
  $set: { [name]: { $cond: [{ $eq: [{ $type: `$${name}` }, 'missing'] }, '$$REMOVE', `$${name}`] } },
})

test('the projection comes first, and the query requests one row more than the row cap', () => {
  assert.deepEqual(queryOf({}).pipeline, [P, END])
  assert.equal(queryOf({ limit: 5 }).rowCap, 5)
  assert.equal(queryOf({ limit: 5000 }).rowCap, 100)
  assert.deepEqual(queryOf({ collection: 'orders' }).pipeline[0], { $project: { person: 1, total: 1, _id: 0 } })
})

test('a filter, sort or limit that reads the same values before the projection comes first, so that it can use indexes', () => {
  const filter = { 'home.city': 'Ghent', cards: { $elemMatch: { brand: 'visa' } } }
  assert.deepEqual(queryOf({ filter }).pipeline, [{ $match: filter }, P, END])
  const pipeline = [{ $match: { name: 'x' } }, { $sort: { 'meta.at': 1, name: -1 } }, { $skip: 1 }, { $limit: 5 }]
  assert.deepEqual(queryOf({ filter, pipeline }).pipeline, [{ $match: filter }, ...pipeline, P, END])
})

test('for a sort through a partly exposed object, a second form is printed that sorts first, with a check', () => {
  const sort = { $sort: { 'cards.brand': 1, name: -1 } }
  const early = (body: object): readonly unknown[] | undefined =>
    queryOf(body).early?.map((stage) => Object.keys(stage)[0])
  const { pipeline, early: form } = queryOf({ filter: { name: 'x' }, pipeline: [sort, { $skip: 2 }, { $limit: 5 }] })
  assert.deepEqual(pipeline, [{ $match: { name: 'x' } }, P, sort, { $skip: 2 }, { $limit: 5 }, END])
  const [filter, moved, limit, proof, ...rest] = form ?? []
  assert.deepEqual(
    [filter, moved, limit, ...rest],
    [{ $match: { name: 'x' } }, sort, { $limit: 7 }, P, { $skip: 2 }, { $limit: 5 }, END],
  )
  assert.match(JSON.stringify(proof), /^\{"\$match":\{"\$expr":\{"\$toInt":.*"\$cards"/)
  assert.deepEqual(early({ pipeline: [sort], limit: 3 }), ['$sort', '$limit', '$match', '$project', '$limit'])
  assert.deepEqual(early({ pipeline: [sort, { $project: { name: 1 } }, { $limit: 3 }] })?.slice(0, 3), [
    '$sort',
    '$limit',
    '$match',
  ])
  for (const body of [
    { pipeline: [{ $sort: { name: 1 } }] },
    { pipeline: [sort, { $group: { _id: '$name' } }] },
    { pipeline: [sort, { $unwind: '$cards' }, { $limit: 5 }] },
    { filter: { 'cards.0.brand': 'x' }, pipeline: [sort] },
    { pipeline: [sort, { $skip: Number.MAX_SAFE_INTEGER }, { $skip: 1 }, { $limit: 1 }] },
  ]) {
    assert.equal(queryOf(body).early, null, JSON.stringify(body))
  }
})

test('stages that would read hidden fields stay after the projection', () => {
  const behind = (stage: object): void => assert.deepEqual(queryOf({ pipeline: [stage] }).pipeline, [P, stage, END])
  behind({ $match: { 'cards.0.brand': 'visa' } })
  behind({ $match: { $expr: { $eq: ['$name', 'x'] } } })
  behind({ $sort: { 'cards.brand': 1 } })
})

test('a barrier is raised for null below a partly exposed object, for the object itself, and for whole documents', () => {
  const held = (stage: object, name: string): void =>
    assert.deepEqual(queryOf({ pipeline: [stage] }).pipeline, [P, computed(name), stage, END])
  held({ $match: { 'cards.brand': null } }, 'cards')
  held({ $match: { 'cards.brand': { $nin: ['visa', null] } } }, 'cards')
  held({ $group: { _id: '$$ROOT' } }, '_id')
  assert.deepEqual(queryOf({ filter: { 'meta.at': null } }).pipeline, [{ $match: { 'meta.at': null } }, P, END])
  const late = [{ $set: { x: '$home' } }, { $match: { 'x.city': { $ne: null } } }]
  assert.ok(JSON.stringify(queryOf({ pipeline: late }).pipeline[1]).includes('"home":{"$cond"'))
})

test('joined documents are projected, and the query has the columns and joins', () => {
  const lookup = { from: 'orders', localField: '_id', foreignField: 'person', as: 'o' }
  const { pipeline, joins, columns } = queryOf({ pipeline: [{ $lookup: lookup }] })
  assert.deepEqual(pipeline[1], { $lookup: { ...lookup, pipeline: [{ $project: { person: 1, total: 1, _id: 0 } }] } })
  assert.deepEqual(joins, [{ stage: '$lookup', collection: 'orders', foreignField: 'person', perDocument: true }])
  assert.deepEqual(columns, ['_id', 'name', 'home', 'cards', 'meta', 'o'])
})

test('the columns of the answer come from the last stage that determines them', () => {
  const columns = (...pipeline: object[]): readonly string[] => queryOf({ pipeline }).columns
  assert.deepEqual(columns({ $project: { b: '$name', name: 1 } }), ['_id', 'b', 'name'])
  assert.deepEqual(columns({ $group: { _id: '$name', n: { $sum: 1 } } }, { $set: { z: 1 } }), ['_id', 'n', 'z'])
  assert.deepEqual(columns({ $unset: ['meta', 'home.city'] }), ['_id', 'name', 'home', 'cards'])
  assert.deepEqual(columns({ $count: 'n' }), ['n'])
  assert.deepEqual(columns({ $replaceWith: '$meta' }), [])
})

test('a scalar is printed as strict Extended JSON', () => {
  const text = printed(
    queryOf({ filter: { meta: { $gt: { $date: '2024-05-31T12:00:00+02:00' }, $lt: { $numberLong: '5' } } } }),
  )
  assert.ok(text.includes('{"$date":"2024-05-31T10:00:00.000Z"}') && text.includes('{"$numberLong":"5"}'), text)
})

test('a $reduce may return $$value, but must not nest it deeper', () => {
  const reduced = (step: unknown): string =>
    verdict({ pipeline: [{ $project: { x: { $reduce: { input: '$meta', initialValue: [], in: step } } } }] }, [9, 0, 0])
      .kind
  const named = { input: '$meta', initialValue: [], as: 'e', valueAs: 'v' }
  const reduce = (step: unknown): string =>
    verdict({ pipeline: [{ $project: { x: { $reduce: { ...named, in: step } } } }] }, [9, 0, 0]).kind
  assert.deepEqual(
    [reduce({ $add: ['$$v', '$$e'] }), reduce(['$$v']), reduce('$$value')],
    ['confined', 'denied', 'denied'],
  )
  for (const step of [
    { $concatArrays: ['$$value', ['$$this']] },
    { sum: { $add: ['$$value.sum', '$$this'] }, last: '$$value.last' },
    { $mergeObjects: ['$$value', { k: '$$this' }] },
    { $map: { input: '$$value', as: 'v', in: '$$v' } },
    [{ $arrayElemAt: ['$$value', 0] }],
  ]) {
    assert.equal(reduced(step), 'confined', JSON.stringify(step))
  }
  for (const step of [
    ['$$value'],
    { a: '$$value' },
    { $cond: [true, { a: { b: '$$value.x' } }, 1] },
    { $mergeObjects: ['$$this', { a: '$$value' }] },
    { $let: { vars: { v: ['$$value'] }, in: '$$v' } },
    { $zip: { inputs: ['$$value', [1]] } },
    { $setField: { field: 'a', input: '$$this', value: '$$value' } },
    { $serializeEJSON: { input: '$$value' } },
    { $reduce: { input: [1], initialValue: '$$value', in: ['$$value'] } },
  ]) {
    assert.equal(reduced(step), 'denied', JSON.stringify(step))
  }
})

test('a $graphLookup in a $facet projects the known fields, and is refused if the fields are unknown', () => {
  const graph = { from: 'people', startWith: '$name', connectFromField: 'name', connectToField: '_id', as: 'g' }
  const [, stage] = queryOf({ pipeline: [{ $facet: { a: [{ $graphLookup: graph }] } }] }).pipeline
  assert.ok(JSON.stringify(stage).includes('"g.home.city":1') && !JSON.stringify(stage).includes('$documents'))
  assert.equal(
    verdict({
      pipeline: [{ $replaceWith: '$meta' }, { $facet: { a: [{ $graphLookup: { ...graph, startWith: 1 } }] } }],
    }).kind,
    'denied',
  )
})

test('string operators search only for strings, and joins look up no regular expressions', () => {
  const printed = (stage: object): string => JSON.stringify(queryOf({ pipeline: [stage] }).pipeline)
  assert.match(
    printed({ $set: { x: { $split: ['$name', '$meta'] } } }),
    /\{"\$split":\["\$name",\{"\$concat":\["\$meta"\]\}\]\}/,
  )
  assert.match(printed({ $set: { x: { $split: ['$name', ','] } } }), /\{"\$split":\["\$name",","\]\}/)
  const replaced = { $replaceAll: { input: '$name', find: '$meta', replacement: '' } }
  assert.match(printed({ $set: { x: replaced } }), /"find":\{"\$concat":\["\$meta"\]\}/)
  const pattern = { $regularExpression: { pattern: 'a', options: '' } }
  const refused = verdict({ pipeline: [{ $set: { x: { $split: ['$name', pattern] } } }] })
  assert.ok(refused.kind === 'denied' && /searches for a string/.test(refused.why))
  const heavy = verdict({ filter: { name: { $regex: '^(?:a+)+$' } } })
  assert.ok(heavy.kind === 'denied' && /repeats a part that can match a text in several ways/.test(heavy.why))
})
