import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../../errors.ts'
import type { SettingsInput } from '../../driver.ts'
import { readSettings, targetOf } from './settings.ts'

const DIRECT = { connectionMode: 'DIRECT', host: 'db.example.com', port: 5433, database: 'shop', username: 'ann' }
const SECRET = 's3cret-hunter2'

function detailsOf(input: SettingsInput): readonly unknown[] {
  try {
    readSettings(input)
  } catch (error) {
    assert.ok(error instanceof AppError)
    assert.equal(error.code, 'INVALID_REQUEST')
    assert.ok(!JSON.stringify([error.message, error.extra, error.cause]).includes('hunter2'), error.message)
    const { details } = error.extra
    assert.ok(Array.isArray(details))
    return details
  }
  return assert.fail('was read')
}

test('DIRECT settings keep their fields, and the defaults are verify-full and port 5432', () => {
  const settings = readSettings({ ...DIRECT, port: null, secrets: { password: SECRET } })
  const { secrets, ...shown } = settings
  assert.deepEqual(shown, { ...DIRECT, port: 5432, sslMode: 'verify-full', config: {} })
  assert.deepEqual(secrets, { password: SECRET })
  assert.equal(targetOf(settings).password, SECRET)
})

test('the shown fields of URI settings come from the URI, and its password stays a secret', () => {
  const uri = `postgresql://ann:${SECRET}@db.example.com:6543/shop%20b?sslmode=require&application_name=x`
  const settings = readSettings({ connectionMode: 'URI', secrets: { uri } })
  const { secrets, ...shown } = settings
  assert.deepEqual(shown, {
    connectionMode: 'URI',
    host: 'db.example.com',
    port: 6543,
    database: 'shop b',
    username: 'ann',
    sslMode: 'require',
    config: {},
  })
  assert.deepEqual(secrets, { uri })
  assert.equal(targetOf(settings).password, SECRET)
})

test('a URI with an IPv6 host is accepted, and gets the default port and sslMode', () => {
  const settings = readSettings({ connectionMode: 'URI', secrets: { uri: 'postgres://ann@[2606:4700::1]/shop' } })
  assert.deepEqual([settings.host, settings.port, settings.sslMode], ['2606:4700::1', 5432, 'verify-full'])
})

const uri = (text: string): SettingsInput => ({ connectionMode: 'URI', secrets: { uri: text } })
const REFUSED: readonly (readonly [string, SettingsInput, RegExp])[] = [
  ['no mode', { secrets: {} }, /connectionMode/],
  ['a mode of another kind', { ...DIRECT, connectionMode: 'SERVICE_ACCOUNT', secrets: {} }, /connectionMode/],
  [
    'a tunnel without its settings',
    { ...DIRECT, connectionMode: 'SSH_TUNNEL', secrets: {} },
    /config\.ssh: is required/,
  ],
  ['prefer', { ...DIRECT, sslMode: 'prefer', secrets: {} }, /sslMode/],
  ['a number as sslMode', { ...DIRECT, sslMode: 1, secrets: {} }, /sslMode/],
  ['a socket as host', { ...DIRECT, host: '/var/run/postgresql', secrets: {} }, /host: must be one host/],
  ['an abstract socket', { ...DIRECT, host: '@pg', secrets: {} }, /host/],
  ['two hosts', { ...DIRECT, host: 'a,b', secrets: {} }, /host/],
  ['a host with a port', { ...DIRECT, host: 'a:5432', secrets: {} }, /host/],
  ['no host', { ...DIRECT, host: null, secrets: {} }, /host: must be a string/],
  ['port 0', { ...DIRECT, port: 0, secrets: {} }, /port/],
  ['port 65536', { ...DIRECT, port: 65_536, secrets: {} }, /port/],
  ['port "5432"', { ...DIRECT, port: '5432', secrets: {} }, /port: must be a whole number/],
  ['a database with a NUL', { ...DIRECT, database: 'a\0b', secrets: {} }, /database/],
  ['an empty user', { ...DIRECT, username: '', secrets: {} }, /username/],
  ['an unknown setting', { ...DIRECT, config: { options: SECRET }, secrets: {} }, /config\.options/],
  ['a list as config', { ...DIRECT, config: [], secrets: {} }, /config/],
  ['a secret of another kind', { ...DIRECT, secrets: { serviceAccountKey: SECRET } }, /serviceAccountKey/],
  ['a CA that is not a PEM certificate', { ...DIRECT, secrets: { tlsCa: SECRET } }, /tlsCa: is not a PEM/],
  ['a certificate without key', { ...DIRECT, secrets: { tlsCertificate: SECRET } }, /must be sent together/],
  ['URI without uri', { connectionMode: 'URI', secrets: {} }, /uri: is required/],
  ['another scheme', uri(`mysql://ann:${SECRET}@h/d`), /uri: must be postgres/],
  ['a text that is not a URI', uri(SECRET), /uri: must be postgres/],
  ['a socket by URI', uri('postgres://ann@%2Fvar%2Frun/d'), /host/],
  ['a socket by parameter', uri('postgres:///d?host=/var/run&user=ann'), /parameter host is not allowed/],
  ['two hosts by URI', uri(`postgres://ann:${SECRET}@a:1,b:2/d`), /uri: must be postgres/],
  ['options', uri('postgres://ann@h/d?options=-c%20role%3Dx'), /parameter options is not allowed/],
  ['a file of certificates', uri('postgres://ann@h/d?sslrootcert=/etc/passwd'), /sslrootcert must be system/],
  ['a key file', uri('postgres://ann@h/d?sslkey=/etc/x'), /parameter sslkey is not allowed/],
  ['a password file', uri('postgres://ann@h/d?passfile=/etc/x'), /parameter passfile is not allowed/],
  ['prefer by URI', uri('postgres://ann@h/d?sslmode=prefer'), /sslMode/],
  ['sslmode twice', uri('postgres://ann@h/d?sslmode=disable&sslmode=require'), /given twice/],
  ['no database', uri('postgres://ann@h'), /names no database/],
  ['no user', uri('postgres://h/d'), /names no user/],
  ['a password that breaks the URI in two', uri('postgres://ann:x?hunter2=1@h/d'), /uri/],
  ['a password with a #', uri('postgres://ann:x#hunter2@h/d'), /uri/],
  ['a password with an invalid percent-encoding', uri('postgres://ann:%zzhunter2@h/d'), /percent-encoded/],
]

for (const [title, input, expected] of REFUSED) {
  test(`${title} is refused, and the error names the field but no secret`, () =>
    assert.match(JSON.stringify(detailsOf(input)), expected))
}
