import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../../errors.ts'
import type { SettingsInput } from '../../driver.ts'
import { readSettings, targetOf } from './settings.ts'

const SECRET = 'pa55-w0rd'
const DIRECT: SettingsInput = {
  connectionMode: 'DIRECT',
  host: 'db.example.test',
  database: 'shop',
  username: 'ann',
  config: {},
  secrets: { password: SECRET },
}
const uri = (text: string, more: Partial<SettingsInput> = {}): SettingsInput => ({
  connectionMode: 'URI',
  ...more,
  secrets: { uri: text },
})

test('the defaults of a DIRECT connection to MongoDB are safe', () => {
  const settings = readSettings(DIRECT)
  assert.deepEqual([settings.port, settings.sslMode, settings.config], [27_017, 'verify-full', {}])
  const target = targetOf(settings)
  assert.deepEqual(
    [target.mechanism, target.authSource, target.direct, target.readPreference],
    ['SCRAM', 'admin', true, 'primary'],
  )
  const set = targetOf(
    readSettings({ ...DIRECT, config: { replicaSet: 'rs', readPreference: 'secondary', authSource: 'shop' } }),
  )
  assert.deepEqual([set.direct, set.replicaSet, set.readPreference, set.authSource], [false, 'rs', 'secondary', 'shop'])
})

test('the settings of a MongoDB URI show the host, port, database and user name, but no secret', () => {
  const settings = readSettings(
    uri(
      `mongodb://ann:${SECRET}@a.example.test:27018,b.example.test/shop?replicaSet=rs&tls=true&retryWrites=true&w=majority`,
    ),
  )
  const { secrets, ...shown } = settings
  assert.ok(!JSON.stringify(shown).includes(SECRET) && secrets['uri'] !== undefined)
  assert.deepEqual(
    [shown.host, shown.port, shown.database, shown.username, shown.sslMode, shown.config],
    ['a.example.test', 27_018, 'shop', 'ann', 'verify-full', { replicaSet: 'rs' }],
  )
  const target = targetOf(settings)
  assert.deepEqual([target.hosts.length, target.password, target.authSource, target.direct], [2, SECRET, 'shop', false])
})

test('the settings of a mongodb+srv URI show no port, and leave authSource to the TXT record', () => {
  const settings = readSettings(uri(`mongodb+srv://ann:${SECRET}@cluster0.example.test/shop?appName=Cluster0`))
  assert.deepEqual([settings.host, settings.port, settings.sslMode], ['cluster0.example.test', null, 'verify-full'])
  assert.deepEqual([targetOf(settings).srv, targetOf(settings).authSource], [true, null])
})

test('the TLS parameters of a URI become one of the four modes, and sslMode never weakens them', () => {
  const mode = (query: string, sslMode?: string) =>
    readSettings(uri(`mongodb://h/shop${query}`, sslMode === undefined ? {} : { sslMode })).sslMode
  assert.equal(mode(''), 'verify-full')
  assert.equal(mode('', 'disable'), 'disable')
  assert.equal(mode('?tls=true', 'disable'), 'verify-full')
  assert.equal(mode('?tls=true', 'require'), 'require')
  assert.equal(mode('?ssl=false'), 'disable')
  assert.equal(mode('?tls=true&tlsAllowInvalidHostnames=true'), 'verify-ca')
  assert.equal(mode('?tls=true&tlsInsecure=true', 'verify-full'), 'require')
})

const REFUSED: readonly (readonly [string, SettingsInput, RegExp])[] = [
  ['another mode', { ...DIRECT, connectionMode: 'SOCKET' }, /connectionMode/],
  ['a tunnel', { ...DIRECT, connectionMode: 'SSH_TUNNEL' }, /config\.ssh: is required/],
  ['a socket as host', { ...DIRECT, host: '/tmp/mongodb-27017.sock' }, /host/],
  ['a name that the client treats as a socket', { ...DIRECT, host: 'evil.sock' }, /socket/],
  ['several hosts', { ...DIRECT, host: 'a,b' }, /host/],
  ['an internal database of MongoDB', { ...DIRECT, database: 'admin' }, /internal database/],
  ['a database that is a namespace', { ...DIRECT, database: 'shop.orders' }, /database/],
  ['another setting', { ...DIRECT, config: { compressors: 'zlib' } }, /config\.compressors/],
  ['another mechanism', { ...DIRECT, config: { authMechanism: 'PLAIN' } }, /SCRAM or X509/],
  ['X.509 without a certificate', { ...DIRECT, config: { authMechanism: 'X509' }, secrets: {} }, /tlsCertificate/],
  ['a password without a user', { ...DIRECT, username: null }, /username/],
  ['another secret', { ...DIRECT, secrets: { sshPrivateKey: SECRET } }, /sshPrivateKey/],
  ['no URI', { connectionMode: 'URI', secrets: {} }, /uri: is required/],
  ['a URI of another kind', uri(`postgres://ann:${SECRET}@h/shop`), /uri: must be/],
  ['a URI without a database', uri(`mongodb://ann:${SECRET}@h/`), /must name a database/],
  ['a socket in a URI', uri(`mongodb://%2Ftmp%2Fmongodb-27017.sock/shop`), /socket|host/],
  ['a file of certificates', uri('mongodb://h/shop?tls=true&tlsCAFile=/etc/passwd'), /tlsCAFile is not allowed/],
  ['a proxy', uri('mongodb://h/shop?proxyHost=169.254.169.254'), /proxyHost is not allowed/],
  [
    'a mechanism that runs a program or calls a service',
    uri('mongodb://h/shop?authMechanism=MONGODB-OIDC'),
    /authMechanism must be/,
  ],
  ['properties of a mechanism', uri('mongodb://h/shop?authMechanismProperties=ENVIRONMENT:azure'), /not allowed/],
  ['a parameter twice', uri('mongodb://h/shop?tls=true&tls=false'), /given twice/],
  ['a port with srv', uri('mongodb+srv://h.example.test:27017/shop'), /takes no port/],
  ['an address with srv', uri('mongodb+srv://10.0.0.1/shop'), /takes a name/],
  ['an unescaped @ in the password', uri(`mongodb://ann:${SECRET}@more@h/shop`), /uri/],
  ['a fragment', uri(`mongodb://ann:${SECRET}@h/shop#x`), /fragment/],
]

for (const [name, input, expected] of REFUSED) {
  test(`${name} is refused, and the error repeats no secret`, () => {
    assert.throws(
      () => readSettings(input),
      (error) => {
        assert.ok(error instanceof AppError && error.code === 'INVALID_REQUEST', String(error))
        assert.match(String(error.extra['details']), expected)
        assert.ok(!`${error.message}${JSON.stringify(error.extra)}`.includes(SECRET))
        return true
      },
    )
  })
}
