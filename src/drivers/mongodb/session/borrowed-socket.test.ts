import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { BSON } from 'mongodb'
import { startMongod, type TestMongo } from '../../../../test/support/mongodb.ts'
import { skipWithout } from '../../../../test/support/no-such-engine.ts'
import type { Connection, Limits } from '../../driver.ts'
import { createMongoDriver } from '../driver.ts'
import { logIn, type Login } from './connect.ts'
import { borrow, type Loan } from './borrowed-socket.ts'
import { readSettings, targetOf } from './settings.ts'
import { FRAME, LostConnection } from './wire.ts'

const soon = (): AbortSignal => AbortSignal.timeout(60_000)

async function asked({ wire }: Loan, command: object): Promise<BSON.Document> {
  const document = BSON.serialize({ ...command, $db: 'admin' })
  const message = Buffer.concat([Buffer.alloc(FRAME), document])
  return BSON.deserialize(await wire.exchange(message))
}

const skip = await skipWithout(startMongod)

describe('a borrowed connection', { skip }, () => {
  const stack = new AsyncDisposableStack()
  let server: TestMongo
  let login: Login

  const input = (port: number) => ({
    ...{ connectionMode: 'DIRECT', host: '127.0.0.1', port, database: 'shop', sslMode: 'disable', config: {} },
    ...{ username: 'root', secrets: { password: server.password } },
  })
  before(async () => {
    server = stack.use(await startMongod({ auth: true }))
    await server.client.db('shop').collection('orders').insertOne({ a: 1 })
    login = await logIn(targetOf(readSettings(input(server.port))), true, soon())
    stack.defer(() => login.client.close(true))
  })
  after(() => stack.disposeAsync())

  /** Returns the socket that the library uses, as the server sees it. */
  const libraryAddress = async (): Promise<unknown> =>
    (await login.client.db('admin').command({ whatsmyuri: 1 }))['you']

  test('a borrowed connection belongs to the library, is logged in, and is returned to the library', async () => {
    const own = await libraryAddress()
    for (let n = 0; n < 3; n++) {
      const loan = await borrow(login, soon())
      assert.deepEqual([loan.readPreference, loan.isDue], [null, false])
      assert.equal((await asked(loan, { whatsmyuri: 1 }))['you'], own)
      const { authInfo } = await asked(loan, { connectionStatus: 1 })
      assert.equal(authInfo.authenticatedUsers[0].user, 'root')
      assert.notEqual(await libraryAddress(), own, 'the library has another one meanwhile')
      loan.giveBack()
      assert.equal(loan.isDue, true)
      assert.equal(await libraryAddress(), own)
    }
  })

  test('a borrowed connection that is returned during a command is closed, and the library opens another connection', async () => {
    const loan = await borrow(login, soon())
    const own = (await asked(loan, { whatsmyuri: 1 }))['you']
    const slow = asked(loan, { sleep: 1, millis: 1 })
    loan.giveBack()
    await assert.rejects(slow, LostConnection)
    const next = await borrow(login, soon())
    assert.notEqual((await asked(next, { whatsmyuri: 1 }))['you'], own)
    next.giveBack()
  })

  test('borrowing a connection stops waiting when its signal aborts', async () => {
    await assert.rejects(borrow(login, AbortSignal.abort(new RangeError('gone'))), RangeError)
  })

  test('if the connection was lost since the last query, the next query is answered over another connection', async () => {
    const sockets = new Set<Socket>()
    const proxy = createServer((near) => {
      const far = connect(server.port, '127.0.0.1')
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from.on('error', () => undefined).on('close', () => to.destroy()))
        from.pipe(to)
      }
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    await using driver = await createMongoDriver()
    const address = proxy.address()
    const settings = driver.settings(input(typeof address === 'object' && address !== null ? address.port : 0))
    const connection: Connection = await driver.connect(settings, { allowPrivateHosts: true }, soon())
    try {
      const limits: Limits = { rowCap: 1_000, maxResponseBytes: 1 << 20, timeoutMs: 10_000, maxCost: 1e6 }
      const exposed = await connection.introspect(soon())
      const verdict = await driver.confine(driver.read({ collection: 'orders' }), exposed, limits, soon())
      if (verdict.kind !== 'confined') assert.fail(JSON.stringify(verdict))
      for (let n = 0; n < 3; n++) {
        assert.equal((await connection.run(verdict.query, limits, soon())).rowCount, 1)
        assert.ok(connection.usable)
        for (const socket of sockets) socket.destroy()
        sockets.clear()
      }
    } finally {
      await connection[Symbol.asyncDispose]()
      proxy.close()
    }
  })
})
