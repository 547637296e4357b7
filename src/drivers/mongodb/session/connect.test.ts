import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { BSON } from 'mongodb'
import { makeCertificates, type Certificates } from '../../../../test/support/certificates.ts'
import { startMongod, startNewest, type TestMongo } from '../../../../test/support/mongodb.ts'
import { engineOrSkip, skipWithout } from '../../../../test/support/no-such-engine.ts'
import { until } from '../../../../test/support/until.ts'
import { AppError } from '../../../errors.ts'
import type { SettingsInput } from '../../driver.ts'
import { logIn, type Login } from './connect.ts'
import { borrow } from './borrowed-socket.ts'
import { readSettings, targetOf } from './settings.ts'
import { FRAME } from './wire.ts'

const soon = (): AbortSignal => AbortSignal.timeout(60_000)

async function enter(input: SettingsInput, allowPrivateHosts = true): Promise<Login & AsyncDisposable> {
  const login = await logIn(targetOf(readSettings(input)), allowPrivateHosts, soon())
  return { ...login, [Symbol.asyncDispose]: () => login.client.close(true) }
}

function refused(input: SettingsInput, expected: RegExp, allowPrivateHosts = true): Promise<void> {
  return assert.rejects(enter(input, allowPrivateHosts), (error) => {
    assert.ok(error instanceof AppError && error.code === 'DATASOURCE_UNAVAILABLE', String(error))
    assert.match(error.message, expected)
    assert.doesNotMatch(error.message, /ann-pw|mongodb:/)
    return true
  })
}

const skip = await skipWithout(startMongod)

describe('TLS and logins', { skip }, () => {
  const stack = new AsyncDisposableStack()
  let server: TestMongo
  let certificates: Certificates
  let at: (more?: Partial<SettingsInput>) => SettingsInput

  before(async () => {
    certificates = stack.use(await makeCertificates())
    const file = (name: string): string => `${certificates.folder}/${name}`
    const tls = { certFile: file('server.crt'), keyFile: file('server.key'), caFile: file('ca.crt') }
    server = stack.use(await startMongod({ auth: true, tls }))
    await server.createUser('shop', 'ann', 'ann-pw/@:ü', ['read'])
    await server.createUser('$external', 'CN=ann,O=people', '', [{ role: 'read', db: 'shop' }]).catch(async () => {
      const roles = [{ role: 'read', db: 'shop' }]
      await server.client.db('$external').command({ createUser: 'CN=ann,O=people', roles })
    })
    at = (more) => ({
      connectionMode: 'DIRECT',
      host: 'localhost',
      port: server.port,
      database: 'shop',
      username: 'ann',
      sslMode: 'verify-full',
      config: { authSource: 'shop' },
      secrets: { password: 'ann-pw/@:ü', tlsCa: pem('ca.crt') },
      ...more,
    })
  })
  after(() => stack.disposeAsync())
  const pem = (name: string): string => certificates.pem[name] ?? ''
  const password = 'ann-pw/@:ü'

  test('verify-full accepts only a certificate with the host name, from the configured authority', async () => {
    await using login = await enter(at())
    assert.deepEqual(login.serverVersion.length, 3)
    await refused(at({ host: '127.0.0.1' }), /another host name/)
    await refused(at({ secrets: { password, tlsCa: pem('other.crt') } }), /not trusted/)
    await refused(at({ secrets: { password } }), /not trusted/)
  })

  test('verify-ca accepts any host name, require accepts any certificate, and disable uses no TLS', async () => {
    await using byAuthority = await enter(at({ host: '127.0.0.1', sslMode: 'verify-ca' }))
    assert.ok(byAuthority.client)
    await refused(at({ sslMode: 'verify-ca', secrets: { password, tlsCa: pem('other.crt') } }), /not trusted/)
    await using encrypted = await enter(at({ host: '127.0.0.1', sslMode: 'require', secrets: { password } }))
    assert.ok(encrypted.client)
    await refused(at({ sslMode: 'disable' }), /may ask for TLS/)
  })

  test('with X.509, the user name comes from the certificate', async () => {
    const secrets = { tlsCa: pem('ca.crt'), tlsCertificate: pem('ann.crt'), tlsKey: pem('ann.key') }
    await using login = await enter(at({ username: null, config: { authMechanism: 'X509' }, secrets }))
    const status = await login.db.command({ connectionStatus: 1 })
    assert.deepEqual(status['authInfo'].authenticatedUsers, [{ user: 'CN=ann,O=people', db: '$external' }])
  })

  test('a wrong password, user, source and mechanism all give the same sentence', async () => {
    const wrong = /refuses the user name/
    await refused(at({ secrets: { password: 'ann-pw', tlsCa: pem('ca.crt') } }), wrong)
    await refused(at({ username: 'bob' }), wrong)
    await refused(at({ config: {} }), wrong)
    const uri = `mongodb://ann:${encodeURIComponent(password)}@localhost:${server.port}/shop?tls=true&authMechanism=`
    await using login = await enter({
      connectionMode: 'URI',
      secrets: { uri: `${uri}SCRAM-SHA-1`, tlsCa: pem('ca.crt') },
    })
    assert.equal(login.database, 'shop')
  })

  test('a private address is refused unless the operator allows it, and a metadata address is always refused', async () => {
    await refused(at(), /private, loopback/, false)
    await refused(at({ host: '127.0.0.1', sslMode: 'verify-ca' }), /private, loopback/, false)
    await refused(at({ host: '169.254.169.254' }), /metadata/)
    await refused(at({ host: '::ffff:169.254.169.254' }), /metadata/)
  })

  test('a login fails immediately if no server listens, the host does not exist, or the caller disconnects', async () => {
    await refused(at({ port: 1 }), /nothing listens/)
    await refused(at({ host: 'no-such-host.invalid' }), /no such host|resolved/)
    const gone = AbortSignal.abort(new Error('hung up'))
    await assert.rejects(logIn(targetOf(readSettings(at())), true, gone), /hung up/)
  })
})

test(
  'a login to a replica set discovers the members, follows readPreference, and survives a failover',
  { skip },
  async () => {
    await using server = await startMongod({ auth: true, members: 3 })
    await server.createUser('admin', 'ann', 'ann-pw', [{ role: 'read', db: 'shop' }])
    await server.client
      .db('shop')
      .collection('orders')
      .insertOne({ a: 1 }, { writeConcern: { w: 3 } })
    const [first = 0, second = 0] = server.ports
    const hosts = `127.0.0.1:${second},127.0.0.1:${first}`
    const uri = `mongodb://ann:ann-pw@${hosts}/shop?replicaSet=rs&authSource=admin`
    const input = (text: string): SettingsInput => ({
      connectionMode: 'URI',
      sslMode: 'disable',
      secrets: { uri: text },
    })
    await using login = await enter(input(uri))
    const where = async (of: Login): Promise<boolean> =>
      (await of.db.command({ hello: 1 }, { readPreference: 'primary' }))['isWritablePrimary']
    assert.equal(await where(login), true)
    await using far = await enter(input(`${uri}&readPreference=secondary`))
    assert.equal(far.client.readPreference.mode, 'secondary')
    assert.equal((await far.db.collection('orders').findOne())?.['a'], 1)
    await using alone = await enter(
      input(`mongodb://ann:ann-pw@127.0.0.1:${second}/shop?authSource=admin&directConnection=true`),
    )
    assert.equal((await alone.db.collection('orders').findOne())?.['a'], 1)
    // The borrowed connection goes to the same member, which answers only if the command allows reads from a secondary.
    for (const [of, mode] of [
      [login, undefined],
      [far, 'secondary'],
      [alone, 'primaryPreferred'],
    ] as const) {
      const { wire, readPreference, giveBack } = await borrow(of, soon())
      assert.equal(readPreference === null ? undefined : Reflect.get(readPreference, 'mode'), mode)
      const preferred = readPreference === null ? {} : { $readPreference: readPreference }
      const command = BSON.serialize({ find: 'orders', ...preferred, $db: 'shop' })
      const { cursor } = BSON.deserialize(await wire.exchange(Buffer.concat([Buffer.alloc(FRAME), command])))
      assert.equal(cursor.firstBatch[0].a, 1)
      giveBack()
    }
    await refused(input(uri.replace('replicaSet=rs', 'replicaSet=other')), /replica set/)

    await server.kill(first)
    // A connection to the old primary fails. When the other members have elected a new primary, the next connection
    // finds it.
    await until('there is a new primary', async () => {
      const found = await enter(input(uri)).catch((error: unknown) => {
        assert.ok(error instanceof AppError && error.code === 'DATASOURCE_UNAVAILABLE', String(error))
      })
      if (found === undefined) return false
      await using next = found
      return (await next.db.collection('orders').findOne())?.['a'] === 1
    })
  },
)

test('no connection is made to a replica set member at a refused address', { skip }, async () => {
  await using server = await startMongod({ members: 1 })
  const admin = server.client.db('admin')
  const { config } = await admin.command({ replSetGetConfig: 1 })
  // This is the server's own address, in a form that MongoDB does not recognize as local. MongoDB refuses a mix of
  // local and other addresses.
  const own = { ...config.members[0], host: `0x7f000001:${server.port}` }
  const members = [own, { _id: 1, host: '169.254.169.254:27017', votes: 0, priority: 0 }]
  await admin.command({ replSetReconfig: { ...config, version: config.version + 1, members }, force: true })
  const uri = `mongodb://127.0.0.1:${server.port}/shop?replicaSet=rs`
  await using login = await enter({ connectionMode: 'URI', sslMode: 'disable', secrets: { uri } })
  const hello = await login.db.command({ hello: 1 })
  assert.ok(JSON.stringify(hello).includes('169.254.169.254'))
  const known = [...(Reflect.get(login.client, 'topology').description.servers as Map<string, unknown>).keys()]
  assert.deepEqual(known, [`0x7f000001:${server.port}`])
})

test('the newest engine accepts a login and runs a query', async (t) => {
  const server = await engineOrSkip(t, startNewest)
  if (server === null) return
  await using _ = server
  const uri = `mongodb://127.0.0.1:${server.port}/shop?directConnection=true`
  await using login = await enter({ connectionMode: 'URI', sslMode: 'disable', secrets: { uri } })
  assert.ok(login.serverVersion[0] >= 7)
})
