// While queries run, a datasource hangs, resets its connections, sends single bytes, or gets another certificate.
// Callers get the expected refusal, and the service stays ready. When the datasource has recovered, queries are
// answered again.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startApp, type Answer, type TestApp } from '../support/app.ts'
import { makeCertificates, type Certificates } from '../support/certificates.ts'
import { startFaultyWay, type FaultyWay, type Way } from '../support/faulty-connection.ts'
import { engineOrSkip } from '../support/no-such-engine.ts'
import { startMongod } from '../support/mongodb.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const SHOP = "CREATE TABLE n (i int, t text); INSERT INTO n SELECT i, 'row ' || i FROM generate_series(1, 500) i"
const EXPOSED = [{ schema: 'public', table: 'n', columns: null }]
const CLIENTS = 6
const kindOf = ({ status, json }: Answer) => (status === 200 ? '200' : `${status} ${json?.code}`)

/** During each fault, at least one caller must get this refusal. */
const FAULTS = [
  ['silent', '504 QUERY_TIMEOUT'],
  ['trickling', '504 QUERY_TIMEOUT'],
  ['resetting', '502 DATASOURCE_UNAVAILABLE'],
] as const satisfies readonly (readonly [Exclude<Way, 'good'>, string])[]

/** All answers that a caller may get. On a busy machine, a query may be late even without a fault. */
const KINDS = ['200', '504 QUERY_TIMEOUT', '502 DATASOURCE_UNAVAILABLE', '503 OVERLOADED']

interface Seen {
  readonly kind: string
  readonly text: string
  readonly isDuring: boolean
  /** True if the query was also sent during the fault. */
  readonly isWhole: boolean
}

async function throughFault(app: TestApp, ask: () => Promise<Answer>, way: FaultyWay, fault: Way, must: string) {
  const seen: Seen[] = []
  let now: 'before' | 'during' | 'after' = 'before'
  const done = new AbortController()
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (!done.signal.aborted) {
      const asked = now
      const answer = await ask()
      const isDuring = now === 'during'
      seen.push({ kind: kindOf(answer), text: answer.text, isDuring, isWhole: isDuring && asked === 'during' })
    }
  })
  const isAnswered = (from = 0) => seen.slice(from).some(({ kind }) => kind === '200')
  try {
    await until('queries are answered', () => isAnswered())
    way.become(fault)
    now = 'during'
    await until(`${fault}: ${must}`, () => seen.some(({ kind, isDuring }) => isDuring && kind === must))
    assert.equal((await app.ask('GET', '/health/ready')).status, 200)
    now = 'after'
    way.become('good')
    const from = seen.length
    await until('queries are answered again', () => isAnswered(from))
  } finally {
    done.abort()
    await Promise.all(clients)
  }
  for (const { kind, text, isWhole } of seen) {
    assert.ok(KINDS.includes(kind), `${fault}: ${text}`)
    // The service may say that the query was cancelled only if the cancel could reach the database, which is possible
    // only while bytes trickle.
    if (isWhole && fault !== 'trickling') assert.doesNotMatch(text, /was cancelled in the database/)
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
    const settings = { statementTimeoutMs: 2_000, queryBudget: { limit: 10_000_000, windowSeconds: 60 } }
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

  for (const [fault, must] of FAULTS) {
    test(`while a PostgreSQL datasource is ${fault}, callers get ${must}, and afterwards answers`, () =>
      throughFault(app, ask, way, fault, must))
  }
})

test('during each fault of a MongoDB datasource, callers get the refusal of the fault, and afterwards answers', async (t) => {
  await using stack = new AsyncDisposableStack()
  const mongo = await engineOrSkip(t, () => startMongod())
  if (mongo === null) return
  stack.use(mongo)
  const way = stack.use(await startFaultyWay(mongo))
  const app = stack.use(await startApp())
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const settings = { statementTimeoutMs: 2_000, queryBudget: { limit: 10_000_000, windowSeconds: 60 } }
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
  for (const [fault, must] of FAULTS) await throughFault(app, ask, way, fault, must)
})

test('if a datasource gets a certificate of another authority, callers get 502, and the connection test says why', async () => {
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
