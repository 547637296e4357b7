// SIGTERM comes while queries run. A query that ends within the grace period is answered. Any other query is cancelled
// in the database, answered with 503 and JSON, and audited.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Answer } from '../support/app.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { startService, type Service } from '../support/service.ts'

const ENDLESS = 'SELECT count(*) FROM n a, n b, n c, n d WHERE a.i + b.i + c.i + d.i < 0'
const SHORT = 'SELECT count(*) FROM n'

/** The service refuses connections as soon as it has received the signal. */
const isRefusing = (app: Service) =>
  fetch(`${app.url}/health/live`, { headers: { connection: 'close' } }).then(
    () => false,
    () => true,
  )

describe('SIGTERM', () => {
  let postgres: TestPostgres
  let monitor: Client
  let spec: object
  let url: string
  before(async () => {
    postgres = await startPostgres()
    const database = await postgres.createDatabase(
      'drain',
      'CREATE TABLE n (i int); INSERT INTO n SELECT generate_series(1, 2000); ANALYZE',
    )
    url = postgres.url(database)
    monitor = new Client({ connectionString: url })
    await monitor.connect()
    const { host, port, superuser: username, password } = postgres
    spec = { host, port, database, username, password }
  })
  after(async () => {
    await monitor.end()
    await postgres[Symbol.asyncDispose]()
  })

  async function untilActive(count: number): Promise<void> {
    const active = async () =>
      (
        await monitor.query(
          `SELECT 1 FROM pg_stat_activity
           WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
             AND (query LIKE '%count%' OR wait_event_type = 'Lock')`,
        )
      ).rows.length
    await until(`${count} queries run`, async () => (await active()) === count)
  }

  async function withQuery(
    sql: string,
    env: Record<string, string>,
    then: (app: Service, answer: Promise<Answer>) => Promise<void>,
    beforeIt: () => Promise<unknown> = () => Promise.resolve(),
  ) {
    const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-drain-'))
    await using app = await startService(dataDir, env)
    const owner = await app.person('Olga')
    const teamId = await app.team(owner, 'Drain', { statementTimeoutMs: 60_000, postgresMaxPlanCost: 1e15 })
    const id = await app.datasource(owner, teamId, spec, [{ schema: 'public', table: 'n', columns: null }])
    const token = await app.key(owner)
    await beforeIt()
    const answer = app.ask('POST', `/teams/${teamId}/datasources/${id}/query`, { token, body: { sql } })
    await untilActive(1)
    await then(app, answer)
    assert.equal(await app.ended, 0)
    await untilActive(0)
    await using again = await startService(dataDir)
    const back = await again.signIn(owner.email)
    const { items } = await back.must('GET', `/teams/${teamId}/audit?action=runQuery`)
    return items
  }

  test('after SIGTERM, a query may finish within the grace period', async () => {
    // Because of the lock, the query is still running when the signal comes.
    const locker = new Client({ connectionString: url })
    await locker.connect()
    await using _ended = { [Symbol.asyncDispose]: () => locker.end() }
    const lock = () => locker.query('BEGIN; LOCK TABLE n IN ACCESS EXCLUSIVE MODE')
    const items = await withQuery(
      SHORT,
      { VITRINE_GRACE_MS: '600000' },
      async (app, answer) => {
        app.signal('SIGTERM')
        await until('no new connections', () => isRefusing(app))
        await locker.query('ROLLBACK')
        const { status, json } = await answer
        assert.deepEqual([status, json.rows], [200, [[2000]]])
      },
      lock,
    )
    assert.deepEqual([items.length, items[0].outcome], [1, 'ANSWERED'])
  })

  test('if a query runs longer than the grace period, it gets 503 and is cancelled in the database', async () => {
    const items = await withQuery(ENDLESS, { VITRINE_GRACE_MS: '300' }, async (app, answer) => {
      app.signal('SIGTERM')
      const { status, json, headers } = await answer
      assert.deepEqual([status, json.code, headers.get('retry-after')], [503, 'OVERLOADED', '2'])
      assert.match(json.error, /shutting down/)
    })
    assert.deepEqual([items.length, items[0].outcome, items[0].code], [1, 'FAILED', 'OVERLOADED'])
  })

  for (const [what, sent] of [
    ['that sent nothing', ''],
    ['that sent half a header', 'GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow: '],
    [
      'that sent half a body',
      'POST /auth/sign-in/email HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{',
    ],
  ] as const) {
    test(`SIGTERM does not wait for a connection ${what}`, async () => {
      const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-drain-'))
      await using app = await startService(dataDir, { VITRINE_GRACE_MS: '600000' })
      const { port, hostname } = new URL(app.url)
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      socket.on('error', () => undefined)
      if (sent !== '') socket.write(sent)
      // Once this request is answered, the service has also accepted the other connection and read its bytes.
      assert.equal((await app.ask('GET', '/health/live')).status, 200)
      app.signal('SIGTERM')
      assert.equal(await app.ended, 0)
      socket.destroy()
    })
  }

  test('after SIGTERM, an idle query connection is closed, and a busy one is closed after its query is answered', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-drain-'))
    await using app = await startService(dataDir, { VITRINE_GRACE_MS: '600000' })
    const owner = await app.person('Olga')
    const teamId = await app.team(owner, 'Drain', { statementTimeoutMs: 60_000, postgresMaxPlanCost: 1e15 })
    const id = await app.datasource(owner, teamId, spec, [{ schema: 'public', table: 'n', columns: null }])
    const token = await app.key(owner)
    const path = `/teams/${teamId}/datasources/${id}/query`
    // The first query with a new key takes the ordinary path, which looks up the key.
    await app.ask('POST', path, { token, body: { sql: SHORT } })
    const dial = (): Socket => {
      const { hostname, port } = new URL(app.url)
      return connect(Number(port), hostname).on('error', () => undefined)
    }
    const ask = (socket: Socket, sql: string, more = ''): void => {
      const body = JSON.stringify({ sql })
      const type = `content-type: application/json\r\ncontent-length: ${body.length}`
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n${more}${type}\r\n\r\n${body}`,
      )
    }
    const [idle, busy] = [dial(), dial()]
    ask(idle, SHORT)
    assert.match(String((await once(idle, 'data'))[0]), /^HTTP\/1\.1 200 OK\r\n[^]*\[\[2000\]\]/)
    ask(busy, ENDLESS)
    await untilActive(1)
    const busyToo = dial()
    ask(busyToo, ENDLESS, 'te: trailers\r\n')
    await untilActive(2)
    const answers = [busy, busyToo].map((socket) => once(socket, 'data'))
    const closed = once(idle, 'close')
    app.signal('SIGTERM')
    await closed
    assert.equal(busy.closed, false)
    app.signal('SIGINT')
    for (const [answer] of await Promise.all(answers)) {
      assert.match(String(answer), /^HTTP\/1\.1 503 [^]*"code":"OVERLOADED"/)
      assert.deepEqual(
        String(answer)
          .toLowerCase()
          .match(/^(connection|keep-alive):.*$/gm),
        ['connection: close'],
      )
    }
    assert.equal(await app.ended, 0)
    busy.destroy()
  })

  test('a second SIGTERM ends the grace period immediately', async () => {
    await withQuery(ENDLESS, { VITRINE_GRACE_MS: '600000' }, async (app, answer) => {
      app.signal('SIGTERM')
      await until('no new connections', () => isRefusing(app))
      app.signal('SIGINT')
      assert.equal((await answer).status, 503)
    })
  })
})
