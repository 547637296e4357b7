import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../../../test/support/mongo-catalog.ts'
import type { Verdict } from '../../driver.ts'
import { unseal } from '../../confined.ts'
import type { MongoQuery } from '../query.ts'
import { confine } from './confine.ts'
import { readBody } from './read-body.ts'

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
const chained = (n: number, first: unknown, wrap: (inner: unknown) => unknown): unknown =>
  n === 0 ? first : chained(n - 1, wrap(first), wrap)

const GROWS: Readonly<Record<string, unknown>> = {
  concatArrays: reduce({ $concatArrays: ['$$value', '$$value'] }, '$a', [1]),
  concat: reduce({ $concat: ['$$value', '$$value'] }, range(60), 'x'),
  'an array of it twice': reduce({ $concatArrays: [['$$value.0'], '$$value', '$$value'] }),
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
  'a set of all so far': reduce({ $setUnion: ['$$value', ['$$this']] }, range(10_000)),
  'in a long list': map(range(10_000), { $in: ['$$this', range(10_000)] }),
  'a literal in loops': map(range(10_000), { $literal: 'x'.repeat(100_000) }),
  'the document in loops': map(range(10_000), '$$ROOT'),
  'a range too long': range(10_001),
  'a range computed too long, in loops': map({ $range: [0, '$n'] }, map({ $range: [0, '$n'] }, 1)),
  'a text in a reduce': reduce({ $concat: ['$$value', 'x'.repeat(10_000)] }, range(10_000), ''),
  'lengths of what grows': {
    $strLenCP: chained(6, '$s', (inner) => ({ $let: { vars: { v: inner }, in: { $concat: repeated(10, '$$v') } } })),
  },
  'arrays of arrays': chained(6, 1, (inner) => map(range(100), inner)),
  'stored arrays five deep': map('$a', map('$a', map('$a', map('$a', map('$a', { $add: ['$$this', 1] }))))),
  'large stored arrays twice': map('$big', map('$big', 1)),
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
  'skewed literals': map(
    [Array.from({ length: 500 }, () => 1), [], []],
    map('$$this', map('$$this.0', map(range(1000), 1)), 'x'),
  ),
}

const STAGES: Readonly<Record<string, readonly object[]>> = {
  'a text doubled': repeated(40, { $set: { s: { $concat: ['$s', '$s'] } } }),
  'an array doubled': repeated(40, { $set: { a: { $concatArrays: ['$a', '$a'] } } }),
  'an array of it twice': repeated(30, { $set: { a: ['$a', '$a'] } }),
  'an object of it twice': repeated(30, { $set: { a: { x: '$a', y: '$a' } } }),
  'the document in itself': repeated(30, { $set: { a: { x: '$$ROOT', y: '$$ROOT' } } }),
  'by $addFields and $project': Array.from({ length: 20 }, () => [
    { $addFields: { t: '$s' } },
    { $project: { s: { $concat: ['$s', '$t'] } } },
  ]).flat(),
  'by $replaceWith': repeated(40, { $replaceWith: { a: { $concatArrays: ['$a', '$a'] } } }),
  'by merging': repeated(30, { $replaceWith: { $mergeObjects: ['$$ROOT', { a: ['$a', '$a'] }] } }),
  'in a group': [
    { $group: { _id: 1, all: { $push: '$$ROOT' } } },
    { $set: { x: map('$all', map('$all', map('$all', map('$all', 1)))) } },
  ],
  'a field of each element': [
    { $set: { t: map(range(5_000), { k: '$$this' }) } },
    { $set: { 't.x': { $size: map(range(5_000), { $add: [1, '$$this'] }) } } },
  ],
  'by each boundary': [
    { $bucket: { groupBy: { $size: map(range(5_000), '$s') }, boundaries: Array.from({ length: 500 }, (_, k) => k) } },
  ],
  'for each object': [
    { $set: { t: map(range(5_000), { k: '$$this' }) } },
    { $redact: { $cond: [{ $gt: [{ $size: map(range(5_000), '$s') }, 1] }, '$$DESCEND', '$$PRUNE'] } },
  ],
  'behind a sort of the stage': [
    { $setWindowFields: { sortBy: { n: 1 }, output: { x: { $sum: { $size: map(range(10_000), ['$s', '$n']) } } } } },
  ],
  'in a facet': [{ $facet: { x: repeated(40, { $set: { s: { $concat: ['$s', '$s'] } } }) } }],
  'in a lookup': [
    { $lookup: { from: 'people', pipeline: repeated(40, { $set: { s: { $concat: ['$s', '$s'] } } }), as: 'x' } },
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

test('refuses values that grow beyond the bounds, and names the bound, the size and what to write instead', () => {
  for (const [name, x] of Object.entries(GROWS)) assertLimit(name, judged(x))
  for (const [name, pipeline] of Object.entries(STAGES)) assertLimit(name, piped(...pipeline))
})

function assertLimit(name: string, verdict: Verdict): void {
  assert.ok(verdict.kind === 'denied', `${name}: ${verdict.kind === 'malformed' ? verdict.why : verdict.kind}`)
  assert.equal(verdict.blocked.kind, 'limit', `${name}: ${verdict.why}`)
  assert.match(verdict.why, /\d.*limit/, name)
  assert.ok(verdict.hint.length > 20, name)
}

test('answers queries whose values stay within the bounds', () => {
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

/** The length limit that the printed query enforces; null if there is none. */
function heldTo(...pipeline: object[]): number | null {
  const found = /"\$lte":\[\{"\$max":.*?\]\},(\d+)\]/.exec(printedOf(...pipeline))
  return found === null ? null : Number(found[1])
}

test('allows gathered arrays as long as later stages allow, and the printed query enforces that length', () => {
  const pushed = { $group: { _id: 1, all: { $push: '$s' }, sum: { $sum: '$n' } } }
  const found = { $lookup: { from: 'people', localField: 'n', foreignField: 'n', as: 'all' } }
  const twice = map('$all', { $in: ['x', '$all'] })
  for (const gather of [pushed, found, { $facet: { all: [{ $limit: 5 }] } }]) {
    assert.equal(heldTo(gather), null)
    assert.equal(heldTo(gather, { $project: { n: { $size: '$all' }, some: { $slice: ['$all', 3] } } }), null)
    const length = heldTo(gather, { $project: { x: twice } }) ?? 0
    assert.ok(length >= 500 && length <= 5_000, String(length))
    const shorter = heldTo(gather, { $project: { x: map('$all', twice) } }) ?? 0
    assert.ok(shorter >= 100 && shorter < length, String(shorter))
  }
  assert.ok((heldTo(pushed, { $project: { x: map('$all', { $toUpper: '$$this' }) } }) ?? 0) >= 100_000)
})

test('prints a range of computed length in a form that fails beyond the bound', () => {
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

/** What the printed query measures before its stages, in short: the length |a|, the bytes #a, and sums over elements. */
function measuredBy(...pipeline: object[]): { steps: string; bytes: string }[] {
  const found: { steps: string; bytes: string }[] = []
  const walk = (value: unknown, once: Json): void => {
    if (!isJson(value)) return
    const vars = isJson(value['vars']) ? { ...once, ...value['vars'] } : once
    if ('vt_steps' in value)
      found.push({ steps: short(value['vt_steps'], once), bytes: short(value['vt_bytes'], once) })
    else Object.values(value).forEach((each) => walk(each, vars))
  }
  walk(JSON.parse(printedOf(...pipeline)), {})
  return found
}

function short(value: unknown, once: Json): string {
  const of = (each: unknown): string => short(each, once)
  if (typeof value === 'string' && value.startsWith('$$vt_once')) return of(once[value.slice(2)])
  if (!isJson(value)) return String(value)
  const [[name = '', operand] = []] = Object.entries(value)
  const all = Array.isArray(operand) ? operand : []
  const [length] =
    /^\{"\$add":\[\{"\$size":\{"\$cond":\[\{"\$isArray":\["(.*?)"/.exec(JSON.stringify(value))?.slice(1) ?? []
  if (length !== undefined) return `|${length}|`
  if (name === '$bsonSize' && isJson(operand)) return `#${String(operand['v'])}`
  if (name === '$multiply') return all.map(of).join(' ')
  if (name === '$add') return `(${all.map(of).join(' + ')})`
  if (name === '$divide') return all.map(of).join(' / ')
  if (name === '$pow') return all.map(of).join(' ^ ')
  if (name === '$size') return 'pieces'
  const map = isJson(operand) && isJson(operand['$map']) ? operand['$map'] : assert.fail(JSON.stringify(value))
  const [, list = ''] = /\["(\$[^"]*)"\]/.exec(JSON.stringify(map['input'])) ?? []
  return `sum ${list} (${of(map['in'])})`
}

/** The factors of the term with the largest constant. */
function longest(sum: string): string {
  const terms = sum.replace(/^\((.*)\)$/, '$1').split(/ \+ (?=[\d.]+ )/)
  const [first = ''] = terms.toSorted((one, other) => Number.parseFloat(other) - Number.parseFloat(one))
  return first.replace(/^[\d.]+ /, '')
}

test('measures what a stage reads often, right before the stage', () => {
  const often = (...pipeline: object[]): string[] => measuredBy(...pipeline).map(({ bytes }) => bytes)
  const reads = (bytes: string, ...pipeline: object[]): void =>
    assert.ok(
      often(...pipeline).some((all) => ` ${all.replaceAll(/^\(|\)$/g, '')} `.includes(` ${bytes} `)),
      often(...pipeline).join(),
    )
  reads('5000 #$s', { $project: { x: map(range(5_000), { $concat: ['$s', 'x'] }) } })
  reads('200 #$$ROOT', { $project: { x: map(range(200), '$$ROOT') } })
  reads('100 #$t', { $set: { t: '$s' } }, { $set: { x: map(range(100), { $toUpper: '$t' }) } })
  reads('100 sum $a (#$$vt_each1)', { $set: { x: map('$a', map(range(100), { $toUpper: '$$e' }), 'e') } })
  reads('90 #$s', { $project: Object.fromEntries(repeated(90, '').map((_, n) => [`x${n}`, { $toUpper: '$s' }])) })
  const found = { $lookup: { from: 'people', localField: 'n', foreignField: 'n', as: 'o' } }
  reads('150 #$o.s', found, { $unwind: '$o' }, { $set: { x: map(range(100), { $concat: ['$o.s', 'x'] }) } })
  reads('|$a| #$s', { $set: { x: map('$a', { $concat: ['$$this', '$s'] }) } })
  reads('0.2 |$a| #$a', { $set: { x: map('$a', { $in: ['$$this', '$a'] }) } })
  reads('(|$a| + 1) #$s', { $set: { x: { $sortArray: { input: map('$a', '$s'), sortBy: 1 } } } })
  for (const name of ['a year of days', 'a pass over a large array', 'an address found'])
    assert.deepEqual(
      often({ $project: { x: STAYS[name] } }).filter((bytes) => bytes !== '0'),
      [],
      name,
    )
})

test('measures loops where they run, whatever collection or stage their arrays come from', () => {
  const work = { $size: map(range(50), { $add: ['$$k', 1] }, 'k') }
  const steps = (...pipeline: object[]): string[] => measuredBy(...pipeline).map((each) => longest(each.steps))
  const nested = (one: unknown, other: unknown): object => ({ $set: { x: map(one, map(other, work, 'f'), 'e') } })
  const inLookup = (x: object): object => ({ $lookup: { from: 'people', let: { t: '$a' }, as: 'o', pipeline: [x] } })
  assert.deepEqual(steps(inLookup(nested('$$t', '$b'))), ['|$$t| |$b|'])
  assert.deepEqual(steps(inLookup(nested({ $concatArrays: ['$$t', '$b'] }, '$s'))), ['(|$$t| + |$b|) |$s|'])
  const firstAndLast = { $group: { _id: null, one: { $first: '$a' }, other: { $last: '$b' } } }
  assert.deepEqual(steps(firstAndLast, nested('$one', '$other')), ['|$one| |$other|'])
  const before = { $setWindowFields: { sortBy: { n: 1 }, output: { w: { $shift: { output: '$a', by: -1 } } } } }
  assert.deepEqual(steps(before, nested('$w', '$b')), ['|$w| |$b|'])
  const found = { $lookup: { from: 'people', localField: 'n', foreignField: 'n', as: 'o' } }
  const two = { $set: { one: { $first: '$o' }, other: { $last: '$o' } } }
  assert.deepEqual(steps(found, two, nested('$one.a', '$other.b')), ['|$one.a| |$other.b|'])
  const kept = { $set: { m: { $range: [0, { $size: '$b' }] } } }
  assert.deepEqual(steps(kept, nested('$m', '$a')), ['|$m| |$a|'])
})

test('measures loops over parts of an element for each element', () => {
  const work = { $size: map(range(50), { $add: ['$$k', 1] }, 'k') }
  const steps = (x: unknown): string[] => measuredBy({ $set: { x } }).map((each) => longest(each.steps))
  assert.deepEqual(steps(map('$a', map('$$this.b', work, 'b'))), ['sum $a (|$$vt_each1.b|)'])
  const both = map('$a', map('$$e.x', map('$$e.y', work, 'g'), 'f'), 'e')
  assert.deepEqual(steps(both), ['sum $a (|$$vt_each1.x| |$$vt_each1.y|)'])
  const line = map('$a', map('$$e.x', map('$$f.y', work, 'g'), 'f'), 'e')
  assert.deepEqual(steps(line), ['sum $a (sum $$vt_each1.x (|$$vt_each2.y|))'])
  const some = { $filter: { input: '$a', cond: { $gt: ['$$this.n', 1] } } }
  assert.deepEqual(steps(map(some, map('$$e.x', work, 'f'), 'e')), ['#$a / 8'])
  const copies = map(map('$a', '$b'), map('$$e', work, 'f'), 'e')
  assert.deepEqual(steps(copies), ['|$a| |$b|'])
  const chosen = map(map('$a', { $first: '$b' }), map('$$e', work, 'f'), 'e')
  assert.deepEqual(steps(chosen), ['|$a| #$b / 8'])
})

test('measures the pairs of bytes that a search or a wide regular expression takes', () => {
  const steps = (x: unknown): string[] => measuredBy({ $set: { x } }).map((each) => each.steps)
  const matches = (regex: string): object => ({ $regexMatch: { input: '$s', regex } })
  assert.match(steps(matches('x.*y')).join(), /#\$s \/ 8 #\$s \/ 8/)
  assert.match(steps(matches('[^,]+;')).join(), /#\$s \/ 8 #\$s \/ 8/)
  for (const regex of ['^x.*y', 'abc', '[a-z0-9_.+-]+@[a-z]+', 'a\\.*b', 'a.{3}b'])
    assert.doesNotMatch(steps(matches(regex)).join(), /#\$s \/ 8 #\$s/, regex)
  assert.match(steps({ $split: ['$s', '$n'] }).join(), /#\$s \/ 8 #\$n \/ 8/)
})

test('prints a length check for loops over stored values that take long, and for no others', () => {
  const isHeld = (...pipeline: object[]): boolean => printedOf(...pipeline).includes('48000000')
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
    'as many as a filter takes': { $set: { x: map({ $filter: { input: '$a', cond: true, limit: 60_000 } }, work) } },
    'a field of what replaced an element': {
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
    'little work': { $set: { x: map('$a', { $multiply: ['$$this.n', '$$this.price'] }) } },
    'a sum': grown('$a', { $add: ['$$value', '$$this'] }, 0),
    'a part of an array': { $set: { x: map({ $slice: ['$a', 10] }, work) } },
    'a constant': { $set: { x: map(range(10), work) } },
    'a few tests': { $match: { $or: [{ a: 1 }, { a: { $gt: 5 } }, { s: { $regex: '^x' } }] } },
  }
  for (const [name, stage] of Object.entries(FREE)) assert.ok(!isHeld(stage), name)
})

test('counts how much longer than a stored array what is made of it can be', () => {
  const work = { $size: map(range(100), { $add: ['$$k', 1] }, 'k') }
  const lengthOf = (input: unknown): string[] =>
    measuredBy({ $set: { x: map(input, work) } }).map((each) => longest(each.steps))
  assert.deepEqual(lengthOf('$a'), ['|$a|'])
  assert.deepEqual(lengthOf({ $concatArrays: repeated(30, '$a') }), ['30 |$a|'])
  assert.match(lengthOf({ $range: [0, { $divide: [{ $size: '$a' }, 0.01] }] }).join(), /^\(100 \|\$a\|/)
  assert.match(lengthOf(reduce({ $concatArrays: ['$$value', '$$this'] })).join(), /#\$a \/ 8/)
  assert.match(lengthOf(reduce({ $concatArrays: ['$$value', '$a'] })).join(), /\^/)
})

test('puts cancel points right before a slow stage, and keeps all fields of an open document', () => {
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

test('adds more cancel points for slower stages', () => {
  const looks = (...pipeline: object[]): number =>
    Number(/"\$max":\[(\d+),\{"\$toInt"/.exec(printedOf(...pipeline))?.[1] ?? 0)
  assert.equal(looks({ $set: { x: map('$a', { $add: ['$$this', 1] }) } }), 0)
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

test('limits the arrays of all windows to 20,000 elements, because they are copied for each document', () => {
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
