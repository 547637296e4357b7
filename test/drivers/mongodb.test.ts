// Runs conformance.ts for MongoDB, with the least-privilege login that the connection test recommends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog, SettingsInput } from '../../src/drivers/driver.ts'
import { createMongoDriver } from '../../src/drivers/mongodb/driver.ts'
import { cut } from '../../src/exposure/cut-catalog.ts'
import { startMongod } from '../support/mongodb.ts'
import { skipWithout } from '../support/no-such-engine.ts'
import { conformance, type Ground } from './conformance.ts'

const EXPOSED = ['_id', 'name', 'price', 'tags']

async function open(): Promise<Ground> {
  const stack = new AsyncDisposableStack()
  const server = stack.use(await startMongod({ auth: true }))
  const database = server.database('shop')
  const products = server.client.db(database).collection<{ _id: number }>('products')
  await products.insertMany(
    Array.from({ length: 2000 }, (_, i) => ({
      _id: i + 1,
      name: `p${i + 1}`,
      price: (i + 1) / 4,
      tags: ['a', 'b'],
      supplier_secret: `CANARY_${i + 1}`,
    })),
  )
  await server.client.db(database).collection('secrets').insertOne({ token: 'CANARY_token' })
  await server.client.db(database).command({
    createRole: 'reader',
    privileges: [{ resource: { db: database, collection: 'products' }, actions: ['find'] }],
    roles: [],
  })
  await server.createUser(database, 'reader', 'reader-pw', ['reader'])
  const driver = stack.use(await createMongoDriver())
  const settings: SettingsInput = {
    connectionMode: 'DIRECT',
    host: server.host,
    port: server.port,
    database,
    username: 'reader',
    sslMode: 'disable',
    config: { authSource: database },
    secrets: { password: 'reader-pw' },
  }
  const collection = 'products'
  const slow = [1, 2, 3].map((n) => ({
    $lookup: { from: 'products', pipeline: [{ $match: { $expr: { $ne: ['$price', n] } } }], as: `j${n}` },
  }))
  return {
    driver,
    settings,
    wrongPassword: { ...settings, secrets: { password: 'wrong' } },
    nobody: { ...settings, port: 1 },
    cut: exposedOnly,
    bodies: {
      small: { collection, pipeline: [{ $sort: { _id: 1 } }, { $limit: 2 }, { $project: { name: 1, price: 1 } }] },
      rows: '[[1,"p1",0.25],[2,"p2",0.5]]',
      many: { collection, pipeline: [{ $project: { _id: 1 } }] },
      wide: {
        collection,
        pipeline: [
          {
            $group: {
              _id: { $mod: ['$_id', 20] },
              names: { $push: { $concat: Array.from({ length: 60 }, () => '$name') } },
            },
          },
        ],
      },
      slow: {
        collection,
        pipeline: [...slow.map((stage, n) => [stage, { $unwind: `$j${n + 1}` }]).flat(), { $count: 'n' }],
      },
      failing: { collection, pipeline: [{ $project: { x: { $divide: [1, { $subtract: ['$_id', 1] }] } } }] },
      hidden: { collection, filter: { supplier_secret: 'x' } },
      writing: { collection, pipeline: [{ $out: 'products' }] },
      malformed: { collection, filter: { _id: { $oid: 'no' } } },
    },
    secret: /CANARY|reader-pw|secrets|token/,
    working: () => server.working('vitrine'),
    alien: null,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

function exposedOnly(catalog: Catalog): Catalog {
  assert.deepEqual(
    catalog.tables.map((table) => table.table),
    ['products'],
  )
  return cut(catalog, [{ schema: catalog.tables[0]?.schema ?? '', table: 'products', columns: EXPOSED }])
}

const skip = await skipWithout(() => startMongod({ auth: true }))
if (skip === false) conformance('MONGODB', open)
else test('the duties of every kind: MONGODB', { skip })

test('the MongoDB driver gives its words for schema, table and query language', async () => {
  await using driver = await createMongoDriver()
  assert.deepEqual(driver.vocabulary, {
    schema: 'database',
    table: 'collection',
    queryLanguage: 'MongoDB filter and aggregation pipeline',
  })
})
