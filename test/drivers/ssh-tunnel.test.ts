// Tests SSH tunnels to real databases through a real SSH server: host keys, logins, refused forwarding, a lost server,
// and how connections share and close tunnels.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { SettingsInput } from '../../src/drivers/driver.ts'
import { createMongoDriver } from '../../src/drivers/mongodb/driver.ts'
import { createPostgresDriver } from '../../src/drivers/postgres/driver.ts'
import { AppError } from '../../src/errors.ts'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { makeCertificates } from '../support/certificates.ts'
import { engineOrSkip } from '../support/no-such-engine.ts'
import { startMongod } from '../support/mongodb.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startSsh, type TestSsh } from '../support/ssh-server.ts'
import { until } from '../support/until.ts'

const OTHER_PIN = `SHA256:${'A'.repeat(43)}`
const never = () => new AbortController().signal
const PUBLIC = { allowPrivateHosts: false }
const ANY = { allowPrivateHosts: true }

describe('SSH tunnels', () => {
  let ssh: TestSsh
  let postgres: TestPostgres
  let database: string
  before(async () => {
    ssh = await startSsh()
    postgres = await startPostgres()
    database = await postgres.createDatabase('shop', 'CREATE TABLE t (i int); INSERT INTO t VALUES (7)')
  })
  after(async () => {
    await ssh[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const at = (more: object = {}) => ({
    ssh: { host: '127.0.0.1', port: ssh.port, username: ssh.username, hostKey: ssh.fingerprint, ...more },
  })
  const settings = (more: Partial<SettingsInput> = {}): SettingsInput => ({
    connectionMode: 'SSH_TUNNEL',
    host: '127.0.0.1',
    port: postgres.port,
    database,
    username: postgres.superuser,
    sslMode: 'disable',
    config: at(),
    secrets: { password: postgres.password, sshPrivateKey: ssh.privateKey },
    ...more,
  })
  const secrets = (more: Record<string, string>) => ({ password: postgres.password, ...more })

  /** Returns the message of the error when connecting fails. */
  async function failure(input: SettingsInput, options = ANY, signal = never()): Promise<string> {
    await using driver = await createPostgresDriver()
    const caught: unknown = await driver.connect(driver.settings(input), options, signal).then(
      async (connection) => {
        await connection[Symbol.asyncDispose]()
        return null
      },
      (error: unknown) => error,
    )
    assert.ok(caught instanceof AppError && caught.code === 'DATASOURCE_UNAVAILABLE', String(caught))
    return caught.message
  }

  test('connections of one database share a tunnel, which closes with the last connection', async () => {
    await using driver = await createPostgresDriver()
    const connect = () => driver.connect(driver.settings(settings()), ANY, never())
    const [one, other] = await Promise.all([connect(), connect()])
    assert.equal(ssh.open, 1)
    assert.equal(ssh.forwarded.at(-1), `127.0.0.1:${postgres.port}`)
    assert.equal((await one.introspect(never())).tables.length, 1)
    await one[Symbol.asyncDispose]()
    assert.equal(other.usable, true)
    assert.equal((await other.introspect(never())).tables.length, 1)
    await other[Symbol.asyncDispose]()
    await until('the tunnel is closed', () => ssh.open === 0)
  })

  test('a connection becomes unusable with its tunnel, and the next connection opens another tunnel', async () => {
    await using driver = await createPostgresDriver()
    const lost = await driver.connect(driver.settings(settings()), ANY, never())
    ssh.cut()
    await until('the loss is noticed', () => !lost.usable)
    await lost[Symbol.asyncDispose]()
    await using again = await driver.connect(driver.settings(settings()), ANY, never())
    assert.equal((await again.introspect(never())).tables.length, 1)
  })

  test('if the host key is not the pinned key, no secret is sent, and the error shows both fingerprints', async () => {
    const before = ssh.tries.length
    const message = await failure(settings({ config: at({ hostKey: OTHER_PIN }) }))
    assert.equal(
      message,
      `The SSH server presents the host key ${ssh.fingerprint}, but ${OTHER_PIN} is pinned. Nothing was sent to it.`,
    )
    assert.equal(ssh.tries.length, before)
  })

  test('the pinned host key may be a whole key, and the SSH login may use a key, a key with a passphrase, or a password', async () => {
    for (const own of [{ sshPassword: ssh.password }, { sshPrivateKey: ssh.privateKey }, ssh.locked]) {
      await using driver = await createPostgresDriver()
      const input = settings({ config: at({ hostKey: ssh.hostKeyLine }), secrets: secrets(own) })
      await using connection = await driver.connect(driver.settings(input), ANY, never())
      assert.equal(connection.usable, true)
    }
    const { sshPrivateKey } = ssh.locked
    for (const wrong of [{ sshPrivateKey, sshPassphrase: 'another' }, { sshPrivateKey }, { sshPrivateKey: 'no key' }]) {
      assert.match(await failure(settings({ secrets: secrets(wrong) })), /^The SSH private key cannot be read/)
    }
  })

  test('the error of each failed tunnel names the cause', async () => {
    const password = secrets({ sshPassword: 'wrong' })
    assert.equal(
      await failure(settings({ secrets: password })),
      'The SSH server refuses the user name, the key or the password.',
    )
    assert.match(await failure(settings({ port: 1 })), /^The SSH server refuses to connect to the database/)
    ssh.allowsForwarding = false
    assert.match(await failure(settings()), /^The SSH server refuses to connect to the database/)
    ssh.allowsForwarding = true
    assert.match(
      await failure(settings({ config: at({ port: 1 }) })),
      /^The SSH server cannot be reached\. The connection was refused/,
    )
    assert.match(
      await failure(settings({ config: at({ port: postgres.port }) })),
      /^The SSH server closed the connection, or is not an SSH server/,
    )
    assert.equal(await failure(settings({ username: 'nobody' })), 'The database refuses the user name or password.')
    await until('no tunnel is left', () => ssh.open === 0)
  })

  test('the address guard also checks the SSH server, and refuses metadata addresses behind it', async () => {
    assert.match(await failure(settings(), PUBLIC), /^The SSH server: The host is a private, loopback or link-local/)
    const named = settings({ config: at({ host: 'localhost' }) })
    assert.match(await failure(named, PUBLIC), /^The SSH server: The host is a private, loopback or link-local/)
    assert.match(await failure(settings({ host: '169.254.169.254' })), /metadata service/)
  })

  test('the driver disconnects from a silent SSH server when the caller hangs up', async () => {
    const mute = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const address = mute.address()
    assert.ok(typeof address === 'object' && address !== null)
    const caller = new AbortController()
    mute.once('connection', () => caller.abort(new Error('the caller hung up')))
    await using driver = await createPostgresDriver()
    const input = driver.settings(settings({ config: at({ port: address.port }) }))
    await assert.rejects(driver.connect(input, ANY, caller.signal), /the caller hung up/)
    mute.close()
  })

  test('wrong settings of a tunnel are refused, and no error repeats a value of the settings', async () => {
    await using driver = await createPostgresDriver()
    const detailsOf = (more: Partial<SettingsInput>): string => {
      try {
        driver.settings(settings(more))
        return ''
      } catch (error) {
        return error instanceof AppError ? JSON.stringify(error.extra) : String(error)
      }
    }
    assert.match(detailsOf({ config: {} }), /config\.ssh: is required/)
    assert.match(detailsOf({ config: at({ hostKey: 'canary' }) }), /config\.ssh\.hostKey: must be SHA256/)
    assert.match(detailsOf({ config: at({ host: 'a b' }) }), /config\.ssh\.host: must be one host name/)
    assert.match(detailsOf({ config: at({ port: 0 }) }), /config\.ssh\.port/)
    assert.match(detailsOf({ config: at({ canary: 1 }) }), /config\.ssh: has an unknown field/)
    assert.match(detailsOf({ secrets: secrets({}) }), /sshPrivateKey: send either this or sshPassword/)
    const both = secrets({ sshPassword: 'canary', sshPrivateKey: 'canary' })
    assert.match(detailsOf({ secrets: both }), /sshPrivateKey: send either this or sshPassword/)
    assert.match(
      detailsOf({ secrets: secrets({ sshPassword: 'x', sshPassphrase: 'canary' }) }),
      /sshPassphrase: needs an sshPrivateKey/,
    )
    assert.match(detailsOf({ connectionMode: 'DIRECT' }), /config\.ssh/)
    for (const more of [{ config: at({ hostKey: 'canary' }) }, { secrets: both }]) {
      assert.doesNotMatch(detailsOf(more), /canary/)
    }
  })

  test('over TLS, the certificate must name the database server, not the local end of the tunnel', async () => {
    await using certificates = await makeCertificates()
    const { pem, folder } = certificates
    await using secure = await startPostgres({
      tls: { certFile: join(folder, 'server.crt'), keyFile: join(folder, 'server.key') },
    })
    const behind = (host: string) =>
      settings({
        host,
        port: secure.port,
        database: 'postgres',
        username: secure.superuser,
        sslMode: 'verify-full',
        secrets: { password: secure.password, sshPassword: ssh.password, tlsCa: pem['ca.crt'] ?? '' },
      })
    await using driver = await createPostgresDriver()
    await using connection = await driver.connect(driver.settings(behind('localhost')), ANY, never())
    assert.equal(connection.usable, true)
    assert.match(await failure(behind('127.0.0.1')), /certificate is for another host name/)
  })

  test('MongoDB is reached through a tunnel', async (t) => {
    await using mongod = await engineOrSkip(t, () => startMongod({ auth: true }))
    if (mongod === null) return
    const name = mongod.database('shop')
    await mongod.client.db(name).collection('orders').insertOne({ total: 5 })
    await mongod.createUser(name, 'reader', 'reader-pw', ['read'])
    await using driver = await createMongoDriver()
    const input: SettingsInput = {
      connectionMode: 'SSH_TUNNEL',
      host: '127.0.0.1',
      port: mongod.port,
      database: name,
      username: 'reader',
      sslMode: 'disable',
      config: { ...at(), authSource: name },
      secrets: { password: 'reader-pw', sshPrivateKey: ssh.privateKey },
    }
    {
      await using connection = await driver.connect(driver.settings(input), ANY, never())
      assert.deepEqual(
        (await connection.introspect(never())).tables.map(({ table }) => table),
        ['orders'],
      )
      assert.equal(ssh.forwarded.at(-1), `127.0.0.1:${mongod.port}`)
    }
    await until('the tunnel is closed', () => ssh.open === 0)
    const pinned = driver.settings({ ...input, config: { ...at({ hostKey: OTHER_PIN }), authSource: name } })
    await assert.rejects(driver.connect(pinned, ANY, never()), /is pinned\. Nothing was sent to it/)
    const nowhere = driver.settings({ ...input, port: 1 })
    await assert.rejects(driver.connect(nowhere, ANY, never()), /^AppError: The SSH server refuses to connect/)
    assert.throws(
      () => driver.settings({ ...input, config: { ...at(), replicaSet: 'rs' } }),
      (error) => error instanceof AppError && /not available through an SSH tunnel/.test(JSON.stringify(error.extra)),
    )
  })

  describe('over HTTP', () => {
    let app: TestApp
    let owner: Person
    let teamId: string
    before(async () => {
      app = await startApp()
      owner = await app.person('Olga')
      teamId = await app.team(owner)
    })
    after(() => app[Symbol.asyncDispose]())

    const order = (more: object = {}) => ({
      name: 'behind',
      type: 'POSTGRES',
      connectionMode: 'SSH_TUNNEL',
      host: '127.0.0.1',
      port: postgres.port,
      database,
      username: postgres.superuser,
      password: postgres.password,
      sslMode: 'disable',
      config: at(),
      sshPrivateKey: ssh.privateKey,
      accessMode: 'ROLE_BASED',
      minRole: 'MEMBER',
      ...more,
    })

    test('a datasource behind a tunnel is queried, and shows no secret', async () => {
      const path = `/teams/${teamId}/datasources`
      const made = await owner.ask('POST', path, order())
      assert.equal(made.status, 201, made.text)
      assert.deepEqual(made.json.config.ssh, at().ssh)
      assert.equal(made.json.connectionMode, 'SSH_TUNNEL')
      const one = `${path}/${made.json.id}`
      await owner.must('POST', `${one}/introspect`)
      await owner.must('PUT', `${one}/exposure`, { tables: [{ schema: 'public', table: 't', columns: null }] })
      assert.deepEqual((await owner.must('POST', `${one}/query`, { sql: 'SELECT i FROM t' })).rows, [[7]])
      const audit = await owner.ask('GET', `/teams/${teamId}/audit`)
      for (const { text } of [made, audit]) assert.doesNotMatch(text, /PRIVATE KEY|ssh-pw-canary/)

      const moved = await owner.ask('PATCH', one, { config: at({ hostKey: OTHER_PIN }) })
      assert.match(JSON.stringify(moved.json.details), /sshPrivateKey: must be sent again, because ssh changes/)
      assert.match(JSON.stringify(moved.json.details), /password: must be sent again, because ssh changes/)
      await owner.must('DELETE', one)
      await until('the tunnel is closed', () => ssh.open === 0)
    })

    test('the connection test reports each failure of the tunnel, and names the setting that is wrong', async () => {
      for (const [more, field, message] of [
        [{ config: at({ hostKey: OTHER_PIN }) }, 'config.ssh.hostKey', /is pinned/],
        [{ sshPrivateKey: undefined, sshPassword: 'wrong' }, 'sshPrivateKey', /refuses the user name/],
        [{ config: at({ port: 1 }) }, 'config.ssh.host', /cannot be reached/],
        [{ port: 1 }, 'host', /refuses to connect/],
      ] as const) {
        const report = await owner.must('POST', `/teams/${teamId}/datasources/test`, order(more))
        assert.deepEqual([report.ok, report.grade], [false, 'FAIL'])
        const [step] = report.steps
        assert.match(step.message, message)
        assert.deepEqual([step.status, step.field], ['FAIL', field])
        assert.equal(typeof (step.remedy ?? report.remedies[step.remedyId]), 'string')
      }
      const report = await owner.must('POST', `/teams/${teamId}/datasources/test`, order())
      assert.equal(report.ok, true)
    })
  })
})
