import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { BSON, type Db, type Document } from 'mongodb'
import { startMongod, type TestMongo } from '../../../../test/support/mongodb.ts'
import { skipWithout } from '../../../../test/support/no-such-engine.ts'
import { cut } from '../../../exposure/cut-catalog.ts'
import { freeze } from '../../../exposure/freeze-names.ts'
import type { Catalog, CatalogTable, Connection, Driver, Limits, SettingsInput } from '../../driver.ts'
import { createMongoDriver } from '../driver.ts'
import { isDetail } from '../guard/read-collections.ts'

const soon = (): AbortSignal => AbortSignal.timeout(60_000)
const limits: Limits = { rowCap: 1_000, maxResponseBytes: 1 << 23, timeoutMs: 10_000, maxCost: 1e6 }
const skip = await skipWithout(startMongod)

async function fill(db: Db): Promise<void> {
  await db.createCollection('customers', {
    validator: {
      $jsonSchema: {
        description: 'Who buys.',
        required: ['name'],
        properties: {
          name: { bsonType: 'string', description: 'As on the invoice.' },
          vip: { bsonType: 'bool', enum: [true, null] },
        },
      },
    },
  })
  await db.collection('customers').insertMany(
    Array.from({ length: 3_000 }, (_, i) => ({
      name: `c${i}`,
      address: { city: `city ${i % 9}`, geo: [1, 2] },
      cards: [{ brand: 'x', number: i }, { brand: 'y' }],
      byId: {
        [new BSON.ObjectId().toHexString()]: 1,
        [new BSON.ObjectId().toHexString()]: 2,
        [new BSON.ObjectId().toHexString()]: 3,
      },
      ...(i % 2 === 0 ? { phone: i % 4 === 0 ? null : '1' } : {}),
      ssn: `CANARY_${i}`,
    })) satisfies Document[],
  )
  await db.collection('customers').createIndex({ 'address.city': 1, name: -1 })
  await db.collection('customers').createIndex({ ssn: 1 }, { unique: true })
  await db.collection('customers').createIndex({ name: 'text' })
  await db.collection('odd').insertOne({ 'a.b': 1, $x: 2, '': 3, constructor: 4, toString: { valueOf: 5 }, '7': 6 })
  await db.createCollection('empty', { collation: { locale: 'en', strength: 2 } })
  await db.createCollection('log', { capped: true, size: 10_000 })
  await db.createCollection('cities', {
    viewOn: 'customers',
    pipeline: [{ $project: { _id: 0, city: '$address.city' } }],
  })
  await db.createCollection('sensor', { timeseries: { timeField: 'at', metaField: 'meta' } })
  await db.createCollection('warm', { viewOn: 'sensor', pipeline: [{ $match: { temp: { $gt: 20 } } }] })
  await db.collection('sensor').insertOne({ at: new Date(), meta: { device: 1 }, temp: 2 })
}

describe('introspection, plans, grades', { skip }, () => {
  const stack = new AsyncDisposableStack()
  let server: TestMongo
  let driver: Driver
  let connection: Connection
  let catalog: Catalog
  const as = (username: string, password: string, authSource = 'shop'): SettingsInput => ({
    connectionMode: 'DIRECT',
    host: server.host,
    port: server.port,
    database: 'shop',
    username,
    sslMode: 'disable',
    config: { authSource },
    secrets: { password },
  })
  const enter = (input: SettingsInput): Promise<Connection> =>
    driver.connect(driver.settings(input), { allowPrivateHosts: true }, soon())

  before(async () => {
    server = stack.use(await startMongod({ auth: true }))
    await fill(server.client.db('shop'))
    await server.client.db('other').collection('things').insertOne({ a: 1 })
    driver = stack.use(await createMongoDriver())
    connection = stack.use(await enter(as('root', server.password, 'admin')))
    catalog = await connection.introspect(soon())
  })
  after(() => stack.disposeAsync())

  const tableOf = (name: string, of = catalog): CatalogTable => {
    return of.tables.find(({ table }) => table === name) ?? assert.fail(`no ${name}`)
  }
  const namesOf = (name: string): string[] => tableOf(name).columns.map((column) => column.name)

  test('introspection lists collections, capped collections, views and time series, and no internal collections of MongoDB', () => {
    assert.deepEqual(
      catalog.tables.map(({ table, kind, estimatedRows }) => [table, kind, estimatedRows]),
      [
        ['cities', 'view', null],
        ['customers', 'collection', 3_000],
        ['empty', 'collection', 0],
        ['log', 'capped collection', 0],
        ['odd', 'collection', 1],
        ['sensor', 'time-series collection', 1],
        ['warm', 'view', null],
      ],
    )
  })

  test('introspection finds the views of time series', () => {
    const views = catalog.tables.filter(({ detail }) => isDetail(detail) && detail.ofSeries === true)
    assert.deepEqual(
      views.map(({ table }) => table),
      ['warm'],
    )
  })

  test('introspection finds dotted paths through arrays, collapses dictionaries, and keeps no value', () => {
    const paths = ['_id', 'name', 'address', 'address.city', 'address.geo', 'cards', 'cards.brand', 'cards.number']
    assert.deepEqual(namesOf('customers'), [...paths, 'byId', 'phone', 'ssn', 'vip'])
    assert.ok(!JSON.stringify(catalog).includes('CANARY'))
    const dictionary = tableOf('customers').columns.find(({ name }) => name === 'byId')
    assert.match(String(dictionary?.signals), /keys are data/)
    assert.deepEqual(namesOf('cities'), ['city'])
    assert.deepEqual(namesOf('empty'), ['_id'])
    assert.deepEqual(namesOf('sensor').sort(), ['_id', 'at', 'meta', 'meta.device', 'temp'])
  })

  test('introspection reports types, presence and nullability from the sample, or nullability from a strict validator', () => {
    const column = (name: string) => tableOf('customers').columns.find((each) => each.name === name)
    assert.deepEqual([column('name')?.nullable, column('name')?.description], [false, 'As on the invoice.'])
    assert.deepEqual(
      [column('phone')?.nullable, column('_id')?.primaryKey, column('vip')?.nullable],
      [true, true, true],
    )
    assert.match(String(column('phone')?.signals), /string \(\d+ %\), null \(\d+ %\)|null \(\d+ %\), string/)
    assert.match(String(column('vip')?.signals), /declared as bool,in none of \d+ sampled documents/)
    assert.deepEqual([column('vip')?.labels, column('name')?.labels], [[true], undefined])
    assert.ok(catalog.tables.every((table) => table.columns.every(({ type }) => type === 'bson')))
  })

  test('introspection finds out which collections compare texts by a collation', () => {
    const collated = catalog.tables.map(({ table, detail }) => [table, isDetail(detail) && detail.collated])
    const plain = ['cities', 'customers', 'log', 'odd', 'sensor', 'warm'].map((name) => [name, false])
    assert.deepEqual(collated.sort(), [...plain, ['empty', true]].sort())
  })

  test('introspection warns of names that cannot be part of a path, and accepts names of Object.prototype', () => {
    assert.deepEqual(namesOf('odd'), ['_id', 'constructor', 'toString', 'toString.valueOf'])
    assert.match(tableOf('odd').warnings.join(), /"a\.b".*"\$x"/)
  })

  test('an exposure with `columns: null` is saved as the list of the top-level names', () => {
    const { tables } = freeze([{ schema: 'shop', table: 'customers', columns: null }], catalog, [])
    assert.deepEqual(tables[0]?.columns, ['_id', 'name', 'address', 'cards', 'byId', 'phone', 'ssn', 'vip'])
    const shown = cut(catalog, [{ schema: 'shop', table: 'customers', columns: ['address'] }])
    assert.deepEqual(
      tableOf('customers', shown).columns.map(({ name }) => name),
      ['address', 'address.city', 'address.geo'],
    )
  })

  test('an index is shown only if all its keys are exposed, and a text index is never shown', () => {
    const indexes = (columns: string[]) =>
      tableOf('customers', cut(catalog, [{ schema: 'shop', table: 'customers', columns }])).indexes
    assert.deepEqual(indexes(['name', 'address.city']), [
      {
        keys: [
          { path: 'address.city', direction: 1 },
          { path: 'name', direction: -1 },
        ],
        unique: false,
      },
    ])
    assert.deepEqual(indexes(['name']), [])
    assert.deepEqual(indexes(['_id'])?.length, 1)
  })

  test('a login that may only find sees its own collections and no other names', async () => {
    await server.client.db('shop').command({
      createRole: 'narrow',
      privileges: [{ resource: { db: 'shop', collection: 'customers' }, actions: ['find'] }],
      roles: [],
    })
    await server.createUser('shop', 'narrow', 'pw', ['narrow'])
    await using narrow = await enter(as('narrow', 'pw'))
    const seen = await narrow.introspect(soon())
    assert.deepEqual(
      seen.tables.map(({ table }) => table),
      ['customers'],
    )
    const report = await narrow.test(cut(seen, [{ schema: 'shop', table: 'customers', columns: ['name'] }]), soon())
    assert.deepEqual([report.ok, report.grade], [true, 'PASS'], JSON.stringify(report.steps))
  })

  test('a login that can write, or can read other databases, gets warnings with commands for a better login', async () => {
    await server.createUser('shop', 'wide', 'pw', ['readWrite', { role: 'read', db: 'other' }])
    await using wide = await enter(as('wide', 'pw'))
    const exposed = cut(catalog, [{ schema: 'shop', table: 'customers', columns: ['name'] }])
    const { steps, grade } = await wide.test(exposed, soon())
    const by = new Map(steps.map((step) => [step.name, step]))
    assert.deepEqual([grade, by.get('writes')?.status, by.get('other databases')?.status], ['WARN', 'WARN', 'WARN'])
    const lines = by.get('writes')?.remedy ?? ''
    assert.match(lines, /createRole[\s\S]*collection: "customers" }, actions: \["find"\][\s\S]*createUser/)
    await using reader = await enter(await readerOf(server, as))
    assert.deepEqual((await reader.test(exposed, soon())).grade, 'PASS')
  })

  test('a limited sort on an indexed path uses the index, and so does a filter in any form', async () => {
    const exposed = cut(catalog, [{ schema: 'shop', table: 'customers', columns: ['name', 'address'] }])
    const plan = async (body: object): Promise<string> => {
      const verdict = await driver.confine(driver.read({ collection: 'customers', ...body }), exposed, limits, soon())
      if (verdict.kind !== 'confined') return assert.fail(JSON.stringify(verdict))
      assert.ok((await connection.estimate(verdict.query, limits, soon())).cost === 0)
      const printed = BSON.EJSON.parse(driver.printed(verdict.query))
      const explain = 'pipeline' in printed ? { ...printed, cursor: {} } : printed
      return JSON.stringify(await server.client.db('shop').command({ explain, verbosity: 'queryPlanner' }))
    }
    for (const body of [
      { pipeline: [{ $sort: { 'address.city': 1, name: -1 } }, { $limit: 5 }] },
      { filter: { 'address.city': 'city 1' } },
      {
        filter: { 'address.city': { $in: ['city 1', 'city 2'] } },
        pipeline: [{ $sort: { 'address.city': 1 } }, { $limit: 5 }],
      },
    ]) {
      const text = await plan(body)
      assert.ok(/IXSCAN/.test(text) && !/COLLSCAN|"stage":"SORT"/.test(text), text.slice(0, 500))
    }
  })

  test('the cost is the number of documents read, for scans, limited scans and joins', async () => {
    const exposed = cut(catalog, [{ schema: 'shop', table: 'customers', columns: ['_id', 'name', 'phone', 'address'] }])
    assert.ok(isDetail(tableOf('customers').detail))
    const cost = async (body: object): Promise<number> => {
      const verdict = await driver.confine(driver.read({ collection: 'customers', ...body }), exposed, limits, soon())
      if (verdict.kind !== 'confined') return assert.fail(JSON.stringify(verdict))
      return (await connection.estimate(verdict.query, limits, soon())).cost
    }
    const join = (foreignField: string) => ({
      $lookup: { from: 'customers', localField: 'name', foreignField, as: 'j' },
    })
    assert.equal(await cost({ filter: { phone: '1' } }), 3_000)
    assert.equal(await cost({ pipeline: [{ $limit: 10 }] }), 10)
    assert.equal(await cost({ pipeline: [{ $limit: 10 }, join('_id')] }), 20)
    assert.equal(await cost({ pipeline: [{ $limit: 10 }, join('phone')] }), 30_010)
    const verdict = await driver.confine(
      driver.read({ collection: 'customers', pipeline: [join('phone')] }),
      exposed,
      limits,
      soon(),
    )
    if (verdict.kind !== 'confined') assert.fail()
    await assert.rejects(connection.run(verdict.query, limits, soon()), { code: 'QUERY_DENIED' })
  })

  test('a query on a dropped collection gets an error instead of an empty result', async () => {
    await server.client.db('shop').collection('gone').insertOne({ a: 1 })
    const exposed = cut(await connection.introspect(soon()), [{ schema: 'shop', table: 'gone', columns: ['a'] }])
    await server.client.db('shop').collection('gone').drop()
    const verdict = await driver.confine(driver.read({ collection: 'gone' }), exposed, limits, soon())
    if (verdict.kind !== 'confined') assert.fail()
    await assert.rejects(connection.run(verdict.query, limits, soon()), { code: 'SCHEMA_STALE' })
  })
})

/** Creates the login with the commands that Vitrine suggests, without the prompt for the password. */
async function readerOf(
  server: TestMongo,
  as: (user: string, password: string) => SettingsInput,
): Promise<SettingsInput> {
  const privileges = [{ resource: { db: 'shop', collection: 'customers' }, actions: ['find'] }]
  await server.client.db('shop').command({ createRole: 'vitrine_reader', privileges, roles: [] })
  await server.createUser('shop', 'vitrine_reader', 'pw', ['vitrine_reader'])
  return as('vitrine_reader', 'pw')
}
