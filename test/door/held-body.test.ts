// A request whose body comes late: the caller is who they are when the body is there, not when the request began.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'

describe('a caller that ends before the body is there', () => {
  let app: TestApp
  let ada: Person
  before(async () => {
    app = await startApp()
    ada = await app.person('Ada')
  })
  after(() => app[Symbol.asyncDispose]())

  /** Sends a request but for the end of its body; `rest` sends that, and answers with the status. */
  async function held(method: string, path: string, token: string, body: object) {
    const { hostname, port, host } = new URL(app.url)
    const text = JSON.stringify(body)
    const socket = connect(Number(port), hostname)
    const head = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${token}`, 'Connection: close']
    // The service says 100 as it takes the request up.
    const more = ['Content-Type: application/json', `Content-Length: ${text.length}`, 'Expect: 100-continue', '', '']
    let got = ''
    const isThere = new Promise<void>((resolve) => socket.once('data', () => resolve()))
    socket.on('data', (data) => (got += data.toString()))
    socket.write([...head, ...more].join('\r\n') + text.slice(0, 1))
    await isThere
    return async () => {
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.write(text.slice(1))
      await closed
      return Number(/HTTP\/1\.1 ([2-5]\d\d)/.exec(got)?.[1])
    }
  }

  test('makes no key and changes nothing, once its session is over', async () => {
    const other = await app.signIn(ada.email)
    const order = { name: 'k', scopes: ['profile'] }
    const rests = [
      await held('POST', '/users/me/keys', other.jwt, order),
      await held('PATCH', '/users/me', other.jwt, { name: 'Eve' }),
    ]
    // Both are past the gate by then.
    await ada.must('GET', '/users/me')
    await app.must('POST', '/auth/sign-out', { body: {}, headers: { cookie: other.cookie, origin: app.url } })
    for (const rest of rests) assert.equal(await rest(), 401)
    assert.deepEqual(await ada.must('GET', '/users/me/keys'), [])
    assert.equal((await ada.must('GET', '/users/me')).name, 'Ada')
  })

  test('reads nothing by a key that was revoked over a second ago', async () => {
    const { id, key } = await ada.must('POST', '/users/me/keys', { name: 'k', scopes: ['data:read'] })
    const path = '/teams/x/datasources/x/query'
    const kept = await held('POST', path, key, { sql: 'SELECT 1' })
    const rest = await held('POST', path, key, { sql: 'SELECT 1' })
    await ada.must('GET', '/users/me')
    const since = performance.now()
    assert.equal(await kept(), 404, 'the gate lets it in')
    await ada.must('DELETE', `/users/me/keys/${id}`)
    while (performance.now() - since < 1_000) assert.equal((await app.ask('POST', path, { token: key })).status, 401)
    assert.equal(await rest(), 401)
  })
})
