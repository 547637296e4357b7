// A request body may arrive late. The caller's credentials must still be valid when the body is complete.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'

describe('a caller whose credentials end before the body is complete', () => {
  let app: TestApp
  let ada: Person
  before(async () => {
    app = await startApp()
    ada = await app.person('Ada')
  })
  after(() => app[Symbol.asyncDispose]())

  /** Sends a request without the end of its body. The returned function sends the end, and returns the status. */
  async function held(method: string, path: string, token: string, body: object) {
    const { hostname, port, host } = new URL(app.url)
    const text = JSON.stringify(body)
    const socket = connect(Number(port), hostname)
    const head = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${token}`, 'Connection: close']
    // `Expect: 100-continue` makes the service answer 100 as soon as it handles the request.
    const more = ['Content-Type: application/json', `Content-Length: ${text.length}`, 'Expect: 100-continue', '', '']
    let received = ''
    const continued = new Promise<void>((resolve) => socket.once('data', () => resolve()))
    socket.on('data', (data) => (received += data.toString()))
    socket.write([...head, ...more].join('\r\n') + text.slice(0, 1))
    await continued
    return async () => {
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.write(text.slice(1))
      await closed
      return Number(/HTTP\/1\.1 ([2-5]\d\d)/.exec(received)?.[1])
    }
  }

  test('if the session ends before the body is complete, the request creates no key and changes nothing', async () => {
    const other = await app.signIn(ada.email)
    const order = { name: 'k', scopes: ['profile'] }
    const finishes = [
      await held('POST', '/users/me/keys', other.jwt, order),
      await held('PATCH', '/users/me', other.jwt, { name: 'Eve' }),
    ]
    // Once this request is answered, the two unfinished requests have passed authentication.
    await ada.must('GET', '/users/me')
    await app.must('POST', '/auth/sign-out', { body: {}, headers: { cookie: other.cookie, origin: app.url } })
    for (const finish of finishes) assert.equal(await finish(), 401)
    assert.deepEqual(await ada.must('GET', '/users/me/keys'), [])
    assert.equal((await ada.must('GET', '/users/me')).name, 'Ada')
  })

  test('if the key was revoked a second before the body is complete, the request reads nothing', async () => {
    const { id, key } = await ada.must('POST', '/users/me/keys', { name: 'k', scopes: ['data:read'] })
    const path = '/teams/x/datasources/x/query'
    const finishBefore = await held('POST', path, key, { sql: 'SELECT 1' })
    const finish = await held('POST', path, key, { sql: 'SELECT 1' })
    await ada.must('GET', '/users/me')
    const since = performance.now()
    assert.equal(await finishBefore(), 404, 'a valid key passes authentication')
    await ada.must('DELETE', `/users/me/keys/${id}`)
    while (performance.now() - since < 1_000) assert.equal((await app.ask('POST', path, { token: key })).status, 401)
    assert.equal(await finish(), 401)
  })
})
