// Families of queries that compare texts by a collation. A comparison may read each text to its end, because the texts
// consist of ignored characters or combining marks. For combining marks, the work of ICU is the square of their number.
import type { Document } from 'mongodb'
import type { Heavy } from './heavy.ts'

const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: Math.ceil(n) }, (_, k) => make(k))
const map = (input: unknown, body: unknown, as = 'this'): object => ({ $map: { input, as, in: body } })
const range = (n: number): object => ({ $range: [0, Math.ceil(n)] })
const people = (...pipeline: Document[]): Document => ({ collection: 'people', pipeline })
const one = { $match: { land: 'one' } }
const TEXTS_MAX = 79_000
const ignored = (n: number): string => '\u200b'.repeat(Math.min(TEXTS_MAX, n))
/**
 * Makes n combining marks in a wrong order. Each mark of the first half may begin a contraction with one of the second
 * half.
 */
const marks = (n: number): string => ['\u0f71', '\u0f80', '\u0323'].map((mark) => mark.repeat(Math.min(TEXTS_MAX, n) / 3)).join('')
const set = (...x: unknown[]): Document => people(one, { $set: Object.fromEntries(x.map((each, k) => [`x${k}`, each])) }, { $match: { x0: -1 } })
const short = map(range(2_000), { $concat: ['$land', { $toString: '$$this' }] })
const withLong = (n: number): object => ({ $concatArrays: [[{ $concat: [ignored(n), '$land'] }], short] })
const UNWOUND = [{ $match: { land: 'one' } }, { $set: { z: range(3_000) } }, { $unwind: '$z' }]
const accumulators = (by: unknown): Document => ({ $group: { _id: null, ...Object.fromEntries(many(50, (k) => [`m${k}`, by])) } })

const BY_SIZE: Readonly<Record<string, (n: number) => Document>> = {
  $in: (n) => set(map(range(100), { $in: [{ $concat: [ignored(n), '$land'] }, short] })),
  $indexOfArray: (n) => set(map(range(100), { $indexOfArray: [short, { $concat: [ignored(n), '$land'] }] })),
  '$eq in a loop': (n) => set({ $filter: { input: range(9_000), cond: { $eq: [ignored(n), '$land'] } } }),
  $min: (n) => set({ $min: withLong(n) }),
  '$max of many': (n) => set({ $max: [{ $concat: [ignored(n), '$land'] }, ...many(900, () => '$land')] }),
  $setUnion: (n) => set({ $setUnion: [withLong(n), map(range(2_000), { $concat: ['\u200b', '$land'] })] }),
  $setIntersection: (n) => set({ $setIntersection: [map(range(n), ignored(500)), map(range(n), { $concat: [ignored(500), '$land'] })] }),
  $sortArray: (n) => set({ $sortArray: { input: withLong(n), sortBy: 1 } }),
  $maxN: (n) => set({ $maxN: { n: 5, input: withLong(n) } }),
  $switch: (n) => set({ $switch: { branches: many(900, () => ({ case: { $eq: [{ $concat: [ignored(n), '$land'] }, '$land'] }, then: 1 })), default: 0 } }),
  $bucket: (n) => people(one, { $bucket: { groupBy: { $concat: [ignored(n), 'zz'] }, boundaries: many(500, (k) => `a${String(k).padStart(3, '0')}`), default: 'x' } }),
  'a key': (n) => people(...UNWOUND, { $group: { _id: many(20, () => ({ $concat: [ignored(n), '$land'] })) } }),
  'a sort': (n) => people(...UNWOUND, { $set: { t: { $concat: [ignored(n), '$land'] } } }, { $sort: { t: 1, z: 1 } }),
  'a partition': (n) => people(...UNWOUND, { $setWindowFields: { partitionBy: { $concat: [ignored(n), '$land'] }, sortBy: { z: 1 }, output: { w: { $sum: 1 } } } }),
  'many ranks': (n) => people(...UNWOUND, { $set: { t: { $concat: [ignored(6_000), '$land'] } } }, { $setWindowFields: { sortBy: { t: 1 }, output: Object.fromEntries(many(Math.min(n, 900), (k) => [`w${k}`, { $rank: {} }])) } }, { $match: { w0: -5 } }),
  ...Object.fromEntries(
    ['$min', '$addToSet'].map((name) => [`many ${name}`, (n: number) => people(...UNWOUND, accumulators({ [name]: { $concat: [ignored(n), '$land'] } }))]),
  ),
  'many $min of a text from another document': (n) =>
    people(one, { $set: { t: withLong(n) } }, { $unwind: '$t' }, accumulators({ $min: '$t' })),
  'a key from another document': (n) =>
    people(one, { $set: { t: { $concatArrays: [[{ $concat: [ignored(n), '$land'] }], map(range(3_000), '$land')] } } }, { $unwind: '$t' }, { $group: { _id: many(50, () => '$t') } }),
  'a lookup of a computed text': (n) => people(one, { $set: { t: { $concat: [ignored(n), '$land'] } } }, { $lookup: { from: 'people', localField: 't', foreignField: 'tags', as: 'o' } }),
  'a list in a lookup': (n) => people(one, { $set: { t: withLong(n) } }, { $lookup: { from: 'people', localField: 't', foreignField: '_id', as: 'o' } }),
  'a filter': (n) => people({ $match: { tags: { $lt: ignored(n) } } }),
  'a filter by a list': (n) => people({ $match: { land: { $in: [ignored(n), ...many(1_900, (k) => `a${k}`)] } } }),
  'a filter by many texts': (n) => people({ $match: { $or: many(1_000, (k) => ({ land: k === 0 ? ignored(n) : `a${k}` })) } }),
  'a filter on a computed text': (n) => people(one, { $set: { t: { $concat: [ignored(n), '$land'] } } }, { $match: { $nor: many(1_000, (k) => ({ t: `a${k}` })) } }),
  'a filter by $all on a computed list': (n) => people(one, { $set: { t: short } }, { $match: { t: { $all: [ignored(n), 'b'] } } }),
  'a filter by $elemMatch': (n) => people({ $match: { tags: { $elemMatch: { $gt: 'a', $lt: ignored(n) } } } }),
  'marks in a filter': (n) => people({ $match: { land: { $lt: marks(n) } } }),
  'marks in $in': (n) => people({ $match: { land: { $in: [marks(n), `a${marks(n / 2)}`] } } }),
  'marks in an expression': (n) => set({ $lt: [{ $concat: ['$land', marks(n)] }, { $concat: [{ $toUpper: '$land' }, marks(n)] }] }),
  'marks as a key': (n) => people(one, { $group: { _id: { $concat: ['$land', marks(n)] } } }),
  'marks that are joined': (n) => set({ $lt: [{ $reduce: { input: range(Math.min(n, 9_000)), initialValue: '$land', in: { $concat: ['$$value', '\u0f71'] } } }, { $concat: [{ $toUpper: '$land' }, marks(n)] }] }),
  'marks of a stored text': (n) => set({ $let: { vars: { m: { $substrCP: ['$name', 1, 1] } }, in: { $lt: [{ $reduce: { input: range(Math.min(n, 9_000)), initialValue: '$land', in: { $concat: ['$$value', '$$m'] } } }, { $reduce: { input: range(Math.min(n, 9_000)), initialValue: { $toUpper: '$land' }, in: { $concat: ['$$value', '$$m'] } } }] } } }),
}

const STORED: Readonly<Record<string, Document>> = {
  'each stored text compared with all': set({ $size: map('$tags', { $in: ['$$this', '$tags'] }) }),
  'a stored text searched in a list': set({ $in: ['$name', short] }, { $indexOfArray: [short, '$name'] }),
  'a sort of stored texts': set({ $sortArray: { input: '$tags', sortBy: 1 } }),
  'sets of stored texts': set({ $setUnion: ['$tags', short] }, { $setIntersection: [short, '$tags'] }),
  'the least stored text': set(...many(20, () => ({ $min: '$tags' }))),
  'many tests of a stored text': people({ $match: { $nor: many(600, (k) => ({ name: `a${k}` })) } }),
  'a group by stored texts': people({ $match: { land: 'long' } }, { $set: { z: range(3_000) } }, { $unwind: '$z' }, { $group: { _id: many(20, () => '$name') } }),
}

export const COLLATED: readonly Heavy[] = [
  ...Object.entries(BY_SIZE).map(([name, body]) => ({ name: `by a collation: ${name}`, body })),
  ...Object.entries(STORED).flatMap(([name, body]) =>
    ['one', 'long'].map((land) => ({
      name: `by a collation, of ${land} stored texts: ${name}`,
      body: () => JSON.parse(JSON.stringify(body).replace('"land":"one"', `"land":"${land}"`)),
      sizes: [1],
    })),
  ),
]

export const COLLATED_PEOPLE: readonly Document[] = [
  { land: 'one', name: 'a\u0f71b', tags: many(1_000, (k) => `t${k}`) },
  { land: 'long', name: '\u200b'.repeat(80_000), tags: ['\u200b'.repeat(80_000), ...many(1_000, (k) => `t${k}`)] },
]
