// DNS rebinding: a name first means a public address, and then this machine. If a caller can choose an address, the
// service must connect to the address that it has checked. Only the resolver is replaced.
import assert from 'node:assert/strict'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { createMongoDriver } from '../../src/drivers/mongodb/driver.ts'
import { createPostgresDriver } from '../../src/drivers/postgres/driver.ts'
import { openClientDocuments } from '../../src/oauth/client-documents.ts'
import { send } from '../../src/webhooks/send-message.ts'

const NAME = 'rebinding.example'
/** Looks like a public address, but is routed nowhere (ORCHIDv2, RFC 7343). */
const PUBLIC = '2001:20::1'
const real = { resolve4: Resolver.prototype.resolve4, resolve6: Resolver.prototype.resolve6 }
let lookups = 0
let server: Server
let port = 0
let connections = 0

before(async () => {
  // A lookup asks first for IPv4 addresses, then for IPv6 addresses.
  Object.assign(Resolver.prototype, {
    resolve4: answer(() => (lookups === 0 ? [] : ['127.0.0.1'])),
    resolve6: answer(() => (lookups++ === 0 ? [PUBLIC] : [])),
  })
  server = createServer((socket) => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})
after(async () => {
  Object.assign(Resolver.prototype, real)
  server.close()
  await once(server, 'close')
})
function answer(addresses: () => string[]): (host: string) => Promise<string[]> {
  return (host) => {
    assert.equal(host, NAME)
    return Promise.resolve(addresses())
  }
}

beforeEach(() => {
  lookups = 0
  connections = 0
})

const FIELDS = { host: NAME, database: 'shop', username: 'u', sslMode: 'disable', config: {} } as const
const HOST_KEY = `SHA256:${'A'.repeat(43)}`
const CLOSED = { allowPrivateHosts: false }

const ATTEMPTS: Readonly<Record<string, (signal: AbortSignal) => Promise<unknown>>> = {
  async PostgreSQL(signal) {
    await using driver = await createPostgresDriver()
    const input = { ...FIELDS, connectionMode: 'DIRECT', port, secrets: { password: 'p' } }
    return await driver.connect(driver.settings(input), CLOSED, signal)
  },
  async MongoDB(signal) {
    await using driver = await createMongoDriver()
    const input = { ...FIELDS, connectionMode: 'DIRECT', port, secrets: { password: 'p' } }
    return await driver.connect(driver.settings(input), CLOSED, signal)
  },
  async 'an SSH server'(signal) {
    await using driver = await createPostgresDriver()
    const config = { ssh: { host: NAME, port, username: 'u', hostKey: HOST_KEY } }
    const secrets = { password: 'p', sshPassword: 'p' }
    const input = { ...FIELDS, host: 'db.internal', port: 5432, connectionMode: 'SSH_TUNNEL', config, secrets }
    return await driver.connect(driver.settings(input), CLOSED, signal)
  },
  async 'the receiver of a webhook'(signal) {
    const message = { id: '1', url: `https://${NAME}:${port}/`, secret: 'whsec_AAAA', body: '{}' }
    const sent = await send(message, { ...CLOSED, now: Date.now }, signal)
    if (!sent.delivered) throw new Error(sent.error ?? '')
  },
}

for (const [what, attempt] of Object.entries(ATTEMPTS)) {
  test(`${what} connects to the address that was checked`, async () => {
    // The first attempt checks and tries the public address. At the second attempt, the name means this machine, which
    // is refused.
    for (let n = 0; n < 2; n++) {
      await assert.rejects(attempt(AbortSignal.timeout(8_000)))
      assert.equal(connections, 0)
    }
    assert.ok(lookups >= 2)
  })
}

test('reading the metadata document of an OAuth client connects to the address that was checked', async () => {
  const now = { ms: 0 }
  const documents = openClientDocuments(undefined, () => now.ms)
  for (let n = 0; n < 2; n++) {
    assert.equal(await documents.read(`https://${NAME}/client.json`, 'a network'), null)
    now.ms += 3_600_000
  }
  assert.ok(lookups >= 2)
  assert.equal(connections, 0)
})
