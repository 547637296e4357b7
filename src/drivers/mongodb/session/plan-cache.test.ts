import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startMongod, type TestMongo } from '../../../../test/support/mongodb.ts'
import { engineOrSkip } from '../../../../test/support/no-such-engine.ts'
import type { Connection, Driver, Limits } from '../../driver.ts'
import { createMongoDriver } from '../driver.ts'

const soon = (): AbortSignal => AbortSignal.timeout(60_000)
/** The limit on cost is below the size of the collection, so that the plan decides. */
const limits: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 10_000, maxCost: 100 }

async function connected(driver: Driver, { host, port, password }: TestMongo): Promise<Connection> {
  const at = { connectionMode: 'DIRECT', host, port, database: 'shop', sslMode: 'disable' }
  const settings = driver.settings({ ...at, username: 'root', secrets: { password }, config: {} })
  return await driver.connect(settings, { allowPrivateHosts: true }, soon())
}

async function explains(server: TestMongo): Promise<number> {
  const status = await server.client.db('admin').command({ serverStatus: 1 })
  const { metrics } = status as unknown as { metrics: { commands: { explain: { total: number } } } }
  return Number(metrics.commands.explain.total)
}

test('if a join reads many documents for each document that an index finds, these documents are counted', async (t) => {
  const server = await engineOrSkip(t, () => startMongod({ auth: true }))
  if (server === null) return
  await using _ = server
  const shop = server.client.db('shop')
  await shop.collection('things').insertMany(Array.from({ length: 2_000 }, (_, n) => ({ n, text: `t${n}` })))
  await shop.collection('things').createIndex({ n: 1 })
  await shop.collection('parts').insertMany(Array.from({ length: 50 }, (_, n) => ({ thing: n })))
  await using driver = await createMongoDriver()
  await using connection = await connected(driver, server)
  const exposed = await connection.introspect(soon())
  const join = { $lookup: { from: 'parts', localField: 'n', foreignField: 'thing', as: 'parts' } }
  const ask = async (filter: object, ...pipeline: object[]): Promise<number> => {
    const verdict = await driver.confine(
      driver.read({ collection: 'things', filter, pipeline }),
      exposed,
      limits,
      soon(),
    )
    if (verdict.kind !== 'confined') return assert.fail(JSON.stringify(verdict))
    return (await connection.run(verdict.query, limits, soon())).rowCount
  }
  assert.equal(await ask({ n: { $lt: 2 } }, join), 2)
  assert.equal(await ask({ n: { $gte: 0 } }, { $limit: 2 }, join), 2)
  assert.equal(await ask({ n: { $gte: 0 } }, { $match: { text: { $regex: '^t17$' } } }, join), 1)
  const code = 'QUERY_DENIED'
  await assert.rejects(ask({ n: { $lt: 3 } }, join), { code, message: /about 150 documents/ })
  await assert.rejects(ask({ n: { $gte: 0 } }, join, { $unwind: '$parts' }), { code })
  await assert.rejects(ask({ n: { $lt: 2 } }, { $unionWith: 'parts' }, join), { code })
})

test('a look-up by an index is explained once for all values, and other queries each time', async (t) => {
  const server = await engineOrSkip(t, () => startMongod({ auth: true }))
  if (server === null) return
  await using _ = server
  const things = server.client.db('shop').collection('things')
  await things.insertMany(Array.from({ length: 2_000 }, (_, n) => ({ n, open: n % 2, text: `t${n}`, part: n })))
  await things.createIndexes([{ key: { n: 1 } }, { key: { part: 1 }, partialFilterExpression: { open: 1 } }])
  await using driver = await createMongoDriver()
  await using connection = await connected(driver, server)
  const exposed = await connection.introspect(soon())
  const ask = async (filter: object, more: object = {}): Promise<{ rows: number; explains: number }> => {
    const body = driver.read({ collection: 'things', filter, ...more })
    const verdict = await driver.confine(body, exposed, limits, soon())
    if (verdict.kind !== 'confined') return assert.fail(JSON.stringify(verdict))
    const before = await explains(server)
    const { rowCount } = await connection.run(verdict.query, limits, soon())
    return { rows: rowCount, explains: (await explains(server)) - before }
  }
  assert.deepEqual(await ask({ n: 5 }), { rows: 1, explains: 1 })
  assert.deepEqual(await ask({ n: 6 }), { rows: 1, explains: 0 })
  assert.deepEqual(await ask({ n: { $eq: 7 }, open: 1 }), { rows: 1, explains: 0 })
  // For a value of another type, for several values and for a join, the plan is read again.
  assert.deepEqual(await ask({ n: '6' }), { rows: 0, explains: 1 })
  assert.deepEqual(await ask({ n: { $gt: 1_990 } }), { rows: 9, explains: 1 })
  assert.deepEqual(await ask({ n: { $gt: 1_990 } }), { rows: 9, explains: 1 })
  const join = { $lookup: { from: 'things', localField: 'n', foreignField: 'n', as: 'same' } }
  assert.deepEqual(await ask({ n: 6 }, { pipeline: [join] }), { rows: 1, explains: 1 })
  // A partial index serves some values only, so look-ups by the index are not cached.
  assert.deepEqual(await ask({ part: 3, open: 1 }), { rows: 1, explains: 1 })
  await assert.rejects(ask({ part: 4, open: 0 }), { code: 'QUERY_DENIED' })
  await assert.rejects(ask({ text: 't1' }), { code: 'QUERY_DENIED' })
  await assert.rejects(ask({ text: 't1' }), { code: 'QUERY_DENIED' })
})
