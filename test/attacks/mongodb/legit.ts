// Legitimate queries about exposed data.
import type { Document } from 'mongodb'
import type { Body } from './ask.ts'

const by = { $sort: { _id: 1 } }
const orders = (...pipeline: Document[]): Body => ({ collection: 'orders', pipeline })
const people = (...pipeline: Document[]): Body => ({ collection: 'people', pipeline })
const list = { $cond: [{ $isArray: '$lines' }, '$lines', []] }

export const LEGIT: readonly Body[] = [
  { collection: 'people' },
  { collection: 'people', filter: { land: 'BE', 'home.city': { $in: ['City 1', 'City 2'] } } },
  { collection: 'people', filter: { cards: { $elemMatch: { brand: 'visa', exp: { $gte: 2030 } } }, $comment: 'why' } },
  { collection: 'people', filter: { $or: [{ tags: { $all: ['a', 't1'] } }, { $nor: [{ score: { $gt: 3 } }] }] } },
  { collection: 'people', filter: { home: { city: 'City 0', geo: { lat: 0, lon: [0, 1] } } } },
  { collection: 'people', filter: { 'home.geo.lon.1': 6, since: { $gte: { $date: '2024-02-01' } } } },
  { collection: 'people', filter: { name: { $not: { $regex: '^name 1', $options: 'i' } }, score: { $type: ['int', 'decimal'] } } },
  { collection: 'people', filter: { name: { $regularExpression: { pattern: '^Name [12]', options: '' } } } },
  { collection: 'people', filter: { _id: { $oid: 'aaaaaaaaaaaaaaaaaaaaaaa1' } } },
  { collection: 'people', filter: { $expr: { $eq: [{ $month: '$since' }, 3] } } },
  { collection: 'orders', filter: { _id: { $mod: [7, 0] }, 'lines.n': { $bitsAnySet: 1 }, extra: { $exists: true } } },
  { collection: 'orders', filter: { total: { $gte: { $numberDecimal: '10.5' } }, 'lines.2': { $exists: true } } },
  { collection: 'spots', filter: { loc: { $geoWithin: { $centerSphere: [[4, 51], 0.005] } } } },
  { collection: 'spots', filter: { loc: { $geoIntersects: { $geometry: { type: 'Point', coordinates: [4, 51] } } } } },
  { collection: 'odd', filter: { constructor: 'c1', 'full name': { $ne: 'F 4' } } },
  orders({ $project: { _id: 0, when: { $dateToString: { date: '$at', format: '%Y-%m-%d' } }, lines: { sku: 1 } } }),
  orders({ $set: { 'extra2.n': { $size: list } } }, { $unset: ['extra', 'lines.n'] }, { $match: { 'extra2.n': { $gt: 1 } } }),
  orders({ $unwind: { path: '$lines', includeArrayIndex: 'k' } }, { $group: { _id: { s: '$lines.sku' }, n: { $sum: '$lines.n' } } }, { $match: { '_id.s': 'P1' } }),
  orders({ $sort: { at: -1, _id: 1 } }, { $skip: 3 }, { $limit: 4 }, { $project: { state: 1 } }),
  orders({ $group: { _id: '$state', avg: { $avg: { $toDouble: '$total' } }, first: { $min: '$at' }, n: { $count: {} } } }, by),
  orders({ $bucket: { groupBy: '$_id', boundaries: [0, 20, 50], default: 'more', output: { n: { $sum: 1 } } } }),
  orders({ $bucketAuto: { groupBy: '$_id', buckets: 4 } }),
  orders({ $bucketAuto: { groupBy: '$_id', buckets: 4, output: { n: { $sum: 1 }, states: { $addToSet: '$state' }, all: { $push: '$_id' } } } }, { $set: { states: { $sortArray: { input: '$states', sortBy: 1 } } } }),
  people({ $set: { t: { $cond: [{ $isArray: '$tags' }, '$tags', []] } } }, { $project: { x: { $setEquals: ['$t', ['t1', 'a', 'a']] }, y: { $setEquals: ['$t', '$t', { $reverseArray: '$t' }] }, z: { $setIsSubset: [['a'], '$t'] } } }),
  orders({ $sortByCount: '$state' }, by),
  orders({ $facet: { a: [{ $count: 'n' }], b: [{ $group: { _id: '$state' } }, by] } }, { $unwind: '$a' }, { $project: { n: '$a.n', b: 1 } }),
  orders({ $setWindowFields: { partitionBy: '$state', sortBy: { _id: 1 }, output: { run: { $sum: '$_id', window: { documents: ['unbounded', 'current'] } }, r: { $rank: {} } } } }),
  orders({ $replaceRoot: { newRoot: { $mergeObjects: [{ z: 1 }, { s: '$state' }] } } }, { $match: { s: 'paid' } }),
  orders({ $lookup: { from: 'people', localField: 'person', foreignField: '_id', as: 'p' } }, { $set: { p: { $first: '$p.name' } } }),
  orders({ $lookup: { from: 'people', let: { p: '$person' }, pipeline: [{ $match: { $expr: { $eq: ['$_id', '$$p'] } } }, { $project: { name: 1 } }], as: 'p' } }, { $unwind: '$p' }, { $match: { 'p.name': { $regex: '^Name 1' } } }),
  orders({ $lookup: { from: 'gauge', let: { v: { $cond: [{ $eq: ['$state', 'new'] }, 1, 0] } }, pipeline: [{ $match: { $expr: '$$v' } }, { $set: { x: '$meta' } }], as: 'g' } }, { $set: { g: { $size: '$g' } } }),
  orders({ $project: { s: { $map: { input: list, as: 'l', in: '$$l.sku' } }, n: { $sum: '$lines.n' } } }),
  people({ $unionWith: { coll: 'orders', pipeline: [{ $match: { state: 'new' } }, { $project: { state: 1 } }] } }, { $group: { _id: '$state', n: { $sum: 1 } } }, by),
  people({ $graphLookup: { from: 'people', startWith: '$boss', connectFromField: 'boss', connectToField: '_id', as: 'up', maxDepth: 2, depthField: 'far' } }, { $project: { up: { $size: '$up' } } }),
  people({ $redact: { $cond: [{ $eq: ['$land', 'BE'] }, '$$PRUNE', '$$DESCEND'] } }),
  people({ $project: { x: { $switch: { branches: [{ case: { $eq: ['$land', 'BE'] }, then: 1 }], default: '$$REMOVE' } }, y: { $ifNull: ['$home.city', 'none'] } } }),
  people({ $project: { t: { $reduce: { input: ['a', 'b'], initialValue: '', in: { $concat: ['$$value', '$$this'] } } }, g: { $getField: 'name' } } }),
  people({ $project: { a: { $toArray: '[1,2]' }, o: { $toObject: '{"a":1}' }, e: { $serializeEJSON: { input: '$since', relaxed: true } }, s: { $similarityCosine: { vectors: [[1, 2], [3, 4]], score: true } } } }),
  people({ $project: { d: { $deserializeEJSON: { input: { $serializeEJSON: { input: '$_id' } } } }, g: { $sigmoid: 1 }, c: { $convert: { input: 'ff', to: 'int', base: 16 } } } }),
  people({ $project: { m: { $map: { input: [5, 6], arrayIndexAs: 'i', in: { $add: ['$$this', '$$i'] } } }, f: { $filter: { input: [5, 6], as: 'x', cond: '$$IDX' } }, r: { $reduce: { input: [5, 6], initialValue: 0, as: 'x', valueAs: 'v', arrayIndexAs: 'i', in: { $add: ['$$v', '$$x', '$$i'] } } } } }),
  orders({ $setWindowFields: { partitionBy: '$state', sortBy: { _id: 1 }, output: { all: { $mergeObjects: { a: '$_id' }, window: { documents: ['unbounded', 'current'] } } } } }),
  people({ $project: { p: { $median: { input: [1, 2, 3], method: 'approximate' } } } }),
  { collection: 'odd', filter: { 'v.vt_look': 5 }, pipeline: [{ $replaceWith: '$v' }, { $set: { n: { $size: { $map: { input: { $range: [0, 8_000] }, in: { $concat: [{ $toString: '$vt_look' }, 'x'.repeat(2_000)] } } } } } }] },
  orders({ $project: { down: { $range: [{ $multiply: ['$_id', -1000] }, 5, -1] }, none: { $range: [5, { $multiply: ['$_id', -1000] }] }, n: { $range: [0, { $size: list }] } } }),
  { collection: 'gauge', filter: { 'meta.device': 'd1' }, pipeline: [{ $project: { at: 1, value: 1 } }, { $fill: { sortBy: { at: 1 }, output: { value: { method: 'locf' } } } }] },
  { collection: 'gauge', pipeline: [{ $match: { _id: { $lt: 5 } } }, { $densify: { field: 'at', range: { step: 30, unit: 'second', bounds: 'full' } } }, { $count: 'n' }] },
]
