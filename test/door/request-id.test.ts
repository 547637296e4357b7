// The X-Request-Id of an answer is the id of its request, also in the audit, the log of defects and the access log. A
// caller's own id is used only if it is harmless and comes through a trusted proxy.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { Agent } from '../support/agent.ts'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const OURS = /^[0-9a-f]{12}-[0-9a-z]+$/
const SQL = 'SELECT 1 AS secret_word'

describe('request ids', () => {
  let app: TestApp
  let ada: Person
  let teamId: string
  let datasourceId: string
  let key: string
  const lines: string[] = []
  before(async () => {
    app = await startApp({
      env: { VITRINE_ACCESS_LOG: '1' },
      logged: (line) => void lines.push(line),
      more: {
        routes: { broken: { method: 'GET', path: '/broken', summary: 'Fails.', answer: null, errors: [] } },
        operations: { broken: () => Promise.reject(new Error('hunter2')) },
      },
    })
    ada = await app.person()
    teamId = await app.team(ada)
    const spec = {
      type: 'POSTGRES',
      connectionMode: 'DIRECT',
      host: '127.0.0.1',
      port: 1,
      database: 'd',
      username: 'u',
    }
    const more = { name: 'n', password: 'p', sslMode: 'disable', accessMode: 'ROLE_BASED', minRole: 'MEMBER' }
    datasourceId = (await ada.must('POST', `/teams/${teamId}/datasources`, { ...spec, ...more })).id
    key = await app.key(ada)
  })
  after(() => app[Symbol.asyncDispose]())

  const logged = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  const auditOf = async (requestId: string) => {
    const { items } = await ada.must('GET', `/teams/${teamId}/audit?limit=100`)
    return items.filter((item: { requestId?: string }) => item.requestId === requestId)
  }

  test('every answer has its own request id, including errors before routing', async () => {
    const agent = new Agent(app, key)
    const auth = { headers: { origin: app.url }, body: { email: 'x@y.test', password: 'wrong password' } }
    const answers = [
      await app.ask('GET', '/users/me', { token: key }),
      await app.ask('GET', '/users/me'),
      await app.ask('GET', '/no/such/route'),
      await app.ask('GET', '/teams/%zz/datasources'),
      await app.ask('PUT', '/teams'),
      await app.ask('POST', '/teams', { token: ada.jwt, body: '{"name":' }),
      await app.ask('POST', '/auth/sign-in/email', auth),
      await app.ask('GET', '/.well-known/oauth-authorization-server'),
      await app.ask('GET', '/health/ready'),
      await app.ask('GET', '/docs'),
      await agent.call('modern', 'whoami'),
      await agent.ask('legacy', 'tools/list'),
      await new Agent(app, 'wrong').call('modern', 'whoami'),
      await app.ask('GET', '/mcp'),
    ].map(({ status, headers }) => ({ status, id: headers.get('x-request-id') ?? '' }))
    for (const { status, id } of answers) assert.match(id, OURS, String(status))
    assert.equal(new Set(answers.map(({ id }) => id)).size, answers.length)

    const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.end('this is not HTTP\r\n\r\n')
    assert.match(await text(socket), /^HTTP\/1\.1 400 [^]*\r\nx-request-id: [0-9a-f]{12}-[0-9a-z]+\r\n/)
  })

  test('the audit has the request id of a call, for the short path, the ordinary path and the connector', async () => {
    const place = `/teams/${teamId}/datasources/${datasourceId}`
    const path = `${place}/query`
    // Now the caches know the key and the datasource.
    assert.equal((await app.ask('GET', `${place}/schema`, { token: key })).status, 200)
    const short = await app.ask('POST', path, { token: key, body: { sql: SQL } })
    const ordinary = await app.ask('POST', path, { token: ada.jwt, body: { sql: SQL } })
    const byAgent = await new Agent(app, key).call('modern', 'run_query', { teamId, datasourceId, sql: SQL })
    for (const { headers } of [short, ordinary, byAgent]) {
      const [item, ...more] = await auditOf(headers.get('x-request-id') ?? '')
      assert.equal(item?.action, 'runQuery')
      assert.deepEqual(more, [])
    }
    const change = await ada.ask('PATCH', `/teams/${teamId}`, { name: 'Other' })
    const id = change.headers.get('x-request-id') ?? ''
    assert.equal((await auditOf(id))[0]?.action, 'changeTeam')
    assert.equal((await ada.must('GET', `/teams/${teamId}/audit?q=${id}`)).items[0]?.action, 'changeTeam')

    const { email } = ada
    const wrong = { headers: { origin: app.url }, body: { email, password: 'wrong password' } }
    const signIn = await app.ask('POST', '/auth/sign-in/email', wrong)
    const { items } = await ada.must('GET', '/users/me/activity')
    const found = items.find((item: { requestId?: string }) => item.requestId === signIn.headers.get('x-request-id'))
    assert.equal(found?.action, 'signIn')
  })

  test('a defect is logged under the request id of its answer', async () => {
    const { status, headers, json } = await app.ask('GET', '/broken', { token: ada.jwt })
    assert.equal(status, 500)
    assert.equal(json.requestId, headers.get('x-request-id'))
    assert.ok(logged().some(({ msg, requestId }) => msg === 'a defect' && requestId === json.requestId))
  })

  test('the access log has one line for each answer, without paths, texts, keys and addresses', async () => {
    const path = `/teams/${teamId}/datasources/${datasourceId}/query`
    const short = await app.ask('POST', path, { token: key, body: { sql: SQL } })
    const invitation = await app.ask('GET', '/invitations/a-secret-token')
    const unknown = await app.ask('GET', '/no/such/route?q=secret_word')
    const linesOf = (id: string | null) =>
      logged().filter(({ msg, requestId }) => msg === 'answered' && requestId === id)
    for (const { headers } of [short, invitation, unknown]) {
      const id = headers.get('x-request-id')
      await until(`the line of ${id}`, () => linesOf(id).length > 0)
      assert.equal(linesOf(id).length, 1)
    }
    const { time, level, msg, durationMs, keyId, pid, hostname, ...rest } =
      linesOf(short.headers.get('x-request-id'))[0] ?? {}
    const requestId = short.headers.get('x-request-id')
    const about = { requestId, method: 'POST', operation: 'runQuery', status: 409, code: 'NOT_CONNECTED' }
    assert.deepEqual(rest, { ...about, accountId: ada.id, teamId, datasourceId })
    assert.ok([time, level, durationMs, pid].every((value) => typeof value === 'number') && msg === 'answered')
    assert.deepEqual([typeof keyId, typeof hostname], ['string', 'string'])
    const all = lines.filter((line) => line.includes('"answered"')).join('')
    assert.doesNotMatch(all, /secret|sk_live_|127\.0\.0\.1|eyJ|@/)
    assert.equal(linesOf(unknown.headers.get('x-request-id'))[0]?.['operation'], 'other')
  })

  test("a caller's own request id is ignored", async () => {
    const { headers } = await app.ask('GET', '/users/me', {
      token: key,
      headers: { 'x-request-id': 'chosen-by-caller' },
    })
    assert.match(headers.get('x-request-id') ?? '', OURS)
  })
})

test('the request id from a trusted proxy is used if it is harmless', async () => {
  await using app = await startApp({ env: { VITRINE_TRUST_PROXY: '1' } })
  const idFor = async (given: string) =>
    (await app.ask('GET', '/users/me', { headers: { 'x-request-id': given } })).headers.get('x-request-id') ?? ''
  assert.equal(await idFor('7c9e6679-7425-40de-944b-e07fc1f90ae7'), '7c9e6679-7425-40de-944b-e07fc1f90ae7')
  for (const given of ['short', 'x'.repeat(65), 'quote"inside', 'a space inside', 'chosen,chosen', '<script>alert']) {
    assert.match(await idFor(given), OURS, given)
  }
})

test('without VITRINE_ACCESS_LOG, answers are not logged', async () => {
  const lines: string[] = []
  await using app = await startApp({ logged: (line) => void lines.push(line) })
  await app.ask('GET', '/users/me')
  assert.deepEqual(
    lines.filter((line) => line.includes('answered')),
    [],
  )
})
