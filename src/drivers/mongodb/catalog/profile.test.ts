import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Decimal128, Long, type Document } from 'mongodb'
import { startMongod, type TestMongo } from '../../../../test/support/mongodb.ts'
import { skipWithout } from '../../../../test/support/no-such-engine.ts'
import { AppError } from '../../../errors.ts'
import type { Catalog, CatalogTable, ColumnProfile, Connection, Driver } from '../../driver.ts'
import { createMongoDriver } from '../driver.ts'

const skip = await skipWithout(startMongod)
const soon = (): AbortSignal => AbortSignal.timeout(60_000)
const BOUNDS = { rows: 1_000, timeoutMs: 10_000, bytes: null }

describe('profiles of collections', { skip }, () => {
  const stack = new AsyncDisposableStack()
  let server: TestMongo
  let driver: Driver
  let connection: Connection
  let catalog: Catalog
  before(async () => {
    server = stack.use(await startMongod())
    const db = server.client.db('shop')
    const small = Array.from({ length: 200 }, (_, n): Document => ({
      _id: n,
      state: ['open', 'paid'][n % 2],
      total: n % 3 === 0 ? Decimal128.fromString(`${n}.50`) : n,
      big: Long.fromString('9007199254740993'),
      at: new Date(Date.UTC(2024, 0, 1) + n * 3_600_000),
      tags: n % 4 === 0 ? [] : ['a', 'a', `t${n % 2}`],
      lines: [{ sku: `P${n % 3}`, n }, { sku: 'P0' }],
      home: n % 10 === 0 ? 'nowhere' : { city: `c${n % 5}` },
      ...(n % 4 === 0 ? {} : { note: n % 4 === 1 ? null : 'x' }),
    }))
    await db.collection<Document>('small').insertMany(small)
    await db.collection('large').insertMany(Array.from({ length: 30_000 }, (_, n) => ({ n, kind: `k${n % 6}` })))
    await db.collection('middle').insertMany(Array.from({ length: 5_000 }, (_, n) => ({ n })))
    await db.collection('huge').insertMany(Array.from({ length: 60 }, (_, n) => ({ body: `${n} `.repeat(300_000) })))
    await db.createCollection('empty')
    await db.createCollection('seen', { viewOn: 'small', pipeline: [{ $project: { state: 1 } }] })
    await db.createCollection('gauge', { timeseries: { timeField: 'at', metaField: 'meta' } })
    await db.collection('gauge').insertMany([1, 2, 3].map((v) => ({ at: new Date(v), meta: { device: 'd' }, v })))
    driver = stack.use(await createMongoDriver())
    const settings = driver.settings({
      connectionMode: 'DIRECT',
      host: server.host,
      port: server.port,
      database: 'shop',
      username: null,
      sslMode: 'disable',
      secrets: {},
    })
    connection = stack.use(await driver.connect(settings, { allowPrivateHosts: true }, soon()))
    catalog = await connection.introspect(soon())
  })
  after(() => stack[Symbol.asyncDispose]())

  function tableOf(name: string): CatalogTable {
    const table = catalog.tables.find((each) => each.table === name)
    assert.ok(table, name)
    return table
  }
  const profile = (name: string) => connection.profile(tableOf(name), catalog, BOUNDS, soon())
  const columns = async (name: string): Promise<Map<string, ColumnProfile>> =>
    new Map((await profile(name)).columns.map((column) => [column.name, column]))

  test('the profile of a small collection is exact', async () => {
    const of = await columns('small')
    assert.deepEqual(of.get('state')?.values, [
      { value: 'open', share: 0.5, rows: 100 },
      { value: 'paid', share: 0.5, rows: 100 },
    ])
    assert.deepEqual(of.get('total')?.range, { min: 0.5, max: 199 })
    assert.deepEqual(of.get('big')?.range, { min: '9007199254740993', max: '9007199254740993' })
    assert.deepEqual(of.get('at')?.range, { min: '2024-01-01T00:00:00.000Z', max: '2024-01-09T07:00:00.000Z' })
    assert.equal(of.get('note')?.nullFrac, 0.5)
  })

  test('in a profile, equal elements of an array count once for each document, and documents do not count as values', async () => {
    const of = await columns('small')
    assert.deepEqual(
      of.get('tags')?.values?.map(({ value, rows }) => [value, rows]),
      [
        ['a', 150],
        ['t1', 100],
        ['t0', 50],
      ],
    )
    assert.equal(of.get('tags')?.nullFrac, 0)
    assert.deepEqual(of.get('lines.sku')?.values?.[0], { value: 'P0', share: 1, rows: 200 })
    assert.deepEqual([of.get('lines')?.values, of.get('home')?.values], [null, null])
    assert.deepEqual([of.get('home.city')?.nullFrac, of.get('home.city')?.distinctCount], [0.1, 5])
  })

  test('a large collection is sampled', async () => {
    for (const [name, count] of [
      ['large', 30_000],
      ['middle', 5_000],
    ] as const) {
      const result = await profile(name)
      assert.ok(result.rowsSampled > 800 && result.rowsSampled <= 1_000, `${name} ${result.rowsSampled}`)
      assert.deepEqual([result.complete, result.estimatedRows], [false, count])
      const n = result.columns.find((column) => column.name === 'n')
      assert.ok(Number(n?.range?.max) > count * 0.9 && Number(n?.range?.min) < count * 0.1)
    }
  })

  test('a profile can be made of an empty collection, a view, a time series, and strings of a megabyte', async () => {
    assert.deepEqual([(await profile('empty')).rowsSampled, (await profile('empty')).complete], [0, true])
    assert.equal((await columns('seen')).get('state')?.distinctCount, 2)
    assert.deepEqual((await columns('gauge')).get('v')?.range, { min: 1, max: 3 })
    assert.equal((await columns('huge')).get('body')?.sample?.longest, 257)
  })

  test('a profile reads only exposed paths, and fails for a dropped collection', async () => {
    const small = tableOf('small')
    const table = { ...small, columns: small.columns.filter(({ name }) => name === 'home.city') }
    const result = await connection.profile(table, { ...catalog, tables: [table] }, BOUNDS, soon())
    assert.deepEqual(
      result.columns.map(({ name, distinctCount }) => [name, distinctCount]),
      [['home.city', 5]],
    )
    await assert.rejects(connection.profile(small, { ...catalog, tables: [] }, BOUNDS, soon()), isAny)
    await server.client.db('shop').dropCollection('middle')
    await assert.rejects(profile('middle'), (error) => error instanceof AppError && error.code === 'SCHEMA_STALE')
  })
})

const isAny = (error: unknown): boolean => error instanceof AppError
