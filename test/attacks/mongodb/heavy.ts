// Families of the heaviest queries that the guard allows. Each query has a size n. It multiplies documents by
// constants, or works for long on one document.
import type { Document } from 'mongodb'

export interface Heavy {
  readonly name: string
  readonly body: (n: number) => Document
  /** The sizes to run. If absent, only the largest size that the guard allows. */
  readonly sizes?: readonly number[]
}

const people = (...pipeline: Document[]): Document => ({ collection: 'people', pipeline })
const range = (n: number): object => ({ $range: [0, Math.min(10_000, Math.ceil(n))] })
const map = (input: unknown, body: unknown, as = 'this'): object => ({ $map: { input, as, in: body } })
const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: Math.ceil(n) }, (_, k) => make(k))
/** Makes a loop of n steps. A range may have 10,000 elements at most, so a longer loop is two nested loops. */
const loop = (n: number, body: unknown): object =>
  n <= 10_000 ? map(range(n), body) : map(range(n / 5_000), map(range(5_000), body), 'outer')
const set = (x: unknown): Document => people({ $set: { x: { $size: x } } }, { $match: { x: -1 } })
const grouped = (x: unknown): Document => people({ $project: { name: 1, since: 1 } }, { $group: { _id: { $size: x } } })

/**
 * Makes n characters after the document's name. Because of the name, the server cannot compute the text once for all
 * documents.
 */
const text = (n: number, of = 'x'): object => ({ $concat: ['$name', of.repeat(Math.ceil(n / of.length))] })
/** Repeats each of 60 documents 10,000 times, which makes 600,000 documents. */
const MULTIPLIED = [{ $project: { name: 1 } }, { $set: { r: range(10_000) } }, { $unwind: '$r' }]
const all = (n: number, ...then: Document[]): Document =>
  people(...MULTIPLIED, { $limit: n }, { $group: { _id: null, all: { $push: '$r' }, names: { $push: '$name' } } }, ...then)
/**
 * Numbers of gathered documents below and above the guard's limits. The guard cannot compute the lengths of these
 * arrays.
 */
const LENGTHS = [1_000, 2_000, 5_000, 50_000, 500_000]

const buckets = (output: object): Document =>
  people(...MULTIPLIED, { $limit: 20_000 }, { $bucketAuto: { groupBy: '$r', buckets: 1, output } }, { $match: { _id: -5 } })
/** n conditions on a field that has an index and is never an array. */
const excluding = (n: number, make: (k: number) => object): Document => people({ $match: { $and: many(n, (k) => ({ _id: make(k) })) } })
/** Window outputs over 20,000 MULTIPLIED documents. */
const windows = (output: object, sortBy = {}): Document =>
  people(...MULTIPLIED, { $limit: 20_000 }, { $setWindowFields: { ...sortBy, output } }, { $match: { r: -5 } })
const outputs = (n: number, make: (k: number) => object): object => Object.fromEntries(many(Math.min(n, 900), (k) => [`s${k}`, make(k)]))
/** Makes decimals that differ, but are equal as doubles and so have the same hash. */
const colliding = (x: unknown): object => ({ $add: [{ $numberDecimal: '1' }, { $multiply: [{ $numberDecimal: '1E-25' }, x] }] })

const alone = (x: unknown): object => ({ $concatArrays: [[x]] })

/** Decimals with equal hashes that depend on the document, so mongod computes them for each document. */
const ofName = colliding({ $add: ['$$this', { $multiply: [0, { $strLenCP: '$name' }] }] })

const OPERATORS: Readonly<Record<string, (n: number) => unknown>> = {
  $add: (n) => loop(n, { $add: ['$$this', { $strLenBytes: '$name' }] }),
  $pow: (n) => loop(n, { $pow: [{ $convert: { input: '1.000001', to: 'decimal' } }, '$$this'] }),
  $convert: (n) => loop(n, { $convert: { input: '$name', to: 'date', onError: '$$this' } }),
  $dateToString: (n) => loop(n, { $dateToString: { date: '$since', format: '%Y %j %H %M %S %L '.repeat(20), timezone: 'Europe/Brussels' } }),
  $dateFromString: (n) => loop(n, { $dateFromString: { dateString: '1 January 2024 10:00', onError: '$$this' } }),
  $dateDiff: (n) => loop(n, { $dateDiff: { startDate: '$since', endDate: '$$NOW', unit: 'month', timezone: 'Europe/Brussels' } }),
  $setUnion: (n) => loop(n, { $setUnion: [range(1000), ['$$this']] }),
  '$setUnion of one': (n) => ({ $setUnion: [loop(n, { $concat: ['$name', { $toString: '$$this' }] }), ['x']] }),
  $setIntersection: (n) => loop(n, { $setIntersection: [range(1000), range(2000)] }),
  '$setEquals of many sets': (n) => alone({ $setEquals: [range(10_000), ...many(Math.min(n, 3_000), () => ['$name'])] }),
  $in: (n) => loop(n, { $in: ['$name', range(10_000)] }),
  $indexOfArray: (n) => loop(n, { $indexOfArray: [range(10_000), '$name'] }),
  $sortArray: (n) => loop(n, { $sortArray: { input: { $reverseArray: range(5_000) }, sortBy: 1 } }),
  '$sortArray of objects': (n) => loop(n, { $sortArray: { input: map(range(1_000), { a: { $mod: ['$$this', 7] }, b: '$name', c: '$$this' }), sortBy: { b: 1, a: -1, c: 1 } } }),
  $concatArrays: (n) => loop(n, { $concatArrays: [range(10_000), ['$name']] }),
  $zip: (n) => loop(n, { $zip: { inputs: [range(3_000), range(3_000), ['$name']] } }),
  $mergeObjects: (n) => loop(n, { $mergeObjects: [{ $arrayToObject: [map(range(100), [{ $toString: '$$this' }, '$name'])] }, { a: 1 }] }),
  $regexMatch: (n) => loop(n, { $regexMatch: { input: '$name', regex: '(a|m)*[^m]e(.*)[yz]' } }),
  '$regexMatch of a long text': (n) => alone({ $regexMatch: { input: text(n), regex: 'x*[yz]' } }),
  '$regexMatch twice repeated': (n) => alone({ $regexMatch: { input: text(n), regex: 'x*x*[yz]' } }),
  '$regexMatch three times': (n) => alone({ $regexMatch: { input: text(n), regex: 'x*x*x*[yz]' } }),
  '$regexMatch that looks ahead': (n) => alone({ $regexMatch: { input: text(n), regex: 'x(?=.*[yz])' } }),
  '$regexMatch by many ways': (n) => alone({ $regexMatch: { input: text(n), regex: many(100, (k) => `x${k}y`).join('|') } }),
  $regexFindAll: (n) => ({ $regexFindAll: { input: text(n), regex: 'x' } }),
  '$regexFindAll of nothing': (n) => ({ $regexFindAll: { input: text(n), regex: '' } }),
  '$regexFindAll with groups': (n) => ({ $regexFindAll: { input: text(n), regex: '()()()()()()()()(x)' } }),
  '$regexFindAll that looks ahead': (n) => ({ $regexFindAll: { input: text(n), regex: 'x(?=.*[yz])' } }),
  $split: (n) => ({ $split: [text(n), 'x'] }),
  '$split by what is not there': (n) => ({ $split: [text(n), `${'x'.repeat(2_000)}y`] }),
  $trim: (n) => alone({ $trim: { input: text(n), chars: `Name ${'0123456789'.repeat(200)}x` } }),
  $indexOfCP: (n) => alone({ $indexOfCP: [text(n), `${'x'.repeat(2_000)}y`] }),
  $replaceAll: (n) => alone({ $replaceAll: { input: text(n), find: 'x', replacement: 'yy' } }),
  $toUpper: (n) => loop(n, { $toUpper: text(5_000) }),
  $strcasecmp: (n) => loop(n, { $strcasecmp: [text(5_000), text(5_000)] }),
  '$concat in a loop': (n) => loop(n, { $concat: ['$name', 'x'.repeat(2_000)] }),
  'a text that grows': (n) => alone({ $reduce: { input: range(n), initialValue: '', in: { $concat: ['$$value', '$name', { $toString: '$$this' }] } } }),
  'a list that grows': (n) => ({ $reduce: { input: range(n), initialValue: [], in: { $concatArrays: ['$$value', ['$$this', '$name']] } } }),
  'a set that grows': (n) => ({ $reduce: { input: range(n), initialValue: [], in: { $setUnion: ['$$value', ['$$this', '$name']] } } }),
  'an object that grows': (n) => alone({ $reduce: { input: range(n), initialValue: {}, in: { $mergeObjects: ['$$value', { $arrayToObject: [[[{ $concat: ['$name', { $toString: '$$this' }] }, 1]]] }] } } }),
  'whole documents': (n) => loop(n, '$$ROOT'),
  'parts of whole documents': (n) => loop(n, { $objectToArray: '$$ROOT' }),
  objects: (n) => loop(n, { a: '$$this', b: { c: '$$this', d: { e: '$name' } } }),
  'a range whose end is a product': (n) => ({ $range: [0, { $multiply: many(3, () => ({ $size: range(n) })) }] }),
  'a range far below 0': (n) => ({ $range: [0, { $min: [-1e5 * n, 5] }, -1] }),
  'nested ranges whose ends are products': (n) => map({ $range: [0, { $multiply: [{ $size: range(n) }, 10] }] }, { $range: [0, { $multiply: [{ $size: range(n) }, 10] }] }),
  'a search for a value in a stored array, for each of its elements': () => map('$tags', { $in: [-1, '$tags'] }),
  'three nested loops over a stored array': () => map('$tags', map('$tags', map('$tags', 1))),
  'a stored text for each element of an array': () => map('$tags', { $concat: ['$name', 'x'] }),
  'a search for each piece of a text among its pieces': () => map({ $split: ['$name', 'a'] }, { $in: ['$$this', { $split: ['$name', 'b'] }] }),
  'a few doublings': (n) => ({ $reduce: { input: range(16), initialValue: map(range(n), '$name'), in: { $concatArrays: ['$$value', '$$value'] } } }),
}

/**
 * Each operator runs in a $group, because an old mongod then processes the most documents between two checks for a
 * cancel. Each fourth operator also runs in a $set.
 */
const one: readonly Heavy[] = Object.entries(OPERATORS).flatMap(([name, x], k) => [
  { name: `${name}, grouped`, body: (n: number) => grouped(x(n)) },
  ...(k % 4 === 0 ? [{ name: `${name}, set`, body: (n: number) => set(x(n)) }] : []),
])

/** Takes about 4 n steps. */
const work = (n: number): object => ({ $size: loop(n, { $add: [1, '$$this'] }) })

/**
 * Queries on one document that is far larger than all others. It has an array of 60,000 elements, an array of objects,
 * and a long string.
 */
const OF_LARGE: Readonly<Record<string, readonly Document[]>> = Object.fromEntries(
  Object.entries<unknown>({
    'work for each element': map('$tags', { $size: loop(3_000, { $add: [1, '$$this'] }) }, 'e'),
    'work where elements are filtered': { $filter: { input: '$tags', as: 'e', cond: { $eq: [{ $size: loop(3_000, { $add: [1, '$$this'] }) }, 1] } } },
    'work for each value that replaced an element': map(map('$tags', 1), { $size: loop(3_000, { $add: [1, '$$this'] }) }, 'e'),
    'work for each of two joined arrays': map({ $zip: { inputs: [map('$tags', 1), '$tags'] } }, { $size: loop(3_000, { $add: [1, '$$this'] }) }, 'e'),
    'a text for each element': map('$tags', { $concat: [{ $substrBytes: ['$name', 0, 3] }, 'x'.repeat(20_000)] }),
    'a text that grows with each element': alone({ $reduce: { input: '$tags', initialValue: '', in: { $concat: ['$$value', 'x'.repeat(500), { $toString: '$$this' }] } } }),
    'the array many times': { $concatArrays: many(600, () => '$tags') },
    'the array zipped with itself': { $zip: { inputs: many(400, () => '$tags') } },
    'all matches in a long text': { $regexFindAll: { input: '$name', regex: '.' } },
    'many branches in a long text': alone({ $regexMatch: { input: '$name', regex: many(300, (k) => `a${k}y`).join('|') } }),
    'a long text that is trimmed': alone({ $trim: { input: '$name', chars: `${'0123456789'.repeat(400)}aé ` } }),
    'a long text that is searched': { $split: ['$name', `${'aé '.repeat(1_000)}y`] },
    'pieces of a long text': map({ $split: ['$name', ' '] }, { $size: loop(3_000, { $add: [1, '$$this'] }) }, 'e'),
    'nested ranges of the length of the array': map({ $range: [0, { $min: [9_000, { $size: '$tags' }] }] }, { $size: map({ $range: [0, { $min: [9_000, { $size: '$tags' }] }] }, { $add: [1, '$$this'] }) }, 'e'),
    'the first elements of the array': map({ $firstN: { n: 60_000, input: '$tags' } }, work(9_000), 'e'),
    'as many elements as a slice takes': map({ $slice: ['$tags', 60_000] }, work(9_000), 'e'),
    'as many elements as a filter takes': map({ $filter: { input: '$tags', cond: true, limit: 60_000 } }, work(9_000), 'e'),
    'a text for each of the first elements of the array': map({ $firstN: { n: 60_000, input: '$tags' } }, { $concat: ['$land', 'x'.repeat(20_000)] }, 'e'),
    'many copies joined': map({ $concatArrays: many(30, () => '$tags') }, work(60), 'e'),
    'a field of the object that replaced an element': { $let: { vars: { t: map('$tags', { k: 1 }) }, in: map('$$t.k', work(3_000), 'e') } },
    'pieces of a text as long as the array': map({ $split: [{ $reduce: { input: { $range: [0, { $divide: [{ $size: '$tags' }, 10] }] }, initialValue: '', in: { $concat: ['$$value', 'a'] } } }, 'a'] }, work(9_000), 'e'),
    'an object as large as the array': map({ $objectToArray: { $mergeObjects: [{ $arrayToObject: [map({ $range: [0, { $divide: [{ $size: '$tags' }, 10] }] }, [{ $toString: '$$this' }, 1])] }, { a: 1 }] } }, work(20_000), 'e'),
    'the array joined for each element': { $reduce: { input: '$tags', initialValue: [], in: { $concatArrays: ['$$value', '$tags'] } } },
  }).map(([name, x]) => [name, [{ $set: { x: { $size: x } } }, { $match: { x: -1 } }]]),
)
const twice = { $concatArrays: [1, 1].map(() => ({ $sortArray: { input: '$t', sortBy: 1 } })) }
const LARGE: readonly Heavy[] = Object.entries<readonly Document[]>({
  ...OF_LARGE,
  'sorted and doubled': [{ $set: { t: '$tags' } }, ...many(9, () => ({ $set: { t: twice } })), { $match: { t: -1 } }],
  'a field below a stored array': [{ $set: { 'cards.x': { $size: loop(3_000, { $add: [1, '$$this'] }) } } }, { $match: { 'cards.x': -1 } }],
  'a redaction of stored objects': [{ $redact: { $cond: [{ $eq: [{ $size: loop(3_000, { $add: [1, '$$this'] }) }, -1] }, '$$PRUNE', '$$DESCEND'] } }, { $group: { _id: '$cards' } }],
  'many tests of each element': [{ $match: { $nor: many(3_000, (k) => ({ tags: { $mod: [1_000 + k, 999] } })) } }],
  'many patterns in a long text': [{ $match: { name: { $in: many(400, (k) => ({ $regularExpression: { pattern: `a${k}y|a${k}z`, options: '' } })) } } }],
}).map(([name, pipeline]) => ({ name: `the large document: ${name}`, body: () => people({ $match: { land: 'large' } }, ...pipeline), sizes: [1] }))

const ints = (n: number): number[] => Array.from({ length: n }, (_, k) => k % 7)
const cards = (n: number): Document[] => ints(n).map((exp) => ({ brand: 'visa', exp }))
/**
 * Each array and text of these documents is short, but all together are long. The field `land` or `state` selects the
 * documents of one query.
 */
export const TOGETHER: Readonly<Record<'people' | 'orders', readonly Document[]>> = {
  people: [
    { land: 'pair', tags: ints(20_000), cards: [], score: 1, boss: 'none' },
    { land: 'nulls', tags: many(800_000, () => null), score: 1 },
    { land: 'numbers', tags: [...many(400_000, () => 0), ...many(1_000, (k) => k + 1)], score: 1 },
    { land: 'points', tags: many(150_000, () => [0.1, 0.1]), score: 1 },
    { land: 'ring', tags: { type: 'Polygon', coordinates: [many(40_001, (k) => [Math.cos((k % 40_000) / 6366), Math.sin((k % 40_000) / 6366)])] } },
    { land: 'unwound', name: 'unwound', tags: many(300, (k) => k), cards: many(200_000, () => ({ brand: 'visa' })) },
    { land: 'ids', tags: many(300, (k) => `order ${k}`) },
    { land: 'nested list', tags: [[...many(400_000, () => 0), ...many(1_000, (k) => k + 1)]] },
    { land: 'many cards', cards: cards(150_000) },
    { land: 'lines', name: '\n'.repeat(1_000_000) },
    { land: 'many texts', tags: many(3_000, () => `${'a'.repeat(32)}!`) },
    { land: 'lower-case words', name: 'lower case words '.repeat(3_000) },
    { land: 'many lines', tags: many(8_000, () => many(14, (k) => `field${k}`).join(',')) },
    { land: 'Greek words', name: 'τρία ελληνικά γράμματα '.repeat(130) },
    { land: 'dates', tags: many(60_000, () => '2020-01-01T00:00:00.000Z') },
    { land: 'empty cards', cards: many(300_000, () => ({})) },
    { land: 'one card', cards: [{ brand: ints(30_000) }], score: 1 },
    { land: 'pair', tags: [], cards: cards(20_000), name: 'x'.repeat(4_000_000), score: 2 },
    { land: 'chain', tags: ints(3_000), cards: [], boss: 'root' },
    { _id: 'root', land: 'root', tags: [], cards: cards(3_000) },
    ...many(200, () => ({ land: 'text', tags: ints(190), name: 'lorem ipsum '.repeat(200) })),
    { land: 'longer text', tags: ints(190), name: 'lorem ipsum '.repeat(900) },
    { land: 'object', cards: { brand: ints(3_000), exp: ints(3_000) } },
    { land: 'nested', cards: [{ brand: ints(3_000), exp: ints(3_000) }] },
  ],
  orders: [
    { state: 'pair', extra: ints(20_000), lines: [], total: 1 },
    { state: 'pair', extra: [], lines: cards(20_000).map(({ exp }) => ({ sku: 'x', n: exp })), total: 2 },
    { state: 'text', extra: [], lines: [], person: 'x'.repeat(4_000_000) },
    { state: 'both', extra: ints(900), lines: ints(900).map((n) => ({ sku: 'x', n })) },
  ],
}
const pairs = (one: unknown, other: unknown): object => ({ $size: map(one, { $size: map(other, work(20), 'f') }, 'e') })
const texts = (one: unknown, text: string): object => ({ $size: map(one, { $eq: [{ $concat: [text, 'x'] }, '$$e'] }, 'e') })
const computed = (x: object): Document[] => [{ $set: { x } }, { $match: { x: -1 } }]
const joinedTo = (state: string, x: object): Document => ({ $lookup: { from: 'orders', let: { t: '$tags' }, as: 'o', pipeline: [{ $match: { state } }, ...computed(x)] } })
const element = (place: number): object => ({ $arrayElemAt: ['$o', place] })
const rangeOfTags = { $range: [0, { $size: '$tags' }] }
const both = { $concatArrays: ['$$t', '$extra'] }
/**
 * The guard once allowed each of these queries. In many of them, the work is a product of values of several documents,
 * or of several places in one document.
 */
const across: readonly Heavy[] = Object.entries<readonly [land: string, ...pipeline: Document[]]>({
  'a loop over one array, and inside it over a list that joins an outer and an inner array': ['pair', joinedTo('pair', pairs('$extra', { $concatArrays: ['$$t', '$lines'] }))],
  'a loop over a list that joins an outer and an inner array, and inside it over another array': ['pair', joinedTo('pair', pairs({ $concatArrays: ['$$t', '$lines'] }, '$extra'))],
  'nested loops over lists that join an outer and an inner array': ['pair', joinedTo('both', pairs(both, both))],
  'nested ranges by the sizes of an outer and an inner array': ['pair', joinedTo('pair', pairs({ $range: [0, { $size: '$$t' }] }, { $range: [0, { $size: '$extra' }] }))],
  'a text of the joined document for each element of the outer array': ['pair', joinedTo('text', texts('$$t', '$person'))],
  'arrays from the first and the last document of a group': ['pair', { $sort: { score: 1 } }, { $group: { _id: null, a: { $first: '$tags' }, b: { $last: '$cards' } } }, ...computed(pairs('$a', '$b'))],
  'a text from the last document of a group, for each element from the first': ['pair', { $sort: { score: 1 } }, { $group: { _id: null, a: { $first: '$tags' }, b: { $last: '$name' } } }, ...computed(texts('$a', '$b'))],
  'arrays from two documents of one lookup': ['chain', { $lookup: { from: 'orders', as: 'o', pipeline: [{ $match: { state: 'pair' } }, { $sort: { total: 1 } }] } }, { $set: { a: element(0), b: element(1) } }, ...computed(pairs('$a.extra', '$b.lines'))],
  'an array from the preceding document of a window': ['pair', { $setWindowFields: { sortBy: { score: 1 }, output: { p: { $shift: { output: '$tags', by: -1 } } } } }, ...computed(pairs({ $ifNull: ['$p', []] }, '$cards'))],
  'an array from a document that $graphLookup found': ['chain', { $graphLookup: { from: 'people', startWith: '$boss', connectFromField: 'boss', connectToField: '_id', as: 'g' } }, { $set: { b: { $first: '$g' } } }, ...computed(pairs('$tags', '$b.cards'))],
  'a lookup in the same collection': ['pair', { $lookup: { from: 'people', let: { t: '$tags' }, as: 'o', pipeline: [{ $match: { land: 'pair' } }, ...computed(pairs('$$t', '$cards'))] } }],
  'a union, then a group': ['pair', { $unionWith: { coll: 'orders', pipeline: [{ $match: { state: 'pair' } }] } }, { $sort: { score: -1, total: -1 } }, { $group: { _id: null, a: { $first: '$cards' }, b: { $last: '$extra' } } }, ...computed(pairs('$a', '$b'))],
  'a wide pattern for each element': ['text', ...computed({ $size: { $filter: { input: '$tags', cond: { $regexMatch: { input: '$name', regex: 'ips.*t1' } } } } })],
  'a wide pattern in a longer text': ['longer text', ...computed({ $size: { $filter: { input: '$tags', cond: { $regexMatch: { input: '$name', regex: 'ips.*t1' } } } } })],
  'nested loops over two arrays of one element': ['nested', ...computed({ $size: map('$cards', pairs('$$c.brand', '$$c.exp'), 'c') })],
  'a field of an object in a variable': ['object', ...computed({ $let: { vars: { c: '$cards' }, in: pairs('$$c.brand', '$$c.exp') } })],
  'an array that replaced each element': ['pair', ...computed(pairs(map('$tags', '$tags'), '$$e'))],
  'ranges by converted sizes': ['chain', ...computed(pairs({ $range: [0, { $toDouble: { $size: '$tags' } }] }, { $range: [0, { $toDouble: { $size: '$tags' } }] }))],
  'a field that is set by a computed name': ['chain', ...computed({ $let: { vars: { o: { $setField: { field: { $literal: '$q' }, input: { y: '$tags' }, value: { y: 1 } } } }, in: pairs('$$o.y', '$$o.y') } })],
  'a field that a conditional object may replace': ['chain', ...computed({ $let: { vars: { o: { $mergeObjects: [{ y: '$tags' }, { $cond: [{ $eq: ['$land', 'none'] }, { y: 1 }, { z: 1 }] }] } }, in: pairs('$$o.y', '$$o.y') } })],
  'a range in a list': ['chain', ...computed({ $size: map([rangeOfTags], pairs('$$r', '$$r'), 'r') })],
  'ranges of a mapped array': ['chain', ...computed({ $size: map(map([1, 2], rangeOfTags), pairs('$$r', '$$r'), 'r') })],
  'arrays that a $reduce gathers': ['chain', ...computed({ $size: map({ $reduce: { input: [1, 2], initialValue: [], in: { $concatArrays: ['$$value', ['$tags']] } } }, pairs('$$r', '$$r'), 'r') })],
  'fields of a $reduce that swap their values': ['chain', ...computed({ $let: { vars: { r: { $reduce: { input: [1, 2, 3], initialValue: { a: 1, b: 1 }, in: { a: '$$value.b', b: '$tags' } } } }, in: pairs('$$r.a', '$$r.a') } })],
  'equal texts compared': ['pair', ...computed({ $size: map('$cards', { $eq: ['$name', '$name'] }) })],
  'a sort of equal texts, one for each element': ['pair', ...computed({ $size: { $sortArray: { input: map('$cards', '$name'), sortBy: 1 } } })],
  'the whole document in a $redact': ['pair', { $redact: { $cond: [{ $eq: [{ $size: map({ $ifNull: ['$$ROOT.cards', []] }, work(10)) }, -1] }, '$$PRUNE', '$$DESCEND'] } }, { $group: { _id: '$cards' } }],
  'long replacements': ['longer text', ...computed({ $size: map('$tags', { $replaceAll: { input: '$name', find: 'o', replacement: '$name' } }) })],
  'many capture groups over one text': ['longer text', ...computed({ $size: map(range(2_000), { $regexFind: { input: '$name', regex: `^${'('.repeat(50)}l[a-z ]*${')'.repeat(50)}` } }) })],
  'many empty lists zipped': ['pair', ...computed({ $size: { $zip: { inputs: ['$cards', '$cards', ...many(200, () => [])], useLongestLength: true } } })],
  'slices that stay in memory': ['pair', ...computed({ $size: map(range(10_000), { $slice: ['$cards', 60_000] }) })],
  'pieces of a text that stay in memory': ['pair', ...computed({ $size: map(range(20), { $split: ['$name', 'x'] }) })],
  'many stages whose results stay in memory': ['longer text', ...many(12, (k) => ({ $set: { [`k${k}`]: map(range(2_000), { $concat: ['$name', 'x'] }) } })), { $match: { k0: -1 } }],
  'many stages of one loop': ['pair', ...many(36, (k) => ({ $set: { tags: map('$tags', { $add: ['$$this', k, 1, 2, 3] }) } })), { $match: { tags: -1 } }],
  'a size that depends on each element': ['pair', ...computed({ $size: map('$cards', { $split: [{ $concat: ['$$e.brand', '$name'] }, 'z'] }, 'e') })],
  'fields of an object, one of them an array': ['pair', ...computed({ $size: map({ $objectToArray: { a: '$tags', ...Object.fromEntries(many(990, (k) => [`f${k}`, 1])) } }, { $size: map('$cards', work(20), 'c') }) })],
  'elements of a list of two arrays': ['pair', ...computed({ $size: map(['$tags', range(500)], { $size: map('$$r', { $size: map('$cards', work(20), 'c') }) }, 'r') })],
  'an object from which a field was removed': ['pair', ...computed({ $let: { vars: { r: { $unsetField: { field: 'a', input: { a: 1, b: '$tags' } } } }, in: { $size: map('$$r.b', { $size: map('$$r.b', work(5), 'f') }, 'e') } } })],
  'a path in a $redact that the query writes in another place': ['one card', { $set: { brand: [1] } }, { $redact: { $cond: [{ $eq: [{ $size: map({ $ifNull: ['$brand', []] }, { $size: map({ $ifNull: ['$brand', []] }, { $add: ['$$this', '$$e', 1] }) }, 'e') }, -1] }, '$$PRUNE', '$$DESCEND'] } }, { $group: { _id: '$cards' } }],
  'an array behind an unwound range': ['nulls', { $set: { z: range(100) } }, { $unwind: '$z' }, ...computed({ $size: { $filter: { input: '$tags', cond: { $and: many(8, (k) => ({ $ne: ['$$this', k] })) } } } })],
  'a plain filter behind an unwound range': ['nulls', { $set: { z: range(100) } }, { $unwind: '$z' }, { $match: { $or: [{ z: -1 }, { tags: 5 }] } }],
  'a group by an array behind an unwound range': ['nulls', { $set: { z: range(100) } }, { $unwind: '$z' }, { $group: { _id: '$tags', n: { $sum: 1 } } }],
  '$all with many numbers': ['numbers', { $match: { tags: { $all: many(1_000, (k) => k + 1) } } }],
  '$all with many numbers, in a lookup': ['numbers', { $lookup: { from: 'people', as: 'o', pipeline: [{ $match: { tags: { $all: many(1_000, (k) => k + 1) } } }] } }],
  'points in a wide area': ['points', { $match: { tags: { $geoWithin: { $polygon: many(4_000, (k) => [50 + Math.cos(k / 637), 50 + Math.sin(k / 637)]) } } } }],
  'many $top sorted by an array': ['nulls', { $group: { _id: null, ...Object.fromEntries(many(200, (k) => [`a${k}`, { $top: { sortBy: { tags: 1 }, output: '$score' } }])) } }],
  'a lookup by a long array': ['numbers', { $lookup: { from: 'orders', localField: 'tags', foreignField: '_id', as: 'o' } }, { $match: { o: -1 } }],
  'a filter over copies of an array': ['nulls', { $set: { tags: { $concatArrays: many(3, () => '$tags') } } }, { $set: { tags: { $concatArrays: many(3, () => '$tags') } } }, ...computed({ $size: { $filter: { input: '$tags', cond: { $and: many(10, (k) => ({ $ne: ['$$this', k] })) } } } })],
  'an array that is put into itself repeatedly': ['pair', ...many(30, () => ({ $set: { tags: ['$tags', '$tags'] } })), { $group: { _id: '$tags' } }],
  'an object that a projection includes in part': ['pair', { $project: { 'cards.brand': 1, score: 1 } }, ...computed({ $size: map('$cards', { $size: map('$cards', work(20), 'f') }, 'e') })],
  'an object from a $unionWith': ['pair', { $unionWith: 'people' }, ...computed({ $size: map('$cards', { $size: map('$cards', work(20), 'f') }, 'e') })],
  'a field set in a document of unknown shape': ['pair', { $replaceWith: { $mergeObjects: ['$$ROOT', { z: 1 }] } }, { $set: { 'cards.x': 1 } }, ...computed({ $size: map('$cards', { $size: map('$cards', work(20), 'f') }, 'e') })],
  'a path that no element has': ['empty cards', ...computed({ $size: map(range(10_000), { $size: '$cards.brand' }) })],
  'the documents that a lookup by ids finds': ['ids', { $lookup: { from: 'orders', localField: 'tags', foreignField: '_id', as: 'o' } }, ...computed({ $size: map('$o', { $size: map('$o', { $size: map('$o', work(9), 'g') }, 'f') }, 'e') })],
  'an array in an unwound array': ['nested list', { $unwind: '$tags' }, { $match: { tags: { $all: many(1_000, (k) => k + 1) } } }],
  'an array that was pushed again': ['numbers', { $unwind: '$tags' }, { $group: { _id: null, a: { $push: '$tags' } } }, { $match: { a: { $all: many(1_000, (k) => k + 1) } } }],
  'a search for many objects among objects': ['many cards', { $match: { $or: many(60, () => ({ cards: { $in: many(60, (k) => ({ brand: 'x', exp: k })) } })) } }],
  'an object found in each element of an array': ['ids', { $lookup: { from: 'people', pipeline: [{ $limit: 1 }, { $set: { z: range(3_000) } }, { $unwind: '$z' }, { $project: { h: { a: '$land' } } }], as: 'o' } }, { $set: { x: '$o.h' } }, ...computed({ $size: map('$x', { $size: map('$x', { $size: map('$x', 1, 'g') }, 'f') }, 'e') })],
  'a pattern that starts at each line': ['lines', ...computed({ $regexMatch: { input: '$name', regex: '^[^qr]*[qr]', options: 'm' } })],
  'a pattern that starts at each line, in a filter': ['lines', { $match: { name: { $regex: '^[^qr]*[qr]', $options: 'm' } } }],
  'a repeated repetition, in a filter': ['many texts', { $match: { tags: { $regex: '^(?:a+)+$' } } }],
  'repetitions that can share each text': ['many texts', ...computed({ $size: map('$tags', { $regexMatch: { input: '$$this', regex: '^.*.*.*[{};]' } }, 't') })],
  'optional parts of a pattern': ['many texts', ...computed({ $size: map('$tags', { $regexMatch: { input: '$$this', regex: `${'(?:a? ?a? ?)?'.repeat(5)}[qr]` } }, 't') })],
  'a repetition that passes spaces': ['lower-case words', ...computed({ $regexMatch: { input: '$name', regex: '[[:print:]]+[0-9]' } })],
  'a computed shape with many corners': ['ids', { $set: { y: { type: 'Polygon', coordinates: [map(range(8_000), [{ $divide: ['$$this', 1_000] }, { $multiply: [60, { $mod: ['$$this', 2] }] }])] } } }, { $match: { y: { $geoIntersects: { $geometry: { type: 'Point', coordinates: [1, 1] } } } } }],
  'early filters, one after another': ['nulls', ...many(7, () => ({ $match: { $and: many(12, (k) => ({ tags: { $ne: k } })), $nor: many(12, (k) => ({ tags: k })) } }))],
  'a last repetition of a repetition': ['many texts', { $match: { tags: { $regex: '^(?:(?:a+)+z)*!z' } } }],
  'a long repetition with a fixed count': ['lower-case words', { $match: { $or: many(100, (k) => ({ name: { $regex: `.{5000}[{};]${k}` } })) } }],
  'alternatives that are repeated': ['lower-case words', { $match: { $or: many(100, (k) => ({ name: { $regex: `(?:z|y|x|v|[a-u]| )+[{};]${k}` } })) } }],
  'positions in a pattern': ['lower-case words', ...computed({ $size: map(range(300), { $regexMatch: { input: '$name', regex: `${'\\B'.repeat(240)}[X;]` } }) })],
  'positions behind a repetition': ['lower-case words', { $match: { $or: many(20, (k) => ({ name: { $regex: `[a-z]*${'\\B'.repeat(100)}[{};]${k}` } })) } }],
  'groups around a repeated group': ['many lines', { $match: { $or: many(5, (k) => ({ tags: { $regex: `^${'('.repeat(60)}[a-z,0-9]${')'.repeat(60)}+[{};]${k}` } })) } }],
  'captures in a pattern': ['many lines', { $match: { $or: many(5, (k) => ({ tags: { $regex: `${'(.)'.repeat(60)}[{};]${k}` } })) } }],
  'a group with a fixed count, again and again': ['many lines', { $match: { tags: { $regex: `^[^,]*${'(?:,[^,]*){2}[^,]*'.repeat(6)}[{};]` } } }],
  'a class of many letters': ['Greek words', ...computed({ $size: map(range(300), { $regexMatch: { input: '$name', regex: `[${String.fromCodePoint(...many(490, (k) => 0x4e00 + 2 * k))}]` } }) })],
  'a class without case': ['Greek words', { $match: { $or: many(20, (k) => ({ name: { $regex: `[α-ωά-ώ ]{300}[{};]${k}`, $options: 'i' } })) } }],
  'a search for a frequent character': ['dates', { $set: { x: 'a'.repeat(10_000) } }, ...computed({ $size: map('$tags', { $indexOfBytes: ['$x', 'ab'] }) })],
  'large patterns': ['pair', { $match: { $or: many(1_500, (k) => ({ name: { $regex: `(?:.?){0,3000}[{}]${k}` } })) } }],
  'the first of many by an array': ['pair', { $set: { y: range(9_000) } }, { $set: { z: range(3_000) } }, { $unwind: '$z' }, { $group: { _id: null, q: { $topN: { n: 3, sortBy: { y: 1 }, output: '$z' } } } }],
  'groups with a lookahead': ['lines', ...computed({ $concatArrays: many(30, (k) => ({ $regexFindAll: { input: { $substrBytes: ['$name', k, 11_000] }, regex: '^(?=([\\s\\S]*))', options: 'm' } })) })],
  'dates in texts': ['dates', ...computed({ $size: map(range(40), { $size: map('$tags', { $toDate: '$$this' }, 'd') }) })],
  'fields removed from each element': ['many cards', { $set: { z: range(3_000) } }, { $unwind: '$z' }, ...many(10, (k) => ({ $unset: `cards.y${k}` })), { $match: { $expr: { $eq: [{ $add: ['$z', 1] }, -5] } } }],
  'fields of each element set by a window': ['many cards', { $setWindowFields: { sortBy: { land: 1 }, output: Object.fromEntries(many(150, (k) => [`cards.w${k}`, { $sum: 1, window: { documents: ['unbounded', 'current'] } }])) } }],
  'fields of each element set by $fill': ['many cards', { $fill: { output: Object.fromEntries(many(150, (k) => [`cards.w${k}`, { value: 1 }])) } }],
  'an array by $getField for each copy': ['nulls', { $set: { z: range(3_000) } }, { $unwind: '$z' }, { $match: { $expr: { $eq: [{ $size: { $getField: 'tags' } }, '$z'] } } }],
  'an empty $elemMatch, many times': ['nulls', { $match: { $or: many(2_000, () => ({ tags: { $elemMatch: {} } })) } }],
  'an array that is parsed for each copy': ['nulls', { $set: { z: range(2_000) } }, { $unwind: '$z' }, { $set: { y: '$z' } }, { $match: { $expr: { $eq: [{ $size: '$tags' }, '$y'] } } }],
  'an array that is compared with itself': ['nulls', ...computed({ $size: map(range(200), { $eq: ['$tags', '$tags'] }) })],
  'an area with many corners': ['ring', { $match: { $or: many(30, (k) => ({ tags: { $geoIntersects: { $geometry: { type: 'Polygon', coordinates: [[[k, 50], [k + 1, 50], [k + 1, 51], [k, 50]]] } } } })) } }],
  'loops in the sums of a window': ['text', { $setWindowFields: { sortBy: { score: 1 }, output: { x: { $sum: { $sum: map('$tags', { $sum: map('$tags', { $add: ['$$this', '$$e'] }) }, 'e') } } } } }, { $match: { x: -1 } }],
}).map(([name, [land, ...pipeline]]) => ({ name: `across: ${name}`, body: () => people({ $match: { land } }, ...pipeline), sizes: [1] }))

/** The last query reads people_view, which unwinds the tags. */
export const ACROSS: readonly Heavy[] = [
  ...across,
  { name: 'across: a view that unwinds', body: () => ({ collection: 'people_view', pipeline: [{ $match: { name: 'unwound' } }, { $project: { name: 1 } }] }), sizes: [1] },
]

/** Makes a group of 3,000 documents that share an array and an object. Its n accumulators read both. */
const accumulated = (n: number, by: object): Document =>
  people({ $limit: 1 }, { $set: { t: map(range(8_000), 'abcdefg') } }, { $set: { o: { $let: { vars: { v: '$t' }, in: { a: '$$v' } } }, z: range(3_000) } }, { $unwind: '$z' }, { $group: { _id: null, ...Object.fromEntries(many(Math.min(n, 900), (k) => [`q${k}`, by])) } }, { $count: 'n' })

const stages: readonly Heavy[] = [
  ...['$minN', '$maxN', '$firstN'].map((name) => ({ name: `a group with many ${name} of an array`, body: (n: number) => accumulated(n, { [name]: { n: 1, input: '$t' } }) })),
  ...['$min', '$addToSet', '$last'].map((name) => ({ name: `a group with many ${name} of an object`, body: (n: number) => accumulated(n, { [name]: '$o' }) })),
  ...['$topN', '$bottomN'].map((name) => ({ name: `a group with many ${name} sorted by an object`, body: (n: number) => accumulated(n, { [name]: { n: 1, sortBy: { o: 1 }, output: 1 } }) })),
  { name: 'a loop in the sums of a group', body: (n) => people({ $project: { name: 1 } }, { $group: { _id: null, ...Object.fromEntries(many(20, (k) => [`n${k}`, { $sum: { $size: loop(n / 20, { $add: [k, '$$this'] }) } }])) } }) },
  { name: 'a loop in a filter', body: (n) => people({ $limit: 1000 }, { $match: { $expr: { $eq: [{ $size: loop(n, { $concat: ['$name', 'x'] }) }, -1] } } }) },
  { name: 'a loop for many documents', body: (n) => people(...MULTIPLIED, { $group: { _id: { $size: loop(n, { $add: ['$r', '$$this'] }) } } }) },
  { name: 'stages side by side', body: (n) => people(...many(20, (k) => ({ $set: { [`f${k}`]: loop(n / 20, { $concat: ['$name', 'abc'] }) } })), { $match: { f0: -1 } }) },
  { name: 'a field of each element', body: (n) => people({ $set: { t: map(range(5_000), { k: '$$this' }) } }, { $set: { 't.x': { $size: loop(n, { $add: [1, '$$this'] }) } } }, { $match: { t: -1 } }) },
  { name: 'by the boundaries of a bucket', body: (n) => people({ $bucket: { groupBy: { $add: [-5, { $size: loop(n, { $concat: ['$name', '$name'] }) }, { $multiply: [-1, { $size: loop(n, 1) }] }] }, boundaries: many(500, (k) => k), default: 'x' } }) },
  { name: 'a wide bucket', body: (n) => people({ $bucketAuto: { groupBy: { $size: loop(n, { $concat: ['$name', 'x'] }) }, buckets: 5 } }) },
  { name: 'a sum over buckets', body: (n) => buckets({ x: { $sum: { $size: loop(n, { $add: ['$r', '$$this'] }) } } }), sizes: [10, 3_000] },
  { name: 'many sums over buckets', body: (n) => buckets(outputs(n, (k) => ({ $sum: { $add: ['$r', k] } }))) },
  { name: 'many counts over buckets', body: (n) => buckets(outputs(n, () => ({ $count: {} }))) },
  { name: 'many sort keys over buckets', body: (n) => buckets(outputs(n, () => ({ $top: { sortBy: { r: -1 }, output: 1 } }))) },
  { name: 'many lists in buckets', body: (n) => buckets(outputs(n, () => ({ $push: { $concat: ['$name', 'x'.repeat(300)] } }))) },
  { name: '$setEquals of equal hashes', body: (n) => people({ $limit: 1 }, { $set: { x: { $setEquals: [map(range(n), ofName), map(range(n), ofName)] } } }, { $match: { x: -1 } }), sizes: [10_000] },
  { name: '$setIsSubset of equal hashes', body: (n) => people({ $limit: 1 }, { $set: { x: { $setIsSubset: [map(range(n), ofName), map(range(n), ofName)] } } }, { $match: { x: -1 } }), sizes: [10_000] },
  { name: '$setUnion of equal hashes', body: (n) => people({ $limit: 1 }, { $set: { x: { $setUnion: [map(range(n), ofName), map(range(n), ofName)] } } }, { $match: { x: -1 } }), sizes: [10_000] },
  { name: 'many excluded values', body: (n) => excluding(n, (k) => ({ $ne: k })) },
  { name: 'many excluded values, by $not', body: (n) => excluding(n, (k) => ({ $not: { $eq: k } })) },
  { name: 'many excluded lists', body: (n) => excluding(n, (k) => ({ $nin: many(10, (j) => 10 * k + j) })) },
  { name: 'many excluded values, by $nor', body: (n) => people({ $match: { $and: many(n, (k) => ({ $nor: [{ _id: k }] })) } }) },
  { name: 'many ranges in many $or', body: (n) => people({ $match: { $and: many(n / 70, (k) => ({ $or: many(70, (j) => ({ _id: { $gt: j, $lt: k } })) })) } }) },
  { name: 'many equalities in an $expr', body: (n) => people({ $match: { $expr: { $or: many(n, (k) => ({ $eq: ['$_id', k] })) } } }) },
  { name: 'many short lists in an $or', body: (n) => people({ $match: { $or: many(n, (k) => ({ _id: { $in: [k, -k - 1] } })) } }) },
  { name: 'many excluded values in a lookup', body: (n) => people({ $lookup: { from: 'people', as: 'o', pipeline: excluding(n, (k) => ({ $ne: k }))['pipeline'] } }, { $match: { o: -1 } }) },
  { name: 'two whole windows', body: (n) => windows({ a: { $sum: '$r' }, b: { $sum: { $size: loop(n, { $add: ['$r', '$$this'] }) } } }), sizes: [8, 3_000] },
  { name: 'many whole windows', body: (n) => windows(outputs(n, (k) => ({ $max: { $add: ['$r', k] } }))) },
  { name: 'many windows that read ahead', body: (n) => windows(outputs(n, (k) => ({ $sum: { $add: ['$r', k] }, window: { documents: [-1, 10_000] } })), { sortBy: { r: 1 } }) },
  { name: 'many sort keys of whole windows', body: (n) => windows(outputs(n, () => ({ $bottom: { sortBy: { r: 1 }, output: 1 } }))) },
  { name: 'equal sets of constants', body: (n) => people({ $match: { $expr: { $setEquals: [map(range(n), colliding('$$this')), map(range(n), colliding('$$this'))] } } }, { $project: { name: 1 } }), sizes: [10_000] },
  { name: 'a $graphLookup that starts with equal hashes', body: (n) => people({ $limit: 1 }, { $graphLookup: { from: 'people', startWith: map(range(n), ofName), connectFromField: 'boss', connectToField: '_id', as: 'g' } }, { $match: { g: -1 } }), sizes: [2_000, 10_000] },
  { name: 'a set of equal hashes in a $group', body: (n) => people({ $limit: 1 }, { $group: { _id: null, all: { $setUnion: loop(n, ofName) } } }, { $match: { all: -1 } }) },
  { name: 'a set of equal hashes in buckets', body: () => buckets({ x: { $addToSet: colliding('$r') } }), sizes: [1] },
  { name: 'a redaction of each object', body: (n) => people({ $set: { t: map(range(5_000), { k: '$$this' }) } }, { $redact: { $cond: [{ $eq: [{ $size: loop(n, { $add: [1, '$$this'] }) }, -1] }, '$$PRUNE', '$$DESCEND'] } }, { $match: { t: -1 } }) },
  { name: 'in a lookup', body: (n) => people({ $lookup: { from: 'orders', let: { n: '$name' }, pipeline: [{ $set: { x: { $size: loop(n, { $concat: ['$$n', '$state'] }) } } }, { $match: { x: -1 } }], as: 'o' } }) },
  { name: 'for a lookup', body: (n) => people({ $lookup: { from: 'orders', let: { n: { $size: loop(n, { $concat: ['$name', 'x'] }) } }, pipeline: [{ $match: { $expr: { $eq: ['$$n', -1] } } }], as: 'o' } }) },
  { name: 'in a facet', body: (n) => people({ $facet: Object.fromEntries(many(5, (k) => [`b${k}`, [{ $set: { x: { $size: loop(n / 5, { $concat: ['$name', 'x'] }) } } }, { $match: { x: -1 } }]])) }) },
  { name: 'in a union', body: (n) => people({ $unionWith: { coll: 'orders', pipeline: [{ $set: { x: { $size: loop(n, { $concat: ['$state', 'x'] }) } } }, { $match: { x: -1 } }] } }) },
  { name: 'all in a window', body: (n) => people({ $setWindowFields: { sortBy: { _id: 1 }, output: { x: { $sum: { $size: loop(n, { $concat: ['$name', 'x'] }) } } } } }, { $match: { x: -1 } }) },
  { name: 'filled', body: (n) => people({ $fill: { sortBy: { _id: 1 }, output: { x: { value: { $size: loop(n, { $concat: ['$name', 'x'] }) } } } } }, { $match: { x: -1 } }) },
  { name: 'all that was pushed, in loops', body: (n) => all(n, { $project: { x: { $size: { $filter: { input: '$all', as: 'a', cond: { $in: [-1, { $slice: ['$all', 1_000] }] } } } } } }), sizes: LENGTHS },
  { name: 'all that was pushed with itself', body: (n) => all(n, { $project: { x: { $size: map('$all', { $in: [-1, '$all'] }) } } }), sizes: LENGTHS },
  { name: 'all that was pushed, many times', body: (n) => all(n, { $set: { x: { $concatArrays: many(300, () => '$all') } } }, { $project: { x: { $size: '$x' } } }), sizes: LENGTHS },
  { name: 'all that was pushed, sorted', body: (n) => all(n, { $project: { x: { $size: { $sortArray: { input: { $concatArrays: ['$names', '$all'] }, sortBy: 1 } } } } }), sizes: LENGTHS },
  { name: 'all that was pushed, as a set', body: (n) => all(n, { $project: { x: { $size: { $setUnion: ['$names', '$all'] } } } }), sizes: LENGTHS },
  { name: 'all that was pushed, as a text', body: (n) => all(n, { $project: { x: { $strLenBytes: { $reduce: { input: '$names', initialValue: '', in: { $concat: ['$$value', '$$this'] } } } } } }), sizes: LENGTHS },
  { name: 'all that was pushed, filtered', body: (n) => all(n, { $match: { $and: many(500, (k) => ({ all: { $elemMatch: { $gt: 1e9 + k } } })) } }), sizes: LENGTHS },
  { name: 'all that was merged', body: (n) => people(...MULTIPLIED, { $limit: n }, { $group: { _id: null, all: { $mergeObjects: { $arrayToObject: [[[{ $concat: ['$name', { $toString: '$r' }] }, 1]]] } } } }, { $project: { x: { $size: map({ $objectToArray: '$all' }, { $size: { $objectToArray: '$all' } }) } } }), sizes: [100, 500, 1_000, 5_000] },
  { name: 'all that was found', body: (n) => people(...MULTIPLIED, { $limit: 3 }, { $lookup: { from: 'orders', pipeline: [{ $set: { r: range(1_000) } }, { $unwind: '$r' }, { $limit: n }], as: 'o' } }, { $project: { x: { $size: map('$o', { $in: [-1, '$o.r'] }) } } }), sizes: [500, 1_000, 5_000, 50_000] },
  { name: 'all of a facet', body: (n) => people({ $facet: { a: [...MULTIPLIED, { $limit: n }] } }, { $project: { x: { $size: map('$a', { $in: [-1, '$a.r'] }) } } }), sizes: [500, 1_000, 5_000, 50_000] },
  { name: 'all of a window', body: (n) => people({ $project: { name: 1 } }, { $set: { r: range(500) } }, { $unwind: '$r' }, { $limit: n }, { $setWindowFields: { sortBy: { r: 1 }, output: { w: { $push: '$r' } } } }, { $project: { x: { $size: map('$w', { $in: [-1, '$w'] }) } } }, { $match: { x: -1 } }), sizes: [500, 1_000, 2_000, 20_000] },
  { name: 'many that were pushed', body: (n) => people(...MULTIPLIED, { $group: { _id: null, ...Object.fromEntries(many(n, (k) => [`a${k}`, { $push: { a: '$r', b: '$name' } }])) } }, { $project: { x: { $size: '$a0' } } }), sizes: [40] },
  { name: 'pushed in a facet', body: () => people(...MULTIPLIED, { $facet: Object.fromEntries(many(9, (k) => [`b${k}`, [{ $group: { _id: null, all: { $push: { a: '$r', k } } } }, { $project: { x: { $size: '$all' } } }]])) }), sizes: [1] },
  { name: 'sorted in a facet', body: () => people(...MULTIPLIED, { $facet: Object.fromEntries(many(9, (k) => [`b${k}`, [{ $sort: { r: -1, name: 1 } }, { $skip: 1e6 + k }]])) }), sizes: [1] },
  { name: 'documents of large texts', body: (n) => people({ $set: { t: { $concat: ['$name', 'x'.repeat(n)] } } }, { $set: { r: range(10_000) } }, { $unwind: '$r' }, { $sort: { t: 1, r: -1 } }), sizes: [100_000] },
  { name: 'documents of doubled texts', body: (n) => people(...many(Math.min(30, Math.log2(n)), () => ({ $set: { name: { $concat: ['$name', '$name'] } } })), { $set: { u: { $toUpper: '$name' } } }, { $sort: { u: 1 } }, { $project: { x: { $strLenBytes: '$u' } } }) },
  { name: 'a wide window', body: (n) => people(...MULTIPLIED, { $limit: n }, { $setWindowFields: { sortBy: { r: 1 }, output: { x: { $push: '$r', window: { documents: ['unbounded', 'unbounded'] } } } } }, { $match: { x: -5 } }), sizes: [20_000, 50_000, 100_000, 150_000] },
]

export const HEAVY: readonly Heavy[] = [...one, ...stages, ...LARGE]
