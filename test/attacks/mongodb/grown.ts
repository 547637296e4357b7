// Families of queries that grow with a size n: deep, wide and repeated.
import type { Document } from 'mongodb'

export interface Family {
  readonly name: string
  readonly body: (n: number) => Document
}

const people = (...pipeline: Document[]): Document => ({ collection: 'people', pipeline })
const shown = (x: unknown): Document => people({ $project: { x } })
const fields = (n: number, value: (k: number) => unknown): Document =>
  Object.fromEntries(Array.from({ length: n }, (_, k) => [`f${k}`, value(k)]))
const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))
const nested = (n: number, inner: unknown, wrap: (inner: unknown) => unknown): unknown =>
  n <= 0 ? inner : nested(n - 1, wrap(inner), wrap)

const wide: readonly Family[] = [
  { name: '$set of constants', body: (n) => people({ $set: fields(n, (k) => k) }) },
  { name: '$set of paths', body: (n) => people({ $set: fields(n, () => '$name') }) },
  { name: '$set of nested fields', body: (n) => people({ $set: { a: { b: { c: fields(n, (k) => k) } } } }) },
  { name: '$set of dotted paths with one beginning', body: (n) => people({ $set: Object.fromEntries(many(n, (k) => [`a.b.c.d.e.f${k}`, 1])) }) },
  { name: '$addFields of objects', body: (n) => people({ $addFields: fields(n, (k) => ({ a: k, b: '$name' })) }) },
  { name: '$project of expressions', body: (n) => people({ $project: fields(n, () => '$name') }) },
  { name: '$project of names behind $set', body: (n) => people({ $set: fields(n, (k) => k) }, { $project: fields(n, () => 1) }) },
  { name: '$project of nested names', body: (n) => people({ $project: { extra: fields(n, () => 1), tags: fields(n, () => 1) } }) },
  { name: '$project that leaves out', body: (n) => people({ $set: fields(n, (k) => k) }, { $project: fields(n, () => 0) }) },
  { name: '$unset', body: (n) => people({ $set: fields(n, (k) => k) }, { $unset: many(n, (k) => `f${k}`) }) },
  { name: '$unset of nothing', body: (n) => people({ $unset: many(n, (k) => `f${k}`) }) },
  { name: '$group', body: (n) => people({ $group: { _id: null, ...fields(n, () => ({ $sum: 1 })) } }) },
  { name: '$group by an object', body: (n) => people({ $group: { _id: fields(n, () => '$name') } }) },
  { name: '$setWindowFields', body: (n) => people({ $setWindowFields: { sortBy: { _id: 1 }, output: fields(n, () => ({ $sum: 1 })) } }) },
  { name: '$fill', body: (n) => people({ $fill: { output: fields(n, () => ({ value: 0 })) } }) },
  { name: '$bucket', body: (n) => people({ $bucket: { groupBy: '$score', boundaries: many(n, (k) => k), output: { n: { $sum: 1 } } } }) },
  { name: '$replaceWith', body: (n) => people({ $replaceWith: fields(n, (k) => k) }) },
  { name: '$facet', body: (n) => people({ $facet: Object.fromEntries(many(5, (k) => [`b${k}`, [{ $set: fields(n / 5, (j) => j) }]])) }) },
  { name: '$lookup with let', body: (n) => people({ $lookup: { from: 'orders', let: fields(n, () => '$name'), pipeline: [{ $match: { $expr: { $eq: ['$person', '$$f1'] } } }], as: 'x' } }) },
  { name: '$unionWith', body: (n) => people({ $set: fields(n, (k) => k) }, { $unionWith: { coll: 'orders', pipeline: [{ $set: fields(n, (k) => k) }] } }) },
  { name: '$let', body: (n) => shown({ $let: { vars: fields(n, (k) => k), in: '$$f0' } }) },
  { name: '$reduce over a $let', body: (n) => shown({ $reduce: { input: '$tags', initialValue: 0, in: { $let: { vars: fields(n, () => '$$value'), in: '$$f0' } } } }) },
  { name: '$switch', body: (n) => shown({ $switch: { branches: many(n, (k) => ({ case: { $eq: ['$name', k] }, then: k })), default: 0 } }) },
  { name: '$concat', body: (n) => shown({ $concat: many(n, () => '$name') }) },
  { name: '$concatArrays', body: (n) => shown({ $concatArrays: many(n, (k) => [k]) }) },
  { name: '$mergeObjects', body: (n) => shown({ $mergeObjects: many(n, (k) => ({ [`f${k}`]: k })) }) },
  { name: '$arrayToObject', body: (n) => shown({ $arrayToObject: [many(n, (k) => [`f${k}`, k])] }) },
  { name: '$add', body: (n) => shown({ $add: many(n, () => '$score') }) },
  { name: '$in', body: (n) => shown({ $in: ['$name', many(n, String)] }) },
  { name: '$literal', body: (n) => shown({ $literal: many(n, (k) => ({ a: k })) }) },
  { name: '$zip', body: (n) => shown({ $zip: { inputs: many(n, () => '$tags') } }) },
  { name: '$map over a literal', body: (n) => shown({ $map: { input: many(n, (k) => k), in: { $add: ['$$this', 1] } } }) },
  { name: '$reduce into an object', body: (n) => shown({ $reduce: { input: '$tags', initialValue: {}, in: fields(n, (k) => ({ $add: [`$$value.f${k}`, 1] })) } }) },
  { name: 'a filter of fields', body: (n) => ({ collection: 'people', filter: { $and: many(n, (k) => ({ name: k })) } }) },
  { name: '$or', body: (n) => ({ collection: 'people', filter: { $or: many(n, (k) => ({ name: k, land: k })) } }) },
  { name: '$or of null on a cut path', body: (n) => ({ collection: 'people', filter: { $or: many(n, () => ({ 'cards.brand': null })) } }) },
  { name: '$in of a filter', body: (n) => ({ collection: 'people', filter: { name: { $in: many(n, String) } } }) },
  { name: '$nin of nulls', body: (n) => ({ collection: 'people', filter: { 'cards.brand': { $nin: many(n, () => null) } } }) },
  { name: '$all of $elemMatch', body: (n) => ({ collection: 'people', filter: { cards: { $all: many(n, (k) => ({ $elemMatch: { brand: k } })) } } }) },
  { name: '$geoWithin', body: (n) => ({ collection: 'spots', filter: { loc: { $geoWithin: { $polygon: many(n, (k) => [k, k]) } } } }) },
  { name: 'a compared object', body: (n) => ({ collection: 'people', filter: { extra: 1, name: fields(n, (k) => k) } }) },
  { name: '$oid', body: (n) => ({ collection: 'people', filter: { _id: { $in: many(n, (k) => ({ $oid: k.toString(16).padStart(24, '0') })) } } }) },
  { name: '$sort', body: (n) => people({ $sort: fields(n, () => 1) }) },
  { name: 'stages of $set', body: (n) => people(...many(Math.min(40, n / 100), (k) => ({ $set: { [`s${k}`]: 1, ...fields(n / 40, (j) => j) } }))) },
  { name: 'stages', body: (n) => people(...many(n, () => ({ $limit: 1 }))) },
  { name: 'unknown fields', body: (n) => ({ ...people(), ...fields(n, () => 1) }) },
  { name: 'stages that are not objects', body: (n) => ({ collection: 'people', pipeline: many(n, () => 0) }) },
  { name: 'a wrong variable among many', body: (n) => shown({ $let: { vars: fields(n, (k) => k), in: '$$none' } }) },
]

const long: readonly Family[] = [
  { name: 'a path of many names', body: (n) => people({ $set: { [many(n, () => 'a').join('.')]: 1 } }) },
  { name: 'a read path of many names', body: (n) => shown(`$${many(n, () => 'a').join('.')}`) },
  { name: 'a long name', body: (n) => ({ collection: 'people', filter: { ['x'.repeat(n)]: 1 } }) },
  { name: 'a long name of an object with many fields', body: (n) => people({ $set: { ['x'.repeat(n * 2)]: fields(n, (k) => k) } }) },
  { name: 'a long operator', body: (n) => shown({ [`$${'x'.repeat(n)}`]: 1 }) },
  { name: 'a long stage', body: (n) => people({ [`$${'x'.repeat(n)}`]: 1 }) },
  { name: 'a long collection', body: (n) => ({ collection: 'x'.repeat(n) }) },
  { name: 'a long variable', body: (n) => shown(`$$${'x'.repeat(n)}`) },
  { name: 'digits of a double', body: (n) => shown({ $numberDouble: `${'1'.repeat(n * 8)}x` }) },
  { name: 'digits of a decimal', body: (n) => shown({ $numberDecimal: `${'1'.repeat(n * 8)}x` }) },
  { name: 'base64', body: (n) => shown({ $binary: { base64: `${'AAAA'.repeat(n)}!`, subType: '00' } }) },
  { name: 'a pattern', body: (n) => shown({ $regexMatch: { input: '$name', regex: '('.repeat(n) } }) },
  { name: '$regularExpression', body: (n) => ({ collection: 'people', filter: { name: { $regularExpression: { pattern: 'a*'.repeat(n), options: '' } } } }) },
]

/** The guard limits the depth of a body. */
const DEEP = 10

const deep: readonly Family[] = [
  { name: '$let in $let', body: (n) => shown(nested(DEEP / 2, '$name', (inner) => ({ $let: { vars: fields(n / 5, () => '$name'), in: inner } }))) },
  { name: '$let of all before', body: (n) => shown(nested(DEEP / 2, '$name', (inner) => ({ $let: { vars: fields(n / 5, () => inner === '$name' ? inner : '$name'), in: inner } }))) },
  { name: '$reduce in $reduce', body: (n) => shown({ $reduce: { input: '$tags', initialValue: [], in: nested(DEEP - 1, { $concatArrays: ['$$value', many(n, (k) => k)] }, (inner) => ({ $reduce: { input: '$tags', initialValue: '$$value', in: inner } })) } }) },
  { name: '$map in $map', body: (n) => shown(nested(4, { $add: many(n, () => '$$this') }, (inner) => ({ $map: { input: [1, 2], in: inner } }))) },
  { name: '$cond in $cond', body: (n) => shown(nested(DEEP, { $add: many(n, () => 1) }, (inner) => ({ $cond: [true, inner, 1] }))) },
  { name: '$and in $and', body: (n) => ({ collection: 'people', filter: nested(DEEP, { $or: many(n, (k) => ({ name: k })) }, (inner) => ({ $and: [inner] })) as Document }) },
  { name: '$elemMatch in $elemMatch', body: (n) => ({ collection: 'people', filter: { tags: nested(DEEP, { $in: many(n, String) }, (inner) => ({ $elemMatch: inner })) } }) },
  { name: '$lookup in $lookup', body: (n) => people(nested(3, { $set: fields(n, (k) => k) }, (inner) => ({ $lookup: { from: 'people', pipeline: [inner], as: 'x' } })) as Document) },
  { name: 'operators nested beyond the limit', body: (n) => shown(nested(Math.min(n, 1000), 1, (inner) => ({ $not: [inner] }))) },
  { name: 'arrays nested beyond the limit', body: (n) => shown(nested(Math.min(n, 1000), 1, (inner) => [inner])) },
  { name: 'the document twice in itself, stage by stage', body: (n) => people(...many(Math.min(40, Math.ceil(n / 200)), () => ({ $set: { a: { x: '$$ROOT', y: '$$ROOT' } } }))) },
]

export const FAMILIES: readonly Family[] = [...wide, ...long, ...deep]

const WRAPS: readonly ((inner: unknown) => unknown)[] = [
  (inner) => ({ $let: { vars: { v: inner }, in: '$$v' } }),
  (inner) => ({ $cond: [true, inner, '$name'] }),
  (inner) => ({ $map: { input: [1, 2], in: inner } }),
  (inner) => ({ $ifNull: [inner, '$land'] }),
  (inner) => ({ $filter: { input: ['a'], cond: inner } }),
  (inner) => ({ $reduce: { input: ['a'], initialValue: 0, in: { $size: [[inner, '$$value']] } } }),
  (inner) => ({ $switch: { branches: [{ case: true, then: inner }], default: 1 } }),
  (inner) => ({ $mergeObjects: [{ a: inner }] }),
  (inner) => ({ a: inner, b: { c: '$home.city' } }),
  (inner) => [inner, { $literal: { a: 1 } }],
]
const LISTS: readonly ((n: number) => unknown)[] = [
  (n) => ({ $concat: many(n, () => '$name') }),
  (n) => ({ $add: many(n, (k) => k) }),
  (n) => ({ $in: ['$name', many(n, String)] }),
  (n) => fields(n, () => '$home.city'),
  (n) => ({ $let: { vars: fields(n, () => '$score'), in: '$$f0' } }),
  (n) => ({ $switch: { branches: many(n, (k) => ({ case: { $eq: ['$land', k] }, then: '$name' })), default: null } }),
  (n) => ({ $setUnion: many(n, (k) => [k]) }),
  (n) => ({ $mergeObjects: many(n, (k) => ({ [`f${k}`]: '$name' })) }),
]
const STAGES: readonly ((x: unknown, n: number) => Document)[] = [
  (x) => ({ $set: { x } }),
  (x) => ({ $project: { name: 1, land: 1, score: 1, home: 1, x } }),
  (_, n) => ({ $set: fields(n, () => '$name') }),
  (_, n) => ({ $unset: many(n, (k) => `g${k}`) }),
  (x) => ({ $match: { $expr: { $eq: [1, x] } } }),
  (_, n) => ({ $match: { $or: many(n, (k) => ({ name: k })) } }),
  (x) => ({ $lookup: { from: 'orders', let: { v: x }, pipeline: [{ $match: { $expr: { $eq: ['$_id', '$$v'] } } }], as: 'o' } }),
]

/** Returns a random query in one size, and the same query in twice that size. */
export function randomGrown(seed: number): { readonly small: Document; readonly large: Document } {
  let state = Math.imul(seed, 2_654_435_761) | 1
  const below = (n: number): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % n
  }
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T
  const [depth, wide, repeated] = [below(7), 10 + below(300), 1 + below(6)]
  const list = pick(LISTS)
  const wraps = many(depth, () => pick(WRAPS))
  const stages = many(repeated, () => pick(STAGES))
  const body = (n: number, times: number): Document => {
    const x = wraps.reduce((inner, wrap) => wrap(inner), list(n))
    return people(...many(times, () => stages.map((stage) => stage(x, n))).flat())
  }
  return below(2) === 0 ? { small: body(wide, 1), large: body(2 * wide, 1) } : { small: body(wide, 1), large: body(wide, 2) }
}
