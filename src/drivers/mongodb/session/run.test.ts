import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { BSON, type Db } from 'mongodb'
import { startMongod, startNewest, type TestMongo } from '../../../../test/support/mongodb.ts'
import { engineOrSkip, skipWithout } from '../../../../test/support/no-such-engine.ts'
import { cut } from '../../../exposure/cut-catalog.ts'
import type { Confined } from '../../confined.ts'
import type { Catalog, Connection, Driver, Limits } from '../../driver.ts'
import { createMongoDriver } from '../driver.ts'

const soon = (): AbortSignal => AbortSignal.timeout(60_000)
const limits: Limits = { rowCap: 1_000, maxResponseBytes: 1 << 23, timeoutMs: 10_000, maxCost: 1e6 }
const schema = 'shop'

async function confined(driver: Driver, exposed: Catalog, body: object): Promise<Confined> {
  const verdict = await driver.confine(driver.read(body), exposed, limits, soon())
  return verdict.kind === 'confined' ? verdict.query : assert.fail(JSON.stringify(verdict))
}

async function open(driver: Driver, server: TestMongo, user?: string): Promise<Connection> {
  const login = user === undefined ? {} : { username: user, secrets: { password: 'pw' } }
  const at = { connectionMode: 'DIRECT', host: server.host, port: server.port, database: schema, sslMode: 'disable' }
  const settings = driver.settings({ secrets: {}, ...at, ...login, config: { authSource: schema } })
  return await driver.connect(settings, { allowPrivateHosts: true }, soon())
}

async function fillHomes(db: Db): Promise<void> {
  const homes = Array.from({ length: 2_000 }, (_, n) => {
    const home = { city: `c${String((n * 37) % 2_000).padStart(4, '0')}`, street: `SECRET ${n}` }
    return { _id: n, home, cards: n % 5 === 0 ? [{ brand: `b${n}`, number: 'SECRET' }] : [] }
  })
  await db.collection<{ _id: number }>('people').insertMany(homes)
  await db.collection('people').createIndexes([{ key: { 'home.city': 1 } }, { key: { 'cards.brand': 1 } }])
}

for (const [name, start] of [
  ['the real mongod', startMongod],
  ['the newest engine', startNewest],
] as const) {
  test(`a limited sort on an indexed path of a partly exposed object uses the index, and keeps the order: ${name}`, async (t) => {
    const server = await engineOrSkip<TestMongo>(t, start)
    if (server === null) return
    await using _ = server
    const db = server.client.db(schema)
    await fillHomes(db)
    await using driver = await createMongoDriver()
    await using connection = await open(driver, server)
    const found = await connection.introspect(soon())
    const exposed = cut(found, [{ schema, table: 'people', columns: ['_id', 'home.city', 'cards.brand'] }])
    for (const [path, direction] of [
      ['home.city', 1],
      ['home.city', -1],
      ['cards.brand', -1],
    ] as const) {
      const pipeline = [{ $sort: { [path]: direction } }, { $skip: 1 }, { $limit: 3 }]
      const query = await confined(driver, exposed, { collection: 'people', pipeline })
      const sent = BSON.EJSON.parse(driver.printed(query)).pipeline
      const plan = JSON.stringify(await db.collection('people').aggregate(sent).explain('queryPlanner'))
      assert.ok(/IXSCAN/.test(plan) && !/COLLSCAN|"stage":"SORT"/.test(plan), plan.slice(0, 800))
      assert.equal((await connection.estimate(query, limits, soon())).cost, 0)
    }
    const openCursors = async (): Promise<number> =>
      Number((await server.client.db('admin').command({ serverStatus: 1 }))['metrics'].cursor.open.total)
    const before = await openCursors()
    const groups = await confined(driver, exposed, {
      collection: 'people',
      pipeline: [{ $group: { _id: '$_id' } }],
      limit: 2,
    })
    const text = { $concat: ['$home.city', 'x'.repeat(20_000)] }
    const wide = {
      collection: 'people',
      pipeline: [{ $set: { t: { $map: { input: { $range: [0, 2] }, in: text } } } }],
    }
    for (const query of [groups, await confined(driver, exposed, wide)]) {
      await connection.run(query, limits, soon()).catch(() => undefined)
      assert.equal(await openCursors(), before, 'an answer that is cut leaves no cursor')
    }
    const first = async (): Promise<string> => {
      const pipeline = [{ $sort: { 'home.city': 1 } }, { $limit: 2 }, { $project: { 'home.city': 1 } }]
      const query = await confined(driver, exposed, { collection: 'people', pipeline })
      return String((await connection.run(query, limits, soon())).rows)
    }
    assert.equal(await first(), '[[0,{"city":"c0000"}],[973,{"city":"c0001"}]]')
    // By raw values, the hidden element would sort z first. By exposed values, z is last.
    await db.collection<{ _id: number }>('people').insertOne({ _id: -1, ...{ home: ['SECRET', { city: 'z' }] } })
    assert.equal(await first(), '[[0,{"city":"c0000"}],[973,{"city":"c0001"}]]')
    await db.collection<{ _id: number }>('people').insertOne({ _id: -2, ...{ home: [{ city: 'a' }] } })
    assert.equal(await first(), '[[-2,[{"city":"a"}]],[0,{"city":"c0000"}]]')
  })
}

const skip = await skipWithout(startMongod)

describe('a collection that the login cannot count', { skip }, () => {
  const stack = new AsyncDisposableStack()
  let driver: Driver
  let connection: Connection
  let found: Catalog

  before(async () => {
    const server = stack.use(await startMongod({ auth: true }))
    const db = server.client.db(schema)
    await db.collection('base').insertMany(Array.from({ length: 500 }, (_, n) => ({ n, part: n % 5 })))
    await db.collection('base').createIndex({ n: 1 })
    await db.createCollection('some', { viewOn: 'base', pipeline: [{ $match: { part: { $gte: 1 } } }] })
    await db.createCollection('meter', { timeseries: { timeField: 'at', metaField: 'of' } })
    await db.collection('meter').insertOne({ at: new Date(0), of: 1, value: 2 })
    await db.collection('orders').insertOne({ n: 1 })
    const privileges = ['some', 'meter', 'orders'].map((collection) => ({
      resource: { db: schema, collection },
      actions: ['find'],
    }))
    await db.command({ createRole: 'narrow', privileges, roles: [] })
    await server.createUser(schema, 'narrow', 'pw', ['narrow'])
    driver = stack.use(await createMongoDriver())
    connection = stack.use(await open(driver, server, 'narrow'))
    found = await connection.introspect(soon())
  })
  after(() => stack.disposeAsync())

  /** Returns the catalog as if the count of introspection had timed out. */
  const uncounted = (): Catalog => ({
    ...found,
    tables: found.tables.map((table) => ({ ...table, detail: { ...Object(table.detail), documents: null } })),
  })
  const scan = { collection: 'some', filter: { part: 3 } }

  test('a collection that the login cannot count may be scanned if introspection counted its documents', async () => {
    const query = await confined(driver, found, scan)
    assert.equal((await connection.estimate(query, limits, soon())).cost, 400)
    assert.equal((await connection.run(query, limits, soon())).rowCount, 100)
  })

  test('a collection whose documents nobody could count is read only by an index or with a limit', async () => {
    const run = async (body: object): Promise<number> =>
      (await connection.run(await confined(driver, uncounted(), body), limits, soon())).rowCount
    for (const body of [
      scan,
      { collection: 'meter', filter: { value: 2 } },
      { collection: 'orders', pipeline: [{ $lookup: { from: 'some', pipeline: [], as: 'j' } }] },
      { collection: 'orders', pipeline: [{ $unionWith: 'some' }] },
    ]) {
      const refused = { code: 'QUERY_DENIED', message: /cannot count/ }
      await assert.rejects(run(body), refused, JSON.stringify(body))
    }
    assert.equal(await run({ collection: 'some', filter: { n: { $lt: 10 } } }), 8)
    assert.equal(await run({ collection: 'meter', filter: { at: { $lt: { $date: '2000-01-01' } } } }), 1)
  })
})
