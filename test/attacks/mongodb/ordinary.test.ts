// Ordinary queries of analysts and object mappers must be allowed, however long the arrays in the sample are: reports,
// joins, pages with a total, and arrays that are sorted, compared or written as strings.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../support/mongo-catalog.ts'
import { judge } from './ask.ts'

const EXPOSED = {
  orders: ['_id', 'userId', 'status', 'total', 'createdAt', 'items', 'customer', 'tags', 'address', 'history', 'events'],
  users: ['_id', 'name', 'email', 'createdAt', 'roles', 'profile'],
  events: ['_id', 'userId', 'type', 'ts', 'props', 'sessionId'],
}
/** Mean lengths of the arrays. */
const ARRAYS = { items: 6, tags: 4, history: 35, events: 250, roles: 2 }

type Pipeline = (...pipeline: object[]) => object
const [orders, users, events] = ['orders', 'users', 'events'].map(
  (collection): Pipeline => (...pipeline) => ({ collection, pipeline }),
) as [Pipeline, Pipeline, Pipeline]

const QUERIES: readonly object[] = [
  orders({ $match: { status: 'paid' } }, { $group: { _id: { y: { $year: '$createdAt' }, m: { $month: '$createdAt' } }, total: { $sum: '$total' }, n: { $sum: 1 } } }, { $sort: { '_id.y': 1, '_id.m': 1 } }),
  orders({ $unwind: '$items' }, { $group: { _id: '$items.sku', qty: { $sum: '$items.qty' }, revenue: { $sum: { $multiply: ['$items.qty', '$items.price'] } } } }, { $sort: { revenue: -1 } }, { $limit: 10 }),
  orders({ $lookup: { from: 'users', localField: 'userId', foreignField: '_id', as: 'user' } }, { $unwind: { path: '$user', preserveNullAndEmptyArrays: true } }, { $project: { total: 1, email: '$user.email' } }),
  orders({ $addFields: { itemTotals: { $map: { input: '$items', as: 'i', in: { $mergeObjects: ['$$i', { line: { $multiply: ['$$i.qty', '$$i.price'] } }] } } } } }),
  orders({ $project: { total: { $reduce: { input: '$items', initialValue: 0, in: { $add: ['$$value', { $multiply: ['$$this.qty', '$$this.price'] }] } } } } }),
  orders({ $project: { names: { $reduce: { input: '$items.name', initialValue: '', in: { $cond: [{ $eq: ['$$value', ''] }, '$$this', { $concat: ['$$value', ', ', '$$this'] }] } } } } }),
  users({ $lookup: { from: 'orders', let: { id: '$_id' }, pipeline: [{ $match: { $expr: { $and: [{ $eq: ['$userId', '$$id'] }, { $gte: ['$createdAt', { $dateSubtract: { startDate: '$$NOW', unit: 'day', amount: 30 } }] }] } } }, { $count: 'n' }], as: 'recent' } }, { $set: { recent: { $ifNull: [{ $first: '$recent.n' }, 0] } } }),
  events({ $group: { _id: { $dateTrunc: { date: '$ts', unit: 'week' } }, users: { $addToSet: '$userId' } } }, { $project: { n: { $size: '$users' } } }),
  events({ $sort: { userId: 1, ts: 1 } }, { $group: { _id: '$sessionId', events: { $push: { type: '$type', ts: '$ts' } }, first: { $first: '$ts' }, last: { $last: '$ts' } } }, { $set: { minutes: { $dateDiff: { startDate: '$first', endDate: '$last', unit: 'minute' } } } }),
  events({ $sort: { ts: 1 } }, { $group: { _id: '$userId', steps: { $push: '$type' } } }, { $project: { viewed: { $indexOfArray: ['$steps', 'view'] }, bought: { $indexOfArray: ['$steps', 'buy'] } } }, { $match: { $expr: { $gt: ['$bought', '$viewed'] } } }),
  orders({ $setWindowFields: { partitionBy: '$userId', sortBy: { createdAt: 1 }, output: { run: { $sum: '$total', window: { documents: ['unbounded', 'current'] } }, prev: { $shift: { output: '$total', by: -1 } } } } }, { $set: { diff: { $subtract: ['$total', '$prev'] } } }),
  orders({ $facet: { page: [{ $sort: { createdAt: -1 } }, { $skip: 20 }, { $limit: 20 }], count: [{ $count: 'n' }] } }, { $project: { page: 1, n: { $first: '$count.n' } } }),
  orders({ $match: { 'customer.email': { $regex: '@example\\.com$', $options: 'i' } } }, { $project: { email: { $toLower: { $trim: { input: '$customer.email' } } }, domain: { $arrayElemAt: [{ $split: ['$customer.email', '@'] }, 1] } } }),
  orders({ $project: { days: { $map: { input: { $range: [0, 31] }, as: 'd', in: { day: '$$d', n: { $size: { $filter: { input: '$events', as: 'e', cond: { $eq: [{ $dayOfMonth: '$$e.at' }, '$$d'] } } } } } } } } }),
  orders({ $set: { kv: { $objectToArray: '$address' } } }, { $unwind: '$kv' }, { $group: { _id: '$kv.k', n: { $sum: 1 } } }),
  orders({ $set: { unique: { $setUnion: ['$tags', []] }, sorted: { $sortArray: { input: '$items', sortBy: { price: -1 } } }, top: { $slice: [{ $sortArray: { input: '$history', sortBy: { at: -1 } } }, 5] } } }),
  orders({ $set: { pairs: { $zip: { inputs: ['$items.sku', '$items.qty'] } } } }, { $set: { obj: { $arrayToObject: '$pairs' } } }),
  orders({ $set: { last: { $arrayElemAt: ['$history', -1] }, diffs: { $map: { input: { $range: [1, { $size: '$history' }] }, as: 'i', in: { $subtract: [{ $arrayElemAt: ['$history.at', '$$i'] }, { $arrayElemAt: ['$history.at', { $subtract: ['$$i', 1] }] }] } } } } }),
  orders({ $group: { _id: '$userId', orders: { $push: '$$ROOT' } } }, { $set: { largest: { $first: { $sortArray: { input: '$orders', sortBy: { total: -1 } } } } } }, { $project: { largest: { _id: 1, total: 1 } } }),
  orders({ $group: { _id: '$status', docs: { $push: '$$ROOT' }, n: { $sum: 1 } } }, { $unwind: '$docs' }, { $replaceRoot: { newRoot: { $mergeObjects: ['$docs', { inStatus: '$n' }] } } }),
  orders({ $group: { _id: null, all: { $push: '$total' } } }, { $set: { all: { $sortArray: { input: '$all', sortBy: 1 } } } }, { $project: { median: { $arrayElemAt: ['$all', { $floor: { $divide: [{ $size: '$all' }, 2] } }] } } }),
  users({ $match: { roles: { $in: ['admin', 'owner'] } } }, { $unset: ['profile.photo', 'profile.bio'] }, { $sort: { name: 1 } }),
  users({ $unionWith: { coll: 'events', pipeline: [{ $project: { userId: 1, ts: 1 } }] } }, { $group: { _id: { $ifNull: ['$userId', '$_id'] }, last: { $max: { $ifNull: ['$ts', '$createdAt'] } } } }),
  orders({ $bucket: { groupBy: '$total', boundaries: [0, 50, 100, 500, 1000], default: '1000+', output: { n: { $sum: 1 }, ids: { $push: '$_id' } } } }),
  events({ $densify: { field: 'ts', range: { step: 1, unit: 'day', bounds: 'full' } } }, { $fill: { sortBy: { ts: 1 }, output: { type: { method: 'locf' } } } }),
  orders({ $match: { $expr: { $gt: [{ $size: { $filter: { input: '$items', cond: { $gt: ['$$this.price', 100] } } } }, 0] } } }),
  orders({ $project: { slug: { $reduce: { input: [' ', '/', '.', ','], initialValue: { $toLower: '$customer.name' }, in: { $replaceAll: { input: '$$value', find: '$$this', replacement: '-' } } } } } }),
  orders({ $project: { matrix: { $map: { input: '$items', as: 'a', in: { $map: { input: '$items', as: 'b', in: { $cmp: ['$$a.price', '$$b.price'] } } } } } } }),
  orders({ $set: { items: { $map: { input: '$items', as: 'i', in: { $mergeObjects: ['$$i', { $first: { $filter: { input: '$history', as: 'h', cond: { $eq: ['$$h.sku', '$$i.sku'] } } } }] } } } } }),
  orders({ $project: { counts: { $arrayToObject: { $map: { input: { $setUnion: '$events.type' }, as: 't', in: { k: '$$t', v: { $size: { $filter: { input: '$events', cond: { $eq: ['$$this.type', '$$t'] } } } } } } } } } }),
  events({ $group: { _id: '$userId', days: { $addToSet: { $dateToString: { date: '$ts', format: '%Y-%m-%d' } } } } }, { $set: { streak: { $reduce: { input: { $sortArray: { input: '$days', sortBy: 1 } }, initialValue: { n: 0, last: null }, in: { n: { $cond: [{ $eq: ['$$value.last', null] }, 1, { $add: ['$$value.n', 1] }] }, last: '$$this' } } } } }),
  users({ $lookup: { from: 'orders', localField: '_id', foreignField: 'userId', as: 'o' } }, { $set: { spent: { $sum: '$o.total' }, skus: { $reduce: { input: '$o.items', initialValue: [], in: { $setUnion: ['$$value', '$$this.sku'] } } } } }),
  users({ $lookup: { from: 'orders', localField: '_id', foreignField: 'userId', as: 'o' } }, { $set: { byStatus: { $map: { input: { $setUnion: ['$o.status'] }, as: 's', in: { s: '$$s', n: { $size: { $filter: { input: '$o', cond: { $eq: ['$$this.status', '$$s'] } } } } } } } } }),
  users({ $graphLookup: { from: 'users', startWith: '$profile.managerId', connectFromField: 'profile.managerId', connectToField: '_id', as: 'chain', maxDepth: 5 } }, { $set: { names: { $map: { input: '$chain', in: '$$this.name' } } } }),
  events({ $project: { chars: { $map: { input: { $range: [0, { $strLenCP: '$type' }] }, in: { $substrCP: ['$type', '$$this', 1] } } } } }, { $unwind: '$chars' }, { $sortByCount: '$chars' }),
  orders({ $set: { text: { $concat: ['$customer.name', ' ', '$address.street', ' ', '$address.city'] } } }, { $match: { text: { $regex: 'smith', $options: 'i' } } }),
]

for (const [name, arrays, collated] of [
  ['without a sample', undefined, false],
  ['by a sample', ARRAYS, false],
  ['by a sample of long arrays', { ...ARRAYS, events: 600, items: 50, history: 300 }, false],
  ['by a sample of collections with a collation', ARRAYS, true],
] as const)
  test(`${QUERIES.length} ordinary queries are allowed ${name}`, () => {
    const catalog = mongoCatalog(EXPOSED, { documents: 10_000, version: [8, 0, 0], collated, ...(arrays && { arrays }) })
    for (const [n, body] of QUERIES.entries()) {
      const verdict = judge(catalog, body)
      assert.ok(!('kind' in verdict), `#${n}: ${'kind' in verdict ? verdict.why : ''}`)
    }
  })
