import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startFaultyWay } from '../../../../test/support/faulty-connection.ts'
import { startMongod } from '../../../../test/support/mongodb.ts'
import { engineOrSkip } from '../../../../test/support/no-such-engine.ts'
import { until } from '../../../../test/support/until.ts'
import { AppError } from '../../../errors.ts'
import type { Limits } from '../../driver.ts'
import { createMongoDriver } from '../driver.ts'

const soon = (): AbortSignal => AbortSignal.timeout(60_000)
const SMALL: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 60_000, maxCost: 1e6 }

/**
 * Starts a server with one document, and a connection to it that can be made to fail. Returns null if the test is
 * skipped.
 */
async function openWay(t: TestContext, stack: AsyncDisposableStack) {
  const mongo = await engineOrSkip(t, () => startMongod())
  if (mongo === null) return null
  stack.use(mongo)
  const way = stack.use(await startFaultyWay(mongo))
  const schema = mongo.database('shop')
  await mongo.client.db(schema).collection('n').insertOne({ i: 1 })
  const driver = stack.use(await createMongoDriver())
  const at = { connectionMode: 'DIRECT', host: mongo.host, port: way.port, database: schema, sslMode: 'disable' }
  const settings = driver.settings({ secrets: {}, ...at })
  const connect = async () => stack.use(await driver.connect(settings, { allowPrivateHosts: true }, soon()))
  return { way, driver, connect }
}

test('an abandoned query has ended when the server answers it, or no longer lists it', async (t) => {
  await using stack = new AsyncDisposableStack()
  const opened = await openWay(t, stack)
  if (opened === null) return
  const { way, driver, connect } = opened

  // If all rows fit into one answer, the query uses a borrowed connection, otherwise the client library.
  for (const rowCap of [SMALL.rowCap, 40_000]) {
    const limits = { ...SMALL, rowCap }
    const connection = await connect()
    const exposed = await connection.introspect(soon())
    const verdict = await driver.confine(driver.read({ collection: 'n', pipeline: [] }), exposed, limits, soon())
    assert.ok(verdict.kind === 'confined')
    const { query } = verdict
    await connection.run(query, limits, soon())
    assert.equal(connection.ended(soon()), null)

    way.become('silent')
    const caller = new AbortController()
    const running = connection.run(query, limits, caller.signal)
    await until('the answer is on its way', () => way.waiting > 0)
    caller.abort(new AppError('QUERY_TIMEOUT', 'given up'))
    await assert.rejects(running, { code: 'QUERY_TIMEOUT' })
    const ended = connection.ended(soon())
    assert.notEqual(ended, null)
    const state = { hasEnded: false }
    const seen = ended?.then(() => (state.hasEnded = true))
    // Disposing would close the socket. The pool disposes the connection only after the query has ended.
    if (rowCap === SMALL.rowCap) {
      await new Promise((resolve) => setImmediate(resolve))
      assert.equal(state.hasEnded, false)
    }
    way.become('good')
    await seen
    assert.equal(connection.usable, false)
  }
})

test('the owner of a connection need not wait for the end of an abandoned query', async (t) => {
  await using stack = new AsyncDisposableStack()
  const opened = await openWay(t, stack)
  if (opened === null) return
  const { way, driver, connect } = opened
  const connection = await connect()
  const exposed = await connection.introspect(soon())
  const verdict = await driver.confine(driver.read({ collection: 'n', pipeline: [] }), exposed, SMALL, soon())
  assert.ok(verdict.kind === 'confined')
  way.become('silent')
  await assert.rejects(connection.run(verdict.query, { ...SMALL, timeoutMs: 1 }, soon()), { code: 'QUERY_TIMEOUT' })
  const owner = new AbortController()
  const ended = connection.ended(owner.signal)
  owner.abort()
  await ended
  way.become('good')
})
