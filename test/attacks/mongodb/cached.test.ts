// The guard caches the shapes of queries: the queries without their values. For every attack and legitimate query, also
// with other values, the cache must give the same verdict as the guard without the cache.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../support/mongo-catalog.ts'
import { catalog } from './ask.ts'
import { ATTACKS } from './attacks.ts'
import { checkCached } from './cached.ts'
import { EXPOSED } from './fixture.ts'
import { FAMILIES } from './grown.ts'
import { HEAVY } from './heavy.ts'
import { LEGIT } from './legit.ts'

const LOOKUPS: readonly object[] = [
  { collection: 'people', filter: { name: 'name 1' } },
  { collection: 'people', filter: { score: { $gte: 3, $lt: 9.5 }, land: { $ne: 'BE' } }, limit: 5 },
  { collection: 'people', filter: { _id: { $oid: 'aaaaaaaaaaaaaaaaaaaaaaa1' }, since: { $gt: { $date: '2024-02-03' } } } },
  { collection: 'people', filter: { $or: [{ name: 'a' }, { $and: [{ score: 1 }, { 'home.city': { $lte: 'z' } }] }] } },
  { collection: 'people', pipeline: [{ $match: { name: 'a' } }, { $sort: { 'home.city': 1 } }, { $limit: 2 }] },
  { collection: 'people', filter: { land: 'BE' }, pipeline: [{ $group: { _id: '$land', n: { $sum: 1 } } }, { $match: { n: { $gt: 1 } } }] },
  { collection: 'people', filter: { 'cards.brand': 'visa', 'home.city': null } },
  { collection: 'orders', filter: { total: { $numberDecimal: '10.5' }, n: { $numberLong: '5' }, u: { $uuid: '81234560-1812-4345-8601-812345610000' } } },
]

test('a query with a cached shape gets the verdict of the guard, whatever its values are', () => {
  for (const version of [[6, 0, 5], [8, 3, 0]]) {
    const exposed = catalog(version)
    const bodies = [
      ...LOOKUPS,
      ...LEGIT,
      ...ATTACKS.map(({ body }) => body),
      ...HEAVY.map(({ body }) => body(10)),
      ...FAMILIES.map(({ body }) => body(12)),
    ]
    let hits = 0
    for (const [n, body] of bodies.entries()) hits += checkCached(exposed, body, n, 12)
    assert.ok(hits > 150, `only ${hits} hits`)
  }
})

test('the cache learns the shapes of six ordinary look-ups', () => {
  const exposed = catalog([8, 3, 0])
  for (const [n, body] of LOOKUPS.slice(0, 6).entries())
    assert.ok(checkCached(exposed, body, n, 0) >= 1, JSON.stringify(body))
})

test('a shape that is cached for one exposure is not used for another', () => {
  const body = { collection: 'people', filter: { name: 'name 1' } }
  const [wide, narrow] = [mongoCatalog(EXPOSED), mongoCatalog({ people: ['land'] })]
  assert.equal(checkCached(wide, body, 0, 0), 1)
  assert.equal(checkCached(narrow, body, 0, 0), 0)
})
