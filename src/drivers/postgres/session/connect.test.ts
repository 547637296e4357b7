import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { makeCertificates } from '../../../../test/support/certificates.ts'
import { startPostgres, type TestPostgres } from '../../../../test/support/postgres.ts'
import { emptyKnown, LIMITS, openSession, queryOf, settingsOf } from '../../../../test/support/postgres-session.ts'
import { until } from '../../../../test/support/until.ts'
import { seal } from '../../confined.ts'
import type { SettingsInput } from '../../driver.ts'
import type { SwitchedOff } from '../confined-query.ts'
import { logIn } from './connect.ts'
import { PostgresConnection } from './connection.ts'
import { readSettings, targetOf } from './settings.ts'

const HBA = `
local all all trust
hostssl certified all all cert
hostnossl plain,logins all all scram-sha-256
hostssl all all all scram-sha-256
hostnossl postgres postgres all scram-sha-256
hostnossl md5 all all md5
`
const stack = new AsyncDisposableStack()
let server: TestPostgres
let pem: Readonly<Record<string, string>>

before(async () => {
  const certificates = stack.use(await makeCertificates())
  const { folder } = certificates
  pem = certificates.pem
  const files = {
    certFile: join(folder, 'server.crt'),
    keyFile: join(folder, 'server.key'),
    caFile: join(folder, 'ca.crt'),
  }
  server = stack.use(await startPostgres({ tls: files, hba: HBA }))
  for (const name of ['plain', 'md5', 'certified', 'tlsonly', 'logins']) await server.createDatabase(name)
  await server.query(
    'postgres',
    `CREATE ROLE ann LOGIN PASSWORD 'pass:wörd/@#'; CREATE ROLE nologin PASSWORD 'x'; CREATE ROLE full_up LOGIN PASSWORD 'x' CONNECTION LIMIT 0;
     SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD 'old-pw'; REVOKE CONNECT ON DATABASE logins FROM PUBLIC`,
  )
})
after(() => stack.disposeAsync())

interface Wanted {
  readonly host?: string
  readonly port?: number
  readonly database?: string
  readonly username?: string
  readonly password?: string
  readonly sslMode?: string
  readonly secrets?: SettingsInput['secrets']
}

async function tryLogin(wanted: Wanted, allowPrivateHosts = true): Promise<string> {
  const { password = 'pass:wörd/@#', secrets, ...fields } = wanted
  const settings = readSettings({
    connectionMode: 'DIRECT',
    host: 'localhost',
    port: server.port,
    database: 'tlsonly',
    username: 'ann',
    ...fields,
    secrets: { password, ...secrets },
  })
  try {
    const { session } = await logIn(targetOf(settings), allowPrivateHosts, AbortSignal.timeout(60_000))
    session.wire.close()
    return `in, pins ${session.server.pinsEach ? 'each time' : 'held'}`
  } catch (error) {
    assert.ok(error instanceof Error && 'code' in error)
    assert.ok(!error.message.includes('wörd') && !error.message.includes('ann'), error.message)
    return `${String(error.code)}: ${error.message}`
  }
}

const OK = /^in, pins held$/
const TLS: readonly (readonly [string, () => Wanted, RegExp])[] = [
  ['verify-full with the right CA and name', () => ({ secrets: { tlsCa: pem['ca.crt'] ?? '' } }), OK],
  ['verify-full is the default, and trusts no private CA', () => ({}), /authority that is not trusted/],
  [
    'verify-full with another CA',
    () => ({ secrets: { tlsCa: pem['other.crt'] ?? '' } }),
    /authority that is not trusted/,
  ],
  [
    'verify-full under another name',
    () => ({ host: '127.0.0.1', secrets: { tlsCa: pem['ca.crt'] ?? '' } }),
    /certificate is for another host name/,
  ],
  [
    'verify-ca under another name',
    () => ({ host: '127.0.0.1', sslMode: 'verify-ca', secrets: { tlsCa: pem['ca.crt'] ?? '' } }),
    OK,
  ],
  [
    'verify-ca with another CA',
    () => ({ sslMode: 'verify-ca', secrets: { tlsCa: pem['other.crt'] ?? '' } }),
    /authority that is not trusted/,
  ],
  ['verify-ca with no CA', () => ({ sslMode: 'verify-ca' }), /authority that is not trusted/],
  ['require with no CA, under another name', () => ({ host: '127.0.0.1', sslMode: 'require' }), OK],
  ['disable, although the server requires TLS', () => ({ sslMode: 'disable' }), /refuses this login/],
  [
    'a client certificate',
    () => ({
      database: 'certified',
      secrets: { tlsCa: pem['ca.crt'] ?? '', tlsCertificate: pem['ann.crt'] ?? '', tlsKey: pem['ann.key'] ?? '' },
    }),
    OK,
  ],
  [
    'no client certificate, although the server requires one',
    () => ({ database: 'certified', secrets: { tlsCa: pem['ca.crt'] ?? '' } }),
    /refuses this login/,
  ],
]
for (const [title, wanted, expected] of TLS) {
  test(`a TLS login ${OK === expected ? 'succeeds' : 'fails'}: ${title}`, async () =>
    assert.match(await tryLogin(wanted()), expected))
}

const LOGINS: readonly (readonly [string, Wanted, RegExp])[] = [
  ['SCRAM with the right password', { database: 'plain' }, OK],
  ['SCRAM with a wrong password', { database: 'plain', password: 'wrong' }, /refuses the user name or password/],
  ['a user that does not exist', { database: 'plain', username: 'nobody' }, /refuses the user name or password/],
  ['no password', { database: 'plain', password: '' }, /requires a password, but none is set/],
  ['md5 with the right password', { database: 'md5', username: 'old', password: 'old-pw' }, OK],
  [
    'md5 with a wrong password',
    { database: 'md5', username: 'old', password: 'x' },
    /refuses the user name or password/,
  ],
  ['a role without LOGIN', { database: 'plain', username: 'nologin', password: 'x' }, /refuses this login/],
  [
    'a role whose connections are used up',
    { database: 'plain', username: 'full_up', password: 'x' },
    /no free connection/,
  ],
  ['a database to which the user may not connect', { database: 'logins' }, /may not connect to that database/],
  ['a login without a line in pg_hba.conf', { database: 'nowhere' }, /refuses this login/],
  [
    'a host that does not exist',
    { host: 'no-such-host.invalid' },
    /There is no such host|cannot be resolved at the moment/,
  ],
]
for (const [title, wanted, expected] of LOGINS) {
  test(`a login ${OK === expected ? 'succeeds' : 'fails'}: ${title}`, async () =>
    assert.match(await tryLogin({ sslMode: 'disable', ...wanted }), expected))
}

test('the error of a login says that the database does not exist', async () => {
  const gone = await tryLogin({ database: 'gone', secrets: { tlsCa: pem['ca.crt'] ?? '' } })
  assert.match(gone, /does not have this database/)
})

test('the error of a login says that no server listens on the port', async () => {
  assert.match(await tryLogin({ port: 1, sslMode: 'disable' }), /^DATASOURCE_UNAVAILABLE: .*nothing listens/)
})

test('a login to a database at a private address is refused if the operator does not allow it', async () => {
  assert.match(await tryLogin({ database: 'plain', sslMode: 'disable' }, false), /VITRINE_ALLOW_PRIVATE_HOSTS/)
})

test('a URI with a percent-encoded password logs in', async () => {
  const uri = `postgres://ann:${encodeURIComponent('pass:wörd/@#')}@localhost:${server.port}/plain?sslmode=disable`
  const settings = readSettings({ connectionMode: 'URI', secrets: { uri } })
  assert.deepEqual(
    [settings.host, settings.port, settings.database, settings.username, settings.sslMode],
    ['localhost', server.port, 'plain', 'ann', 'disable'],
  )
  const { session } = await logIn(targetOf(settings), true, AbortSignal.timeout(60_000))
  session.wire.close()
})

test('channel_binding=require works over TLS, and fails without channel binding', async () => {
  const uri = (options: string): string =>
    `postgres://ann:${encodeURIComponent('pass:wörd/@#')}@localhost:${server.port}/plain?channel_binding=require&${options}`
  const login = (options: string, secrets = {}): ReturnType<typeof logIn> =>
    logIn(
      targetOf(readSettings({ connectionMode: 'URI', secrets: { uri: uri(options), ...secrets } })),
      true,
      AbortSignal.timeout(60_000),
    )
  const { session } = await login('', { tlsCa: pem['ca.crt'] ?? '' })
  session.wire.close()
  await assert.rejects(login('sslmode=disable'), { code: 'DATASOURCE_UNAVAILABLE', message: /channel binding/ })
})

test('a login to a silent server ends when the signal aborts', async () => {
  const mute = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(mute, 'listening')
  const address = mute.address()
  assert.ok(address !== null && typeof address === 'object')
  const settings = settingsOf(server, 'x', { port: address.port })
  await assert.rejects(logIn(targetOf(settings), true, AbortSignal.timeout(200)), { name: 'TimeoutError' })
  mute.close()
})

const OTHERS: readonly (readonly [string, Buffer | null, RegExp])[] = [
  ['an HTTP server', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), /is not PostgreSQL/],
  ['an SSH server', Buffer.from('SSH-2.0-OpenSSH_9.6\r\n'), /is not PostgreSQL/],
  ['a MySQL server', Buffer.from('\x4a\0\0\0\x0a8.0.36\0\x08\0\0\0abcdefgh\0', 'latin1'), /is not PostgreSQL/],
  [
    'a MySQL server whose greeting begins with the byte of a letter',
    Buffer.from('N\0\0\0\x0a8.0.36-0ubuntu\0', 'latin1'),
    /is not PostgreSQL/,
  ],
  ['a MongoDB server', Buffer.from([0x2a, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xd4, 7, 0, 0]), /is not PostgreSQL/],
  ['a server that closes the connection', null, /does not answer like PostgreSQL/],
]
for (const [title, greeting, expected] of OTHERS) {
  for (const sslMode of ['disable', 'verify-full']) {
    test(`${title} is reported as not PostgreSQL, sslMode ${sslMode}`, async () => {
      const other = createServer((socket) => {
        socket.on('error', () => undefined)
        socket.once('data', () => (greeting === null ? socket.end() : socket.end(greeting)))
      }).listen(0, '127.0.0.1')
      await once(other, 'listening')
      const address = other.address()
      assert.ok(address !== null && typeof address === 'object')
      const settings = settingsOf(server, 'x', { port: address.port, sslMode })
      await assert.rejects(logIn(targetOf(settings), true, AbortSignal.timeout(60_000)), {
        code: 'DATASOURCE_UNAVAILABLE',
        message: expected,
      })
      other.close()
    })
  }
}

test('if a pooler refuses start-up options, each transaction sets all settings', async () => {
  await using pooler = await startPooler(server.port)
  const settings = settingsOf(server, 'postgres', { port: pooler.port })
  await using session = await openSession(settings)
  assert.equal(session.login.session.server.pinsEach, true)
  assert.deepEqual(pooler.refused(), 1)
  const rows = await session.run(
    `SELECT current_setting('TimeZone'), current_setting('search_path'), current_setting('statement_timeout'), current_setting('transaction_read_only'), timestamptz '2024-01-01 10:00+02'`,
    { searchPath: ['a"b'] },
  )
  assert.equal(
    rows.rows,
    JSON.stringify([['UTC', '"pg_catalog", "a""b"', `${LIMITS.timeoutMs / 1000}s`, 'on', '2024-01-01T08:00:00Z']]),
  )
  await assert.rejects(session.run('SELECT 1/0'), { code: 'QUERY_FAILED' })
  assert.equal((await session.run('SELECT 1')).rows, '[[1]]')
  const left = await server.query('postgres', `SELECT current_setting('TimeZone'), current_setting('search_path')`)
  assert.deepEqual(left, [['UTC', '"$user", public']])
})

test('planner settings that a query needs off are off in its transaction only, even behind a pooler', async () => {
  await using pooler = await startPooler(server.port)
  for (const port of [server.port, pooler.port]) {
    await using session = await openSession(settingsOf(server, 'postgres', { port }))
    const shown = async (switchedOff: SwitchedOff): Promise<unknown> => {
      const text = "SELECT current_setting('enable_hashjoin'), current_setting('enable_hashagg')"
      return (await session.run(text, { switchedOff })).rows
    }
    assert.equal(await shown('enable_hashjoin enable_hashagg'), '[["off","off"]]')
    assert.equal(await shown('enable_hashagg'), '[["on","off"]]')
    assert.equal(await shown(''), '[["on","on"]]')
    assert.equal(await shown('enable_hashjoin'), '[["off","on"]]')
  }
})

test('settings of a role do not change answers, because the start-up options have precedence', async () => {
  await server.query(
    'postgres',
    `CREATE ROLE odd LOGIN PASSWORD 'x' SUPERUSER; ALTER ROLE odd SET DateStyle = 'SQL, DMY'; ALTER ROLE odd SET enable_seqscan = off;
     ALTER ROLE odd SET bytea_output = 'escape'; ALTER ROLE odd SET TimeZone = 'Asia/Tokyo'; ALTER ROLE odd SET extra_float_digits = -15;
     ALTER ROLE odd SET search_path = public; ALTER ROLE odd SET standard_conforming_strings = off;
     ALTER ROLE odd SET enable_partitionwise_join = on; ALTER ROLE odd SET enable_partitionwise_aggregate = on; ALTER ROLE odd SET constraint_exclusion = off`,
  )
  const settings = settingsOf(server, 'plain', { username: 'odd', secrets: { password: 'x' } })
  await using session = await openSession(settings)
  assert.equal(session.login.session.server.pinsEach, false)
  const rows = await session.run(
    `SELECT '\\x00ff'::bytea, timestamptz '2024-01-01 00:00+09', 0.1::float8 + 0.2, date '2024-02-01'`,
  )
  assert.equal(rows.rows, '[["AP8=","2023-12-31T15:00:00Z",0.30000000000000004,"2024-02-01"]]')
  const planner = await session.run(
    "SELECT current_setting('enable_partitionwise_join'), current_setting('enable_partitionwise_aggregate'), current_setting('constraint_exclusion')",
  )
  assert.equal(planner.rows, '[["off","off","partition"]]')
})

test('a query over TLS is cancelled over TLS, if the server accepts nothing else', async () => {
  const secrets = { password: 'pass:wörd/@#', tlsCa: pem['ca.crt'] ?? '' }
  const settings = settingsOf(server, 'tlsonly', {
    host: 'localhost',
    username: 'ann',
    sslMode: 'verify-full',
    secrets,
  })
  const login = await logIn(targetOf(settings), true, AbortSignal.timeout(60_000))
  await using at = new PostgresConnection(login, emptyKnown)
  const stop = new AbortController()
  const { version } = login.session.server
  const running = assert.rejects(at.run(seal('POSTGRES', queryOf('SELECT pg_sleep(60)', version)), LIMITS, stop.signal))
  const active = async (): Promise<number> =>
    (await server.query('postgres', `SELECT 1 FROM pg_stat_activity WHERE datname = 'tlsonly' AND state = 'active'`))
      .length
  while ((await active()) === 0);
  stop.abort()
  await running
  await until('the query ends in the database', async () => (await active()) === 0)
})

test('a login trigger (version 17 and newer) may write or change the settings: every session still works', async () => {
  await using newer = await startPostgres({ version: 18 })
  await newer.createDatabase(
    'writes',
    `CREATE TABLE logins (at timestamptz);
     CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.logins VALUES (now()); END $$;
     CREATE EVENT TRIGGER noted ON login EXECUTE FUNCTION note(); ALTER EVENT TRIGGER noted ENABLE ALWAYS`,
  )
  await newer.createDatabase(
    'undoes',
    `CREATE FUNCTION undo() RETURNS event_trigger LANGUAGE plpgsql AS
     $$ BEGIN PERFORM set_config('search_path', 'public', false), set_config('DateStyle', 'German', false); END $$;
     CREATE EVENT TRIGGER undone ON login EXECUTE FUNCTION undo(); ALTER EVENT TRIGGER undone ENABLE ALWAYS`,
  )
  for (const database of ['writes', 'undoes']) {
    await using session = await openSession(settingsOf(newer, database))
    assert.equal(session.login.session.server.pinsEach, true)
    const rows = await session.run(
      `SELECT date '2024-02-01', current_setting('search_path'), current_setting('transaction_read_only')`,
    )
    assert.equal(rows.rows, JSON.stringify([['2024-02-01', '"pg_catalog"', 'on']]))
  }
})

/** Starts a relay that refuses start-up options, as PgBouncer does. */
async function startPooler(to: number): Promise<AsyncDisposable & { readonly port: number; refused(): number }> {
  let refused = 0
  const pooler = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (start) => {
      if (start.includes('options\0')) {
        refused++
        const fields = 'SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: options\0\0'
        const head = Buffer.from([0x45, 0, 0, 0, fields.length + 4])
        socket.end(Buffer.concat([head, Buffer.from(fields)]))
        return
      }
      const up = connect(to, '127.0.0.1')
      up.on('error', () => socket.destroy())
      up.write(start)
      socket.pipe(up).pipe(socket)
    })
  })
  pooler.listen(0, '127.0.0.1')
  await once(pooler, 'listening')
  const address = pooler.address()
  assert.ok(address !== null && typeof address === 'object')
  return {
    port: address.port,
    refused: () => refused,
    [Symbol.asyncDispose]: async () => {
      pooler.close()
      await Promise.resolve()
    },
  }
}
