// Pages of another site may call the API only if the operator has named their origin, and may never call /auth.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Agent } from '../support/agent.ts'
import { startApp, type Person, type TestApp } from '../support/app.ts'

const PAGE = 'https://app.example.com'
const preflight = (origin: string) => ({ origin, 'access-control-request-method': 'POST' })
const corsOf = (headers: Headers) => [...headers.keys()].filter((name) => name.startsWith('access-control-'))

test('by default, no page of another site may read an answer', async () => {
  await using app = await startApp()
  const key = await app.key(await app.person())
  for (const [method, headers] of [
    ['GET', { origin: PAGE }],
    ['OPTIONS', preflight(PAGE)],
    ['GET', { origin: 'null' }],
  ] as const) {
    assert.deepEqual(corsOf((await app.ask(method, '/teams', { token: key, headers })).headers), [])
  }
})

describe('with VITRINE_CORS_ORIGINS', () => {
  let app: TestApp
  let ada: Person
  let key: string
  before(async () => {
    app = await startApp({ env: { VITRINE_CORS_ORIGINS: `${PAGE}, http://localhost:5173` } })
    ada = await app.person()
    key = await app.key(ada)
  })
  after(() => app[Symbol.asyncDispose]())

  test('a page of a named origin reads answers and refusals, and may send a token', async () => {
    const sent = await app.ask('OPTIONS', '/teams', { headers: preflight(PAGE) })
    assert.equal(sent.status, 204)
    assert.match(sent.headers.get('access-control-allow-headers') ?? '', /\bauthorization\b/)
    for (const [path, status] of [
      ['/teams', 200],
      ['/users/nobody', 404],
    ] as const) {
      const { headers, status: found } = await app.ask('GET', path, { token: key, headers: { origin: PAGE } })
      assert.equal(found, status)
      assert.equal(headers.get('access-control-allow-origin'), PAGE)
      assert.match(headers.get('access-control-expose-headers') ?? '', /x-request-id/)
      assert.match(headers.get('vary') ?? '', /\bOrigin\b/)
      assert.equal(headers.get('access-control-allow-credentials'), null)
    }
    const query = await app.ask('POST', '/teams/x/datasources/y/query', {
      token: key,
      body: { sql: 'SELECT 1' },
      headers: { origin: PAGE },
    })
    assert.deepEqual([query.status, query.headers.get('access-control-allow-origin')], [404, PAGE])
  })

  test('an origin is refused if it is not named, only begins with a named origin, or has another scheme', async () => {
    for (const origin of ['https://evil.example', 'https://app.example.com.evil.example', 'http://app.example.com']) {
      assert.deepEqual(corsOf((await app.ask('GET', '/teams', { token: key, headers: { origin } })).headers), [])
      const { status, headers } = await app.ask('OPTIONS', '/teams', { headers: preflight(origin) })
      assert.deepEqual([status, corsOf(headers)], [405, []])
    }
  })

  test('/auth is closed to every other site', async () => {
    const headers = { ...preflight(PAGE), cookie: ada.cookie }
    for (const [method, path] of [
      ['OPTIONS', '/auth/sign-in/email'],
      ['GET', '/auth/token'],
      ['GET', '/auth/get-session'],
    ] as const) {
      assert.deepEqual(corsOf((await app.ask(method, path, { headers })).headers), [])
    }
  })

  test('the connector accepts a named origin, and refuses another', async () => {
    const agent = new Agent(app, key)
    const asked = (origin: string) => agent.ask('modern', 'tools/list', {}, { headers: { origin } })
    assert.deepEqual(
      [(await asked(PAGE)).status, (await asked(PAGE)).headers.get('access-control-allow-origin')],
      [200, PAGE],
    )
    assert.equal((await asked('https://evil.example')).status, 403)
  })
})
