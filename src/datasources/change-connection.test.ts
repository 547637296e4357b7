import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConnectionSettings } from '../drivers/driver.ts'
import { AppError } from '../errors.ts'
import {
  changedSettings,
  differs,
  requireEffect,
  requireSecrets,
  touchesConnection,
  type ConnectionInput,
} from './change-connection.ts'

const stored: ConnectionSettings = {
  connectionMode: 'DIRECT',
  host: 'db.example',
  port: 5432,
  database: 'shop',
  username: 'reader',
  sslMode: 'verify-ca',
  config: {},
  secrets: { password: 'old', tlsCa: 'pem' },
}

/** Reads the change as a driver does that accepts every setting. */
function read(change: ConnectionInput, from = stored): ConnectionSettings {
  const { secrets, config, ...shown } = changedSettings(from, change)
  const uri = secrets['uri']
  const address = uri === undefined ? {} : { host: new URL(uri).hostname }
  return { ...from, ...(shown as object), ...address, config: (config as Record<string, unknown>) ?? {}, secrets }
}

function missing(change: ConnectionInput, from = stored): readonly string[] {
  try {
    requireSecrets(from, read(change, from), change)
    return []
  } catch (error) {
    assert.ok(error instanceof AppError && error.code === 'INVALID_REQUEST')
    assert.ok(!JSON.stringify(error).includes('old'))
    return (error.extra['details'] as string[]).map((detail) => detail.split(':')[0] ?? '')
  }
}

for (const { name, change, want } of [
  { name: 'another host', change: { host: 'evil.example' }, want: ['password', 'tlsCa'] },
  {
    name: 'another host, with one of the two secrets',
    change: { host: 'evil.example', password: 'new' },
    want: ['tlsCa'],
  },
  { name: 'another host with both', change: { host: 'evil.example', password: 'new', tlsCa: 'pem' }, want: [] },
  { name: 'another port', change: { port: 1 }, want: ['password', 'tlsCa'] },
  { name: 'another database', change: { database: 'other' }, want: ['password', 'tlsCa'] },
  { name: 'another user', change: { username: 'postgres' }, want: ['password', 'tlsCa'] },
  { name: 'a weaker sslMode', change: { sslMode: 'require' }, want: ['password', 'tlsCa'] },
  { name: 'a stronger sslMode', change: { sslMode: 'verify-full' }, want: [] },
  { name: 'the same host again', change: { host: 'db.example' }, want: [] },
  { name: 'another password alone', change: { password: 'new' }, want: [] },
  { name: 'an ssh tunnel', change: { config: { ssh: { host: 'evil.example' } } }, want: ['password', 'tlsCa'] },
  {
    name: 'another endpoint',
    change: { config: { apiEndpoint: 'https://evil.example' } },
    want: ['password', 'tlsCa'],
  },
  { name: 'another setting', change: { config: { location: 'EU' } }, want: [] },
  { name: 'no field of the connection', change: {}, want: [] },
]) {
  test(`for a change with ${name}, ${want.length === 0 ? 'no secret' : want.join(' and ')} must be sent again`, () => {
    assert.deepEqual(missing(change), want)
  })
}

test('if the URI changes, the other secrets must be sent again', () => {
  const uri = { ...stored, connectionMode: 'URI', secrets: { uri: 'postgres://a:old@db.example/shop', tlsKey: 'pem' } }
  assert.deepEqual(missing({ uri: 'postgres://a:b@evil.example/shop' }, uri), ['tlsKey'])
  assert.deepEqual(missing({ uri: 'postgres://a:old@db.example/shop' }, uri), [])
})

test('a change of the connection mode keeps no secret', () => {
  const next = changedSettings(stored, { connectionMode: 'URI', uri: 'postgres://a:b@evil.example/shop' })
  assert.deepEqual(next.secrets, { uri: 'postgres://a:b@evil.example/shop' })
})

test('sending the current value again does not count as a change of the connection', () => {
  assert.equal(touchesConnection({}), false)
  assert.equal(differs(stored, read({ host: 'db.example', port: 5432 })), false)
  assert.equal(differs(stored, read({ password: 'old' })), false)
  assert.equal(differs(stored, read({ password: 'new' })), true)
  assert.equal(differs(stored, read({ config: { location: 'EU' } })), true)
})

for (const { name, change, want } of [
  { name: 'another host', change: { host: 'other.example' }, want: ['host'] },
  {
    name: 'another address',
    change: { port: 1, database: 'x', username: 'y' },
    want: ['port', 'database', 'username'],
  },
  { name: 'the host it has', change: { host: 'db.example' }, want: [] },
  { name: "a password in addition to the URI's password", change: { password: 'new' }, want: ['password'] },
  { name: 'a new URI with the old host', change: { uri: 'postgres://a:b@x.example/d', host: 'db.example' }, want: [] },
  { name: 'another mode', change: { connectionMode: 'DIRECT', host: 'other.example' }, want: [] },
]) {
  test(`for a URI datasource, ${name} ${want.length === 0 ? 'is accepted' : 'is refused, not ignored'}`, () => {
    const uri = { ...stored, connectionMode: 'URI', secrets: { uri: 'postgres://a:old@db.example/shop' } }
    const next = {
      ...uri,
      ...(change.connectionMode === undefined ? {} : { ...read(change), connectionMode: change.connectionMode }),
    }
    try {
      requireEffect(next, change)
      assert.deepEqual(want, [])
    } catch (error) {
      assert.ok(error instanceof AppError && error.code === 'INVALID_REQUEST', String(error))
      const details = error.extra['details'] as string[]
      assert.deepEqual(
        details.map((detail) => detail.split(':')[0]),
        want,
      )
      assert.match(details.join(), /send a new uri/)
    }
  })
}
