// A refusal is JSON {error, code, …} with a known code under its status. It reveals nothing internal.
import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import type { Route } from '../../src/contract/route-type.ts'
import { ROUTES } from '../../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../../src/contract/signed-in-routes.ts'
import { AppError, STATUS } from '../../src/errors.ts'
import { startApp } from '../support/app.ts'
import type { Answer, Person, RequestOptions, TestApp } from '../support/app.ts'

function assertRefusal(answer: Answer, code: keyof typeof STATUS): void {
  assert.equal(answer.json?.code, code, answer.text)
  assert.equal(answer.status, STATUS[code])
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  assert.ok(typeof answer.json.error === 'string' && answer.json.error !== '')
  assert.doesNotMatch(answer.text, /node_modules|\.[cm]?[jt]s:\d|\n\s+at |Object\./)
}

describe('refusals', () => {
  let app: TestApp
  let ada: Person
  before(async () => {
    app = await startApp({
      more: {
        routes: {
          broken: { method: 'GET', path: '/broken', summary: 'Fails.', answer: null, errors: [] },
          named: { method: 'GET', path: '/named', summary: 'Fails.', answer: null, errors: [] },
        },
        operations: {
          named: () => Promise.reject(new AppError('INTERNAL', 'hunter2')),
          broken: () => Promise.reject(new Error('postgres://admin:hunter2@db.internal/secret')),
        },
      },
    })
    ada = await app.person()
  })
  after(() => app[Symbol.asyncDispose]())

  const cases: readonly [string, string, string, keyof typeof STATUS, RequestOptions?][] = [
    ['an unknown route', 'GET', '/no/such/route', 'NOT_FOUND'],
    ['an unknown route under /auth', 'GET', '/auth/no-such-route', 'NOT_FOUND'],
    ['metrics on the main port', 'GET', '/metrics', 'NOT_FOUND'],
    ['a path that cannot be decoded', 'GET', '/teams/%zz/datasources', 'NOT_FOUND'],
    ['a trailing slash', 'GET', '/teams/', 'NOT_FOUND'],
    ['a method the path does not have', 'PUT', '/teams', 'METHOD_NOT_ALLOWED'],
    ['a method a public path does not have', 'POST', '/openapi.json', 'METHOD_NOT_ALLOWED'],
    ['OPTIONS', 'OPTIONS', '/users/me', 'METHOD_NOT_ALLOWED'],
    ['no token', 'GET', '/users/me', 'UNAUTHENTICATED'],
  ]
  for (const [title, method, path, code, options] of cases) {
    test(`a request is refused with the code ${code}: ${title}`, async () =>
      assertRefusal(await app.ask(method, path, options), code))
  }

  const asAda: readonly [string, string, string, keyof typeof STATUS, RequestOptions][] = [
    ['truncated JSON', 'POST', '/teams', 'INVALID_REQUEST', { body: '{"name":' }],
    ['an empty body', 'POST', '/teams', 'INVALID_REQUEST', { body: '' }],
    ['no body', 'POST', '/teams', 'INVALID_REQUEST', {}],
    ['a list', 'POST', '/teams', 'INVALID_REQUEST', { body: [] }],
    ['null', 'POST', '/teams', 'INVALID_REQUEST', { body: null }],
    ['__proto__', 'POST', '/teams', 'INVALID_REQUEST', { body: '{"name":"x","__proto__":{"role":"OWNER"}}' }],
    ['an unknown field', 'POST', '/teams', 'INVALID_REQUEST', { body: { name: 'x', role: 'OWNER' } }],
    ['NUL in a name', 'POST', '/teams', 'INVALID_REQUEST', { body: { name: 'x\0' } }],
    ['a lone surrogate in a name', 'POST', '/teams', 'INVALID_REQUEST', { body: { name: 'x\ud800' } }],
    ['a name that consists of spaces', 'POST', '/teams', 'INVALID_REQUEST', { body: { name: '  ' } }],
    [
      'a body for an operation without a body',
      'POST',
      '/invitations/x/accept',
      'INVALID_REQUEST',
      { body: { grace: 1 } },
    ],
    ['an unknown parameter', 'GET', '/users/me?x=1', 'INVALID_REQUEST', {}],
    [
      'plain text',
      'POST',
      '/teams',
      'UNSUPPORTED_MEDIA_TYPE',
      { body: 'x', headers: { 'content-type': 'text/plain' } },
    ],
    [
      'a form',
      'POST',
      '/teams',
      'UNSUPPORTED_MEDIA_TYPE',
      { body: 'x=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    ],
    ['2 MiB', 'POST', '/teams', 'BODY_TOO_LARGE', { body: { name: 'x'.repeat(2 << 20) } }],
    ['an id with a NUL', 'GET', '/teams/%00', 'NOT_FOUND', {}],
    ['an id with SQL', 'GET', "/teams/'%20OR%201=1", 'NOT_FOUND', {}],
    ['an id of 600 letters', 'GET', `/teams/${'x'.repeat(600)}`, 'NOT_FOUND', {}],
  ]
  for (const [title, method, path, code, options] of asAda) {
    test(`a request that needs an account is refused with the code ${code}: ${title}`, async () => {
      const answer = await app.ask(method, path, { ...options, token: ada.jwt })
      assertRefusal(answer, code)
      if (code === 'INVALID_REQUEST') assert.ok(answer.json.details.length > 0)
    })
  }

  test('a 405 lists the methods of the path', async () => {
    const answer = await app.ask('DELETE', '/teams')
    assert.equal(answer.headers.get('allow'), 'GET, HEAD, POST')
  })

  for (const method of METHODS.filter((name) => !/^(GET|HEAD|POST|CONNECT)$/.test(name))) {
    test(`${method} gets 405 with Allow on a known path and 404 on an unknown path, whatever the body`, async () => {
      for (const [path, status] of [
        ['/teams', 405],
        ['/no/such/route', 404],
      ] as const) {
        for (const rest of ['\r\n', 'Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nx']) {
          const response = await sendRaw(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${rest}`)
          assert.match(response, new RegExp(`^HTTP/1\\.1 ${status} `), rest)
          assert.equal(/^allow: (.*)\r$/m.exec(response)?.[1], status === 405 ? 'GET, HEAD, POST' : undefined)
        }
      }
    })
  }

  const ambiguous: readonly [string, Buffer][] = [
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0x6e, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d])],
    ['a lone surrogate as an escape', Buffer.from(String.raw`{"n":"\ud800"}`)],
    ['a duplicate name', Buffer.from('{"n":"x","n":"y"}')],
    ['a parameter that would be rounded', Buffer.from('{"params":[0.12345678901234567890]}')],
    ['UTF-16', Buffer.from('\ufeff{"n":"x"}', 'utf16le')],
  ]
  for (const [title, body] of ambiguous) {
    test(`every route that reads a body refuses this body: ${title}`, async () => {
      const headers = { authorization: `Bearer ${ada.jwt}`, 'content-type': 'application/json', origin: app.url }
      for (const [id, { method, path }] of Object.entries({ ...ROUTES, ...SESSION_ROUTES })) {
        if (method === 'GET') continue
        const response = await fetch(app.url + path.replaceAll(/\{\w+\}/g, 'x'), { method, headers, body })
        assert.match(await response.text(), /"code":"INVALID_REQUEST"/, id)
      }
      const response = await fetch(`${app.url}/auth/sign-in/email`, { method: 'POST', headers, body })
      assert.match(await response.text(), /"code":"INVALID_REQUEST"/)
    })
  }

  test('a long body, which is parsed in slices, is answered like a short one', async () => {
    for (const body of [
      '{"name":"Sliced"}',
      '\ufeff{"name":"Sliced"}',
      '{"name":"Sliced"',
      '{"name":"Sliced",}',
      '{"name":"Sliced","__proto__":{"role":"OWNER"}}',
      String.raw`{"name":"Sliced","\u005f_proto__":1}`,
      '{"name":"Sliced","constructor":{"prototype":1}}',
      '{"name":"Sliced","constructor":{}}',
      '{"name":"x","name":"y"}',
      '{"params":[0.12345678901234567890]}',
      '{"params":{"a":{"value":0.12345678901234567890}}}',
      'null',
      '[]',
      'nul',
      '[] []',
    ]) {
      const answerTo = async (text: string) => {
        const { status, json } = await ada.ask('POST', '/teams', text)
        return [status, json.code, json.error, json.details, json.name]
      }
      assert.deepEqual(await answerTo(body + ' '.repeat(1 << 17)), await answerTo(body), body)
    }
  })

  test('the body of an ordinary route may have 3,000 values, and the body of a query 30,000', async () => {
    const values = (n: number) => ({ body: { x: Array(n).fill(1) }, token: ada.jwt })
    const refusal = async (path: string, n: number) => (await app.ask('POST', path, values(n))).text
    assert.doesNotMatch(await refusal('/teams', 2_998), /values/)
    assert.match(await refusal('/teams', 3_000), /contains more than 3000 values/)
    assert.match(await refusal('/auth/sign-in/email', 3_000), /contains more than 3000 values/)
    assert.doesNotMatch(await refusal('/teams/x/datasources/x/query', 29_998), /values/)
    assert.match(await refusal('/teams/x/datasources/x/query', 30_000), /contains more than 30000 values/)
  })

  test('a byte order mark before the JSON is ignored', async () => {
    await ada.must('POST', '/teams', '\ufeff{"name":"Marked"}')
  })

  for (const body of ['null', '[]', '"x"', '5', 'true']) {
    test(`PATCH and PUT refuse the body ${body}, which is not an object`, async () => {
      const { id } = await ada.must('POST', '/teams', { name: 'Bodies' })
      const routes: Record<string, Route> = SESSION_ROUTES
      for (const [route, { method, path, place }] of Object.entries(routes)) {
        if ((method !== 'PATCH' && method !== 'PUT') || place === 'datasource') continue
        // These routes first look for the key, the grant or the webhook in the path.
        if (['changeKey', 'narrowGrant', 'changeWebhook'].includes(route)) continue
        const answer = await ada.ask(method, path.replace('{teamId}', id).replace('{accountId}', ada.id), body)
        assert.equal(answer.json?.code, 'INVALID_REQUEST', `${route}: ${answer.text}`)
      }
    })
  }

  test('an internal error shows its request id, never its text', async () => {
    const answer = await app.ask('GET', '/broken', { token: ada.jwt })
    assertRefusal(answer, 'INTERNAL')
    assert.equal(answer.json.requestId, answer.headers.get('x-request-id'))
    assert.doesNotMatch(answer.text, /hunter2|postgres/)
  })

  test('the details name an unknown field', async () => {
    const answer = await ada.ask('POST', '/teams', { name: 'x', settngs: {} })
    assert.match(JSON.stringify(answer.json.details), /settngs/)
  })

  async function sendRaw(sent: string): Promise<string> {
    const { port, hostname } = new URL(app.url)
    const socket = connect(Number(port), hostname)
    socket.write(sent)
    return Buffer.concat(await socket.toArray()).toString()
  }

  test('bytes that are not HTTP get a JSON error', async () => {
    const text = await sendRaw('GARBAGE\r\n\r\n')
    assert.match(text, /^HTTP\/1\.1 400 /)
    assert.equal(JSON.parse(text.slice(text.indexOf('{'))).code, 'INVALID_REQUEST')
  })

  test('an invalid Host header is refused under /auth', async () => {
    const { hostname, port } = new URL(app.url)
    for (const host of ['a b', '[', 'user:word@host', 'host:99999999']) {
      const socket = connect(Number(port), hostname)
      socket.write(`GET /auth/get-session HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      const response = Buffer.concat(await socket.toArray()).toString()
      assert.match(response, /^HTTP\/1\.1 400 .*"code":"INVALID_REQUEST"/s, host)
    }
  })

  test('a deeply nested body is refused under /auth', async () => {
    const body = '['.repeat(30_000) + ']'.repeat(30_000)
    assertRefusal(await app.ask('POST', '/auth/sign-in/email', { body }), 'INVALID_REQUEST')
  })

  test('a body with thousands of errors gets a limited list of details', async () => {
    const { id } = await ada.must('POST', '/teams', { name: 'Wrong' })
    const config = Object.fromEntries(Array.from({ length: 2_900 }, (_, n) => [`key${n}`, n]))
    const order = { name: 'x', type: 'POSTGRES', connectionMode: 'DIRECT', host: 'h', database: 'd', username: 'u' }
    const answer = await ada.ask('POST', `/teams/${id}/datasources`, { ...order, config })
    assertRefusal(answer, 'INVALID_REQUEST')
    assert.ok(answer.json.details.length >= 100 && answer.text.length < 50_000, `${answer.text.length} bytes`)
  })

  test('an AppError with the code INTERNAL shows its request id, never its text', async () => {
    const answer = await app.ask('GET', '/named', { token: ada.jwt })
    assertRefusal(answer, 'INTERNAL')
    assert.equal(answer.json.requestId, answer.headers.get('x-request-id'))
    assert.doesNotMatch(answer.text, /hunter2/)
  })

  test('an answer does not name the server software', async () => {
    const answer = await app.ask('GET', '/health/live')
    assert.deepEqual([answer.headers.get('server'), answer.headers.get('x-powered-by')], [null, null])
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  })
})
