// A datasource that hangs, resets its connections, trickles, or swaps its certificate, while queries run: each caller gets a refusal in
// time that says so, the service stays ready, and answers come again once the datasource is well.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startApp, type Answer, type TestApp } from '../support/app.ts'
import { makeCertificates, type Certificates } from '../support/certificates.ts'
import { startFaultyWay, type FaultyWay, type Way } from '../support/faulty-way.ts'
import { engineOrSkip } from '../support/no-such-engine.ts'
import { startMongod } from '../support/mongodb.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const SHOP = "CREATE TABLE n (i int, t text); INSERT INTO n SELECT i, 'row ' || i FROM generate_series(1, 500) i"
const EXPOSED = [{ schema: 'public', table: 'n', columns: null }]
const CLIENTS = 6
const kindOf = ({ status, json }: Answer) => (status === 200 ? '200' : `${status} ${json?.code}`)

/**
 * What a caller may see of each fault. The first must be seen. On a busy machine, connecting again after a reset may take until the
 * query's deadline.
 */
const FAULTS: readonly (readonly [Exclude<Way, 'good'>, readonly string[]])[] = [
  ['silent', ['504 QUERY_TIMEOUT', '502 DATASOURCE_UNAVAILABLE', '503 OVERLOADED']],
  ['trickling', ['504 QUERY_TIMEOUT', '502 DATASOURCE_UNAVAILABLE', '503 OVERLOADED']],
  ['resetting', ['502 DATASOURCE_UNAVAILABLE', '503 OVERLOADED', '504 QUERY_TIMEOUT']],
]

async function throughFault(
  app: TestApp,
  ask: () => Promise<Answer>,
  way: FaultyWay,
  fault: Way,
  kinds: readonly string[],
) {
  const seen = new Map<string, Answer>()
  const done = new AbortController()
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (!done.signal.aborted) {
      const answer = await ask()
      seen.set(kindOf(answer), answer)
    }
  })
  try {
    await until('queries are answered', () => seen.has('200'))
    way.become(fault)
    await until(`${fault}: ${kinds[0]}`, () => seen.has(kinds[0] ?? ''))
    assert.equal((await app.ask('GET', '/health/ready')).status, 200)
    way.become('good')
    seen.delete('200')
    await until('queries are answered again', () => seen.has('200'))
  } finally {
    done.abort()
    await Promise.all(clients)
  }
  for (const [kind, answer] of seen) {
    if (kind === '200') continue
    assert.ok(kinds.includes(kind), `${fault}: ${answer.text}`)
    // No confirmation came through, so none may be claimed.
    if (fault === 'silent') assert.doesNotMatch(answer.text, /was cancelled in the database/)
  }
}

describe('a PostgreSQL datasource', () => {
  let server: TestPostgres
  let app: TestApp
  let way: FaultyWay
  let ask: () => Promise<Answer>
  before(async () => {
    server = await startPostgres()
    way = await startFaultyWay(server)
    app = await startApp()
    const owner = await app.person('Olga')
    const teamId = await app.team(owner)
    const settings = { statementTimeoutMs: 1_000, queryBudget: { limit: 10_000_000, windowSeconds: 60 } }
    await owner.must('PATCH', `/teams/${teamId}`, { settings })
    const { superuser: username, password } = server
    const spec = {
      host: '127.0.0.1',
      port: way.port,
      database: await server.createDatabase('shop', SHOP),
      username,
      password,
    }
    const id = await app.datasource(owner, teamId, spec, EXPOSED)
    const token = await app.key(owner)
    const body = { sql: 'SELECT i, t FROM n' }
    ask = () => app.ask('POST', `/teams/${teamId}/datasources/${id}/query`, { token, body })
  })
  after(async () => {
    for (const each of [app, way, server]) await each[Symbol.asyncDispose]()
  })

  for (const [fault, kinds] of FAULTS) {
    test(`${fault}: callers get ${kinds[0]}, then answers again`, () => throughFault(app, ask, way, fault, kinds))
  }
})

test('a MongoDB datasource that falls silent or resets: callers get a refusal in time, then answers again', async (t) => {
  await using stack = new AsyncDisposableStack()
  const mongo = await engineOrSkip(t, () => startMongod())
  if (mongo === null) return
  stack.use(mongo)
  const way = stack.use(await startFaultyWay(mongo))
  const app = stack.use(await startApp())
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const settings = { statementTimeoutMs: 1_000, queryBudget: { limit: 10_000_000, windowSeconds: 60 } }
  await owner.must('PATCH', `/teams/${teamId}`, { settings })
  const database = mongo.database('shop')
  await mongo.client
    .db(database)
    .collection('n')
    .insertMany([{ i: 1 }, { i: 2 }])
  const spec = { type: 'MONGODB', host: mongo.host, port: way.port, database }
  const id = await app.datasource(owner, teamId, spec, [{ schema: database, table: 'n', columns: null }])
  const token = await app.key(owner)
  const body = { collection: 'n', pipeline: [] }
  const ask = () => app.ask('POST', `/teams/${teamId}/datasources/${id}/query`, { token, body })
  for (const [fault, kinds] of FAULTS) await throughFault(app, ask, way, fault, kinds)
})

test('a datasource that swaps its certificate for one of another authority gets 502, and its test says why', async () => {
  await using stack = new AsyncDisposableStack()
  const [first, other] = [stack.use(await makeCertificates()), stack.use(await makeCertificates())]
  const tls = { certFile: join(first.folder, 'server.crt'), keyFile: join(first.folder, 'server.key') }
  const server = stack.use(await startPostgres({ tls, hba: 'host all all 127.0.0.1/32 scram-sha-256' }))
  const app = stack.use(await startApp())
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const database = await server.createDatabase('shop', SHOP)
  const { port, superuser: username, password } = server
  const spec = {
    host: 'localhost',
    port,
    database,
    username,
    password,
    sslMode: 'verify-full',
    tlsCa: first.pem['ca.crt'],
  }
  const id = await app.datasource(owner, teamId, spec, EXPOSED)
  const token = await app.key(owner)
  const at = `/teams/${teamId}/datasources/${id}`
  const ask = () => app.ask('POST', `${at}/query`, { token, body: { sql: 'SELECT count(*) FROM n' } })
  assert.equal((await ask()).status, 200)

  await swapCertificate(server, other)
  await until('new connections are refused', async () => {
    await server.query(
      'postgres',
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`,
    )
    const answer = await ask()
    if (answer.status !== 200) assert.equal(kindOf(answer), '502 DATASOURCE_UNAVAILABLE')
    return answer.status === 502
  })
  const report = await owner.ask('POST', `${at}/test`, {})
  assert.match(report.text, /certificate/)
  assert.doesNotMatch(report.text, new RegExp(password))

  await owner.must('PATCH', at, { tlsCa: other.pem['ca.crt'] })
  await until('the new authority is trusted', async () => (await ask()).status === 200)
})

/** The server presents another certificate from now on, as after a renewal. */
async function swapCertificate(server: TestPostgres, to: Certificates): Promise<void> {
  for (const [setting, name] of [
    ['ssl_cert_file', 'server.crt'],
    ['ssl_key_file', 'server.key'],
  ] as const) {
    const [[path] = []] = await server.query('postgres', `SHOW ${setting}`)
    await writeFile(path ?? assert.fail(setting), to.pem[name] ?? assert.fail(name))
  }
  await server.query('postgres', 'SELECT pg_reload_conf()')
}
