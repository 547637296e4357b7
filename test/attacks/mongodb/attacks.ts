// Queries that attack hidden data, by family. If the query has an error code, it must be refused and never reach the
// engine. An `alike` query may be answered, but only like on a copy without the hidden data. The sources are
// docs/guard/mongodb.md and published reports.
import type { Document } from 'mongodb'

type Expected = 'INVALID_REQUEST' | 'INVALID_QUERY' | 'QUERY_DENIED' | 'alike'

export interface Attack {
  readonly family: string
  readonly expected: Expected
  /** A string is sent as JSON text, because some queries cannot be written as an object literal. */
  readonly body: unknown
}

const attacks: Attack[] = []

function family(name: string, expected: Expected, bodies: readonly unknown[]): void {
  for (const body of bodies) attacks.push({ family: name, expected, body })
}

const people = (filter: Document): Document => ({ collection: 'people', filter })
const piped = (...pipeline: Document[]): Document => ({ collection: 'people', pipeline })
const shown = (x: unknown): Document => piped({ $project: { x } })

family(
  'collection',
  'QUERY_DENIED',
  [
    'vault',
    'people_all',
    'system.buckets.gauge',
    'system.views',
    'admin.system.users',
    'people ',
    'People',
    '$cmd',
    'constructor',
    'nothing',
  ].map((collection) => ({ collection })),
)
family('body', 'INVALID_REQUEST', [
  null,
  [],
  'people',
  {},
  { collection: null },
  { collection: '' },
  { collection: ['people'] },
  { collection: 'people', filter: [] },
  { collection: 'people', filter: 'x' },
  { collection: 'people', filter: null },
  { collection: 'people', pipeline: {} },
  { collection: 'people', pipeline: [null] },
  { collection: 'people', pipeline: ['$out'] },
  { collection: 'people', pipeline: [{}] },
  { collection: 'people', pipeline: [{ $match: {}, $limit: 1 }] },
  { collection: 'people', limit: 0 },
  { collection: 'people', limit: 1.5 },
  { collection: 'people', limit: '5' },
  { collection: 'people', hint: 'ssn_1' },
  { collection: 'people', explain: true },
  { collection: 'people', let: {} },
  { sql: 'SELECT 1' },
  { collection: 'people', sql: 'SELECT 1' },
  people({ name: 'a\0b' }),
  people({ name: '\ud800' }),
  people({ 'na\0me': 1 }),
  JSON.parse('{"collection":"people","filter":{"__proto__":{"ssn":1}}}'),
  JSON.parse('{"collection":"people","pipeline":[{"$group":{"_id":null,"__proto__":{"$push":"$$ROOT"}}}]}'),
  people({ name: { _bsontype: 'MinKey' } }),
  people({ name: { toBSON: 1 } }),
  people({ name: 'x'.repeat(300_000) }),
])
family(
  'hidden in a filter',
  'QUERY_DENIED',
  [
    { ssn: 'SECRET ssn 1' },
    { ssn: { $gt: 'S' } },
    { ssn: { $exists: true } },
    { ssn: { $in: ['SECRET ssn 1'] } },
    { ssn: { $regex: '^SECRET' } },
    { SSN: 1 },
    { 'home.street': { $ne: null } },
    { 'cards.number': /x/.source },
    { 'cards.0.number': { $exists: true } },
    { cards: { $elemMatch: { number: { $regex: 'SECRET' } } } },
    { cards: { $not: { $elemMatch: { number: 1 } } } },
    { cards: { $all: [{ $elemMatch: { number: 1 } }] } },
    { $or: [{ name: 'x' }, { ssn: 1 }] },
    { $and: [{ $nor: [{ ssn: 1 }] }] },
    { $and: { 0: { ssn: 1 }, length: 1 } },
    { $expr: '$ssn' },
    { $expr: { $gt: ['$$ROOT.ssn', 'S'] } },
    { $expr: { $gt: ['$$CURRENT.pay', 0] } },
    { 'home.$street': 1 },
    { nothing: 1 },
    { 'name.$where': 1 },
  ].map(people),
)
family(
  'operator in a filter',
  'QUERY_DENIED',
  [
    { $where: '1' },
    { $where: { $code: 'return true' } },
    { name: { $where: '1' } },
    { $text: { $search: 'x' } },
    { $jsonSchema: { required: ['ssn'] } },
    { $expr: { $function: { body: 'f', args: [], lang: 'js' } } },
    { name: { $expr: '$ssn' } },
    { name: { $eq: 1, x: 2 } },
    { name: { $gt: { $where: '1' } } },
    { name: { $near: [0, 0] } },
    { $sampleRate: 0.5 },
    { $alwaysTrue: 1 },
    { name: { $_internalExprEq: 1 } },
    { $WHERE: '1' },
    { $query: {} },
    { $comment: 'x', $hint: 1 },
    { name: { $ref: 'vault', $id: 1 } },
    { name: { $code: 'x' } },
    { name: { $in: [{ $symbol: 'x' }] } },
    { $natural: 1 },
    { name: { $elemMatch: { $where: '1' } } },
    { 'home.geo': { $geoWithin: { $where: 1 } } },
    { $or: [{ $where: '1' }] },
  ].map(people),
)
const sized = (collection: string, path: string): Document[] =>
  [
    [{ $project: { n: { $size: { $cond: [{ $isArray: path }, path, []] } } } }],
    [{ $project: { t: { $map: { input: { $cond: [{ $isArray: path }, path, []] }, in: { $type: '$$this' } } } } }],
    [{ $group: { _id: path, n: { $sum: 1 } } }],
    [{ $unwind: { path, includeArrayIndex: 'i' } }],
    [{ $match: { $expr: { $eq: [path, []] } } }],
  ].map((pipeline) => ({ collection, pipeline }))
const graph = (as: string): Document => ({
  $graphLookup: { from: 'people', startWith: '$_id', connectFromField: '_id', connectToField: '_id', as },
})
const inGraph = { $project: { n: { $map: { input: '$g.cards', in: { $cond: [{ $isArray: '$$this' }, { $size: '$$this' }, -1] } } } } }
family('gaps in arrays', 'alike', [
  ...sized('gauge', '$parts'),
  ...sized('people_made', '$cards'),
  ...sized('people_made', '$house'),
  ...sized('people_view', '$cards'),
  piped({ $project: { _id: 1 } }, { $facet: { a: [graph('g'), inGraph] } }),
  piped(graph('g'), inGraph),
])
const odd = (...pipeline: Document[]): Document => ({ collection: 'odd', pipeline })
const read = (field: unknown): Document => odd({ $project: { x: { $getField: { field, input: '$$ROOT' } } } })
family('names that no path can say', 'QUERY_DENIED', [
  read({ $literal: 'w.x' }),
  read('w.x'),
  read({ $literal: '$own' }),
  read({ $literal: '' }),
  odd({ $project: { x: { $getField: { $literal: 'w.x' } } } }),
  odd({ $group: { _id: '$$ROOT.$own' } }),
  odd({ $sort: { $own: 1 } }),
  odd({ $match: { $own: 'SECRET' } }),
  { collection: 'odd', filter: { $own: 'SECRET' } },
  odd({ $lookup: { from: 'odd', localField: '_id', foreignField: '$own', as: 'j' } }),
])
family('names that no path can say', 'INVALID_QUERY', [
  { collection: 'odd', filter: { '': 'SECRET' } },
  { collection: 'odd', filter: { 'w.': 'SECRET' } },
  odd({ $project: { x: '$' } }),
  odd({ $sort: { 'w..x': 1 } }),
  odd({ $project: { $own: 1 } }),
])
family('names that no path can say', 'alike', [
  { collection: 'odd', filter: { 'w.x': 'SECRET dotted' } },
  odd({ $project: { all: { $objectToArray: '$$ROOT' } } }),
  odd({ $replaceWith: { $unsetField: { field: 'v', input: '$$ROOT' } } }),
  odd({ $replaceWith: { $setField: { field: { $literal: 'w.x' }, input: '$$ROOT', value: 1 } } }),
  odd({ $sort: { 'w.x': 1, _id: 1 } }, { $limit: 4 }),
])
family(
  'malformed value',
  'INVALID_QUERY',
  [
    { since: { $date: 'not a date' } },
    { since: { $date: 1e30 } },
    { since: { $date: '2024-02-31' } },
    { _id: { $oid: { $where: '1' } } },
    { _id: { $oid: 'aa' } },
    { _id: { $oid: 'a'.repeat(24), $gt: '' } },
    { score: { $numberLong: '9223372036854775808' } },
    { score: { $numberLong: 5 } },
    { score: { $numberInt: '2147483648' } },
    { score: { $numberDecimal: 'x' } },
    { score: 9007199254740993 },
    { name: { $binary: { base64: '*', subType: '00' } } },
    { name: { $uuid: 'x' } },
    { name: { $regularExpression: { pattern: 'a', options: 'g' } } },
    { name: { $minKey: 2 } },
    { $or: [] },
    { name: { $not: {} } },
    { name: { $in: 'x' } },
    { tags: { $size: -1 } },
    { score: { $mod: [2] } },
    { name: { $options: 'i' } },
  ].map(people),
)
const STAGES =
  '$out $merge $collStats $indexStats $planCacheStats $listCatalog $currentOp $listSessions $listSampledQueries $queryStats $changeStream $geoNear $search $searchMeta $vectorSearch $rankFusion $scoreFusion $documents $queue $mergeCursors $setVariableFromSubPipeline $_internalInhibitOptimization $_internalConvertBucketIndexStats $_unpackBucket $sql $Match $MATCH $$match $nothing'.split(
    ' ',
  )
const within: readonly ((stage: Document) => Document)[] = [
  (stage) => piped(stage),
  (stage) => piped({ $facet: { a: [stage] } }),
  (stage) => piped({ $lookup: { from: 'orders', pipeline: [stage], as: 'j' } }),
  (stage) => piped({ $unionWith: { coll: 'orders', pipeline: [stage] } }),
  (stage) =>
    piped({
      $unionWith: {
        coll: 'orders',
        pipeline: [{ $lookup: { from: 'people', pipeline: [{ $facet: { z: [stage] } }], as: 'j' } }],
      },
    }),
]
for (const wrap of within)
  family(
    'stage',
    'QUERY_DENIED',
    STAGES.map((name) => wrap({ [name]: {} })),
  )
family(
  'write',
  'QUERY_DENIED',
  within.flatMap((wrap) => [
    wrap({ $out: 'x' }),
    wrap({ $out: { db: 'admin', coll: 'x' } }),
    wrap({ $merge: { into: 'people' } }),
  ]),
)
family(
  'join',
  'QUERY_DENIED',
  [
    { $lookup: { from: 'vault', localField: '_id', foreignField: 'person', as: 'j' } },
    { $lookup: { from: 'vault', pipeline: [], as: 'j' } },
    { $lookup: { from: 'orders', localField: '_id', foreignField: 'margin', as: 'j' } },
    { $lookup: { from: 'orders', localField: 'name', foreignField: 'lines', as: 'j' } },
    { $lookup: { from: 'orders', localField: 'name', foreignField: 'lines.0.sku', as: 'j' } },
    { $lookup: { from: 'orders', localField: 'ssn', foreignField: '_id', as: 'j' } },
    { $lookup: { from: 'orders', let: { s: '$ssn' }, pipeline: [], as: 'j' } },
    { $unionWith: 'vault' },
    { $unionWith: { coll: 'vault' } },
    { $lookup: { from: 'orders', pipeline: [{ $unionWith: 'vault' }], as: 'j' } },
    { $facet: { a: [{ $unionWith: 'vault' }] } },
    { $graphLookup: { from: 'vault', startWith: '$_id', connectFromField: '_id', connectToField: '_id', as: 'j' } },
    { $graphLookup: { from: 'people', startWith: '$boss', connectFromField: 'ssn', connectToField: '_id', as: 'j' } },
    { $graphLookup: { from: 'people', startWith: '$boss', connectFromField: 'boss', connectToField: 'home', as: 'j' } },
    { $graphLookup: { from: 'people', startWith: '$pay', connectFromField: 'boss', connectToField: '_id', as: 'j' } },
    {
      $graphLookup: {
        from: 'people',
        startWith: '$boss',
        connectFromField: 'boss',
        connectToField: '_id',
        as: 'j',
        restrictSearchWithMatch: { ssn: 1 },
      },
    },
    {
      $graphLookup: {
        from: 'people',
        startWith: '$boss',
        connectFromField: 'boss',
        connectToField: '_id',
        as: 'j',
        restrictSearchWithMatch: { $expr: { $gt: ['$name', ''] } },
      },
    },
    {
      $graphLookup: {
        from: 'people',
        startWith: '$boss',
        connectFromField: 'boss',
        connectToField: '_id',
        as: 'j',
        depthField: 'name',
      },
    },
  ].map((stage) => piped(stage)),
)
family(
  'join, malformed',
  'INVALID_QUERY',
  [
    { $lookup: { from: { db: 'local', coll: 'oplog.rs' }, pipeline: [], as: 'j' } },
    { $lookup: { from: 'orders', localField: '_id', foreignField: '_id', as: 'j', hint: 'x' } },
    { $lookup: { from: 'orders', as: 'j' } },
    { $unionWith: { coll: 'people', db: 'admin' } },
    { $unionWith: { coll: { db: 'admin', coll: 'system.users' } } },
    { $graphLookup: { from: 'people' } },
  ].map((stage) => piped(stage)),
)
family(
  'hidden in a stage',
  'QUERY_DENIED',
  [
    { $project: { ssn: 1 } },
    { $project: { 'cards.number': 1 } },
    { $project: { cards: { number: 1 } } },
    { $project: { x: '$home.street' } },
    { $sort: { ssn: 1 } },
    { $sort: { 'home.street': -1 } },
    { $unwind: '$ssn' },
    { $group: { _id: '$ssn' } },
    { $group: { _id: null, m: { $max: '$pay' } } },
    { $group: { _id: null, t: { $top: { sortBy: { ssn: 1 }, output: '$name' } } } },
    { $sortByCount: '$ssn' },
    { $bucketAuto: { groupBy: '$pay', buckets: 2 } },
    { $setWindowFields: { partitionBy: '$ssn', sortBy: { _id: 1 }, output: { n: { $sum: 1 } } } },
    { $densify: { field: 'pay', range: { step: 1, bounds: 'full' } } },
    { $fill: { sortBy: { pay: 1 }, output: { name: { method: 'locf' } } } },
    { $redact: { $cond: [{ $gt: ['$ssn', 'S'] }, '$$KEEP', '$$PRUNE'] } },
    { $replaceRoot: { newRoot: '$pay' } },
    { $project: { x: { $getField: 'ssn' } } },
    { $set: { x: { $getField: { field: { $literal: '$own' }, input: '$$ROOT' } } } },
  ].map((stage) => piped(stage)),
)
family(
  'expression',
  'QUERY_DENIED',
  [
    { $meta: 'indexKey' },
    { $meta: 'textScore' },
    '$$USER_ROLES',
    '$$CLUSTER_TIME',
    '$$SEARCH_META',
    '$$JS_SCOPE',
    '$$nothing',
    '$$KEEP',
    { $function: { body: 'f', args: [], lang: 'js' } },
    { $accumulator: {} },
    { $rand: {} },
    { $toHashedIndexKey: '$name' },
    { $_internalFindPositional: 1 },
    { $const: 1 },
    { $expr: 1 },
    { $encStrStartsWith: {} },
    { $ADD: [1, 1] },
    { $add: [{ $rand: {} }, 1] },
    { $let: { vars: { a: '$ssn' }, in: '$$a' } },
    { $map: { input: '$cards', in: '$ssn' } },
    { $reduce: { input: [1], initialValue: [], in: ['$$value'] } },
    { $reduce: { input: [1], initialValue: {}, in: { $mergeObjects: [{ a: '$$value' }] } } },
    {
      $reduce: {
        input: [1],
        initialValue: [],
        in: { $let: { vars: { v: '$$value' }, in: { $concatArrays: [['$$v']] } } },
      },
    },
    { $range: [0, 1e6] },
    { $regexMatch: { input: '$name', regex: '$name' } },
    { $regexMatch: { input: '$name', regex: 'a'.repeat(600) } },
  ].map(shown),
)
const nest = (depth: number): unknown =>
  Array.from({ length: depth }).reduce<unknown>((inner) => ({ $and: [inner] }), { name: 1 })
family('too much', 'QUERY_DENIED', [
  people(nest(15) as Document),
  people(nest(3000) as Document),
  piped(...Array.from({ length: 41 }, () => ({ $skip: 1 }))),
  piped(...Array.from({ length: 9000 }, () => ({ $skip: 1 }))),
  people({ name: { $in: Array.from({ length: 2001 }, (_, n) => n) } }),
  people({ name: { $regex: 'a'.repeat(513) } }),
  piped({ $facet: Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`f${n}`, []])) }),
  piped(...Array.from({ length: 5 }, () => ({ $unionWith: 'orders' }))),
  people({ tags: Array.from({ length: 20_001 }, () => 1) }),
  piped({ $sort: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`tags.a${n}`, 1])) }),
])
family('alike', 'alike', [
  people({ home: { $regex: 'SECRET' } }),
  people({ cards: { $regex: 'SECRET' } }),
  people({ home: { $type: 'string' } }),
  people({ cards: { $size: 2 } }),
  people({ 'home.city': null }),
  people({ 'cards.brand': { $ne: null } }),
  { collection: 'people_view', filter: { 'cards.brand': { $in: [null] } } },
  people({ $expr: { $gt: [{ $bsonSize: '$$ROOT' }, 300] } }),
  shown('$$ROOT'),
  shown('$$CURRENT'),
  shown({ $objectToArray: '$$ROOT' }),
  shown('$home'),
  shown('$cards'),
  piped({ $group: { _id: '$land', all: { $addToSet: '$$ROOT' } } }),
  piped({ $group: { _id: '$$ROOT' } }),
  piped({ $group: { _id: '$home' } }),
  piped({ $sort: { _id: 1 } }, { $group: { _id: '$land', one: { $first: '$$ROOT' } } }),
  { collection: 'people_view', pipeline: [{ $group: { _id: null, all: { $addToSet: '$$CURRENT' } } }] },
  piped(
    { $lookup: { from: 'people', pipeline: [{ $group: { _id: '$$ROOT' } }], as: 'j' } },
    { $limit: 1 },
    { $project: { j: 1 } },
  ),
  piped({ $lookup: { from: 'orders', localField: '_id', foreignField: 'person', as: 'o' } }),
  piped({ $unionWith: 'orders' }),
  piped({ $project: { ssn: 0, 'cards.number': 0 } }),
  piped({ $unset: 'ssn' }),
  piped({
    $graphLookup: { from: 'people', startWith: '$boss', connectFromField: 'boss', connectToField: '_id', as: 'g' },
  }),
  piped({
    $facet: {
      a: [
        {
          $graphLookup: {
            from: 'people',
            startWith: '$boss',
            connectFromField: 'boss',
            connectToField: '_id',
            as: 'g',
          },
        },
      ],
    },
  }),
  piped({ $replaceRoot: { newRoot: { $mergeObjects: ['$$ROOT', { z: 1 }] } } }, { $match: { ssn: { $exists: true } } }),
  piped({ $sort: { 'cards.exp': 1, _id: 1 } }, { $limit: 7 }),
  piped({ $sort: { 'cards.exp': -1 } }, { $limit: 9 }, { $count: 'n' }),
  { collection: 'gauge', pipeline: [{ $group: { _id: '$meta', n: { $sum: 1 } } }] },
  { collection: 'odd', filter: { 'w.x': { $lte: { $maxKey: 1 } } } },
  people({ name: "{$gt: ''}" }),
  shown({ $literal: '$ssn' }),
  shown({ $setField: { field: 'ssn', input: '$$ROOT', value: 1 } }),
])

family(
  'names that are not allowed as field names',
  'INVALID_QUERY',
  [
    { $lookup: { from: 'orders', localField: '_id', foreignField: 'person', as: '__proto__' } },
    { $lookup: { from: 'orders', localField: '__proto__', foreignField: 'person', as: 'o' } },
    { $graphLookup: { from: 'people', startWith: 1, connectFromField: 'boss', connectToField: '_id', as: '__proto__' } },
    { $unwind: { path: '$tags', includeArrayIndex: '__proto__' } },
    { $unwind: '$tags.__proto__' },
    { $count: '__proto__' },
    { $unset: '__proto__' },
    { $unset: ['name.__proto__'] },
    { $densify: { field: '__proto__', range: { step: 1, bounds: 'full' } } },
    { $sortByCount: '$__proto__' },
    { $project: { x: '$$ROOT.__proto__.ssn' } },
  ].map((stage) => piped(stage)),
)
family('the order of names that are numbers', 'INVALID_QUERY', [
  JSON.parse('{"collection":"odd","filter":{"v":{"b":1,"1":2}}}'),
  JSON.parse('{"collection":"odd","filter":{"v":{"$in":[{"2":1,"1":1}]}}}'),
  JSON.parse('{"collection":"odd","pipeline":[{"$project":{"x":{"$literal":{"b":1,"1":2}}}}]}'),
  JSON.parse('{"collection":"odd","pipeline":[{"$project":{"x":{"$literal":[{"a":{"2":1,"1":1}}]}}}]}'),
  JSON.parse('{"collection":"odd","pipeline":[{"$group":{"_id":{"2":"$v","1":"$w.x"}}}]}'),
  JSON.parse('{"collection":"odd","pipeline":[{"$sort":{"2":1,"1":1}}]}'),
  JSON.parse('{"collection":"odd","pipeline":[{"$match":{"$expr":{"$eq":["$v",{"b":1,"1":2}]}}}]}'),
])
family('a comment is no condition', 'QUERY_DENIED', [
  people({ name: { $comment: 'x' } }),
  people({ name: { $ne: 1, $comment: 'x' } }),
  people({ name: { $not: { $comment: 'x' } } }),
  people({ tags: { $elemMatch: { $comment: 'x' } } }),
])
family('null keys of $graphLookup on what is cut', 'QUERY_DENIED', [
  piped({ $graphLookup: { from: 'orders', startWith: null, connectFromField: 'person', connectToField: 'lines.sku', as: 'g' } }),
  piped({ $graphLookup: { from: 'people', startWith: [null], connectFromField: 'boss', connectToField: 'cards.brand', as: 'g' } }),
])
family('null keys and names of every object', 'alike', [
  piped({ $graphLookup: { from: 'people', startWith: null, connectFromField: 'boss', connectToField: 'land', as: 'constructor' } }, { $project: { n: { $size: '$constructor' } } }),
  piped({ $lookup: { from: 'people', pipeline: [{ $match: { _id: { $exists: true } } }], as: 'toString' } }, { $match: { 'toString.cards.brand': null } }, { $project: { name: 1 } }),
  piped({ $lookup: { from: 'people', pipeline: [], as: 'hasOwnProperty' } }, { $match: { 'hasOwnProperty.home.city': null } }, { $count: 'n' }),
  { collection: 'odd', pipeline: [{ $match: { constructor: { $ne: null } } }, { $group: { _id: '$constructor', n: { $sum: 1 } } }] },
])

export const ATTACKS: readonly Attack[] = attacks
