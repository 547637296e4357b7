// The attacked database. Hidden values contain SECRET or a number from 900,000 up. Shapes are as irregular as stored
// data can be: scalars among objects, arrays in arrays, null and missing fields. The data is the same in every run.
import { Decimal128, Double, Int32, Long, ObjectId, UUID, type Db, type Document } from 'mongodb'

export const FULL = 'vt_attack_full'
export const BARE = 'vt_attack_bare'

/** The collections `vault` and `people_all` are hidden. */
export const EXPOSED: Readonly<Record<string, readonly string[]>> = {
  people: [
    '_id',
    'name',
    'land',
    'home.city',
    'home.geo',
    'cards.brand',
    'cards.exp',
    'tags',
    'since',
    'score',
    'boss',
  ],
  orders: ['_id', 'person', 'state', 'at', 'total', 'lines.sku', 'lines.n', 'lines.tax.rate', 'extra'],
  spots: ['label', 'loc', 'grid.v', 'deep.a.b.c'],
  gauge: ['_id', 'at', 'meta.device', 'value', 'parts.x'],
  people_view: ['_id', 'name', 'cards.brand'],
  people_made: ['_id', 'cards.brand', 'house.city', 'house.geo.lat'],
  odd: ['_id', 'v', 'w.x', 'constructor', 'full name'],
}

const LANDS = ['BE', 'NL', 'FR', null, 'DE']
const id = (n: number): ObjectId => new ObjectId(n.toString(16).padStart(24, 'a'))
const hidden = (n: number): Int32 => new Int32(900_000 + n)

function person(n: number): Document {
  const card = (k: number): Document => ({
    brand: ['visa', 'amex', 'mc'][k % 3],
    exp: 2025 + k,
    number: `SECRET card ${n}.${k}`,
  })
  const cards = [
    [card(n), card(n + 1)],
    [],
    'SECRET no cards',
    [`SECRET among cards ${n}`, card(n)],
    [[card(n)], 7, card(n + 2)],
    card(n),
    [{ number: `SECRET only ${n}` }],
    [{ brand: null, number: 'SECRET' }],
    null,
    [{ brand: [], number: 'SECRET' }, 'SECRET'],
  ]
  const home = [
    { city: `City ${n % 7}`, street: `SECRET street ${n}`, geo: { lat: n, lon: [n, n + 1] } },
    `SECRET home ${n}`,
    { street: 'SECRET' },
    [{ city: 'Twin' }, 'SECRET twin', { city: `City ${n % 3}`, street: 'SECRET' }],
    { city: null, street: 'SECRET' },
  ]
  return {
    _id: id(n),
    name: `Name ${n}`,
    ...(n % 11 === 0 ? {} : { land: LANDS[n % 5] }),
    ssn: `SECRET ssn ${n}`,
    pay: hidden(n),
    ...(n % 13 === 0 ? {} : { home: home[n % 5] }),
    ...(n % 17 === 0 ? {} : { cards: cards[n % 10] }),
    tags: [['a', `t${n % 4}`], [], [['x'], null], 'solo'][n % 4],
    since: new Date(Date.UTC(2024, n % 12, 1 + (n % 28))),
    score: [n, new Double(n + 0.5), Decimal128.fromString(`${n}.25`), Long.fromNumber(n), null, 'many'][n % 6],
    ...(n === 0 ? {} : { boss: id(Math.floor(n / 2)) }),
  }
}

function order(n: number): Document {
  const line = (k: number): Document => ({
    sku: `P${k % 9}`,
    n: k % 5,
    cost: hidden(k),
    tax: k % 4 === 0 ? 'SECRET tax' : { rate: k % 3, office: 'SECRET office' },
  })
  return {
    _id: n,
    person: n % 10 === 9 ? null : id(n % 40),
    state: ['new', 'paid', 'sent'][n % 3],
    at: new Date(1_700_000_000_000 + n * 3_600_000),
    total: n % 2 === 0 ? Decimal128.fromString(`${n}.10`) : new Double(n / 4),
    lines: n % 8 === 0 ? 'SECRET lines' : Array.from({ length: n % 4 }, (_, k) => line(n + k)),
    margin: hidden(n),
    extra: [{ a: n, b: [1, { c: null }] }, [n, 'x'], null, {}][n % 4],
  }
}

function spot(n: number): Document {
  return {
    _id: `SECRET id ${n}`,
    label: `L${String(n).padStart(2, '0')}`,
    loc: { type: 'Point', coordinates: [4 + n / 10, 51 + n / 20] },
    grid: [[[{ v: n, s: 'SECRET' }, { v: n + 1 }], [{ v: 2, s: 'SECRET' }], 'SECRET'], { v: n }, [[]], [n]][n % 4],
    deep: { a: [{ b: [{ c: `c${n}`, d: 'SECRET' }, { d: 'SECRET' }], e: 'SECRET' }, 'SECRET'] },
    owner: 'SECRET owner',
  }
}

// MinKey and MaxKey are missing, because mongod 6.0 groups by both as {"": MinKey}.
const VALUES = [
  7,
  new Double(1.5),
  Long.fromString('9007199254740993'),
  Decimal128.fromString('12345678901234567890.5'),
  'text',
  true,
  null,
  new Date(0),
  id(1),
  new UUID('6f9619ff-8b86-d011-b42d-00cf4fc964ff'),
  { a: 1, b: [1, { c: null }] },
  [1, 'x', null],
  '',
  {},
  [],
  new Double(Number.NaN),
  new Double(Number.POSITIVE_INFINITY),
  { vt_look: 5, vt_document: 6, vt_from: [7] },
  JSON.parse('{"__proto__": 1, "toString": {"a.b": 2, "$c": [{"": 3}]}}'),
]

function odd(v: unknown, n: number): Document {
  const w = [{ x: n, y: 'SECRET' }, [{ x: n }, 'SECRET', { x: null }], 'SECRET', [n], [[{ x: n }], []], null][n % 6]
  return {
    _id: n,
    v,
    w,
    constructor: `c${n % 3}`,
    toString: 'SECRET',
    'full name': `F ${n}`,
    'w.x': 'SECRET dotted',
    $own: 'SECRET',
    ...JSON.parse('{"__proto__": {"x": "SECRET proto"}}'),
  }
}

const count = <T>(n: number, make: (n: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))

/** Fills `full` with all data, and `bare` with the exposed data. */
export async function load(full: Db, bare: Db): Promise<void> {
  const collections: Record<string, readonly Document[]> = {
    people: count(60, person),
    orders: count(80, order),
    spots: count(20, spot),
    odd: VALUES.map(odd),
    vault: count(5, (n) => ({ _id: n, person: id(n), code: `SECRET code ${n}` })),
  }
  for (const [name, documents] of Object.entries(collections)) await full.collection(name).insertMany([...documents])
  // mongod orders the buckets of a time series at random if they begin in the same hour. Each measurement here has its
  // own day, so both databases have the same order.
  const series = { timeseries: { timeField: 'at', metaField: 'meta', granularity: 'minutes' } }
  const measured = count(60, (n) => ({
    _id: n,
    at: new Date(1_750_000_000_000 + n * 25 * 3_600_000),
    meta: { device: `d${n % 3}`, owner: 'SECRET' },
    value: n / 2,
    parts: [[], ['SECRET'], ['SECRET', { x: n }, 'SECRET'], [{ x: 1, y: 'SECRET' }], [['SECRET', { x: 1 }], 'SECRET']][n % 5],
    raw: hidden(n),
  }))
  await full.createCollection('gauge', series)
  await full.collection('gauge').insertMany(measured as Document[])
  await full.createCollection('people_view', {
    viewOn: 'people',
    pipeline: [{ $project: { name: 1, ssn: 1, cards: 1 } }],
  })
  await full.createCollection('people_made', {
    viewOn: 'people',
    pipeline: [{ $project: { cards: { $ifNull: ['$cards', '$nothing'] }, house: { $ifNull: ['$home', null] } } }],
  })
  await full.createCollection('people_all', { viewOn: 'people', pipeline: [] })
  await full
    .collection('people')
    .createIndexes([
      { key: { name: 1 } },
      { key: { land: 1, ssn: 1 } },
      { key: { 'cards.brand': 1 } },
      { key: { 'home.city': 1 } },
      { key: { since: -1 } },
    ])
  await full
    .collection('orders')
    .createIndexes([{ key: { person: 1 } }, { key: { state: 1, at: -1 } }, { key: { 'lines.sku': 1 } }])
  for (const [name, paths] of Object.entries(EXPOSED)) {
    const documents = await full.collection(name).find({}, { promoteValues: false, bsonRegExp: true }).toArray()
    const kept = documents.map(
      (document) =>
        stripped(
          document,
          paths.map((path) => path.split('.')),
        ) as Document,
    )
    if (name === 'gauge') await bare.createCollection(name, series)
    const withId = paths.includes('_id')
    await bare.collection(withId ? name : `${name} as made`).insertMany(kept)
    if (!withId) await bare.createCollection(name, { viewOn: `${name} as made`, pipeline: [{ $project: { _id: 0 } }] })
  }
}

const GONE = Symbol('gone')

function stripped(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (paths.some((path) => path.length === 0)) return value
  if (Array.isArray(value))
    return value.map((element) => stripped(element, paths)).filter((element) => element !== GONE)
  if (!isDocument(value)) return GONE
  const kept: Document = {}
  for (const [name, below] of Object.entries(value)) {
    const under = paths.filter(([first]) => first === name).map((path) => path.slice(1))
    const left = under.length === 0 ? GONE : stripped(below, under)
    if (left !== GONE) kept[name] = left
  }
  return kept
}

export function isDocument(value: unknown): value is Document {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !('_bsontype' in value) &&
    !(value instanceof Date)
  )
}
