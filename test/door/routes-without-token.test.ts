// Tests the routes without a token: health, the documents, and sign-in.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { PASSWORD, startApp } from '../support/app.ts'
import type { TestApp } from '../support/app.ts'

describe('public routes', () => {
  let app: TestApp
  before(async () => void (app = await startApp()))
  after(() => app[Symbol.asyncDispose]())

  test('the health routes answer {status}', async () => {
    for (const path of ['/health/live', '/health/ready']) {
      const answer = await app.ask('GET', path)
      assert.deepEqual([answer.status, answer.json], [200, { status: 'ok' }])
    }
  })

  test('/openapi.json equals the committed file', async () => {
    const answer = await app.ask('GET', '/openapi.json')
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
    assert.equal(answer.text, readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
  })

  test('/ redirects to the console', async () => {
    const answer = await app.ask('GET', '/')
    assert.deepEqual([answer.status, answer.headers.get('location')], [302, '/app'])
  })

  test('/docs loads nothing from other hosts, and has no inline script', async () => {
    const page = await app.ask('GET', '/docs')
    assert.equal(page.status, 200)
    assert.doesNotMatch(page.text, /https?:\/\//)
    const csp = page.headers.get('content-security-policy') ?? ''
    assert.match(csp, /default-src 'none'; script-src 'self';/)
    assert.match(csp, /connect-src 'self';/)
    const scripts = [...page.text.matchAll(/<script([^>]*)>([^<]*)/g)]
    assert.equal(scripts.length, 2)
    for (const [, attributes = '', inline] of scripts) {
      assert.equal(inline, '')
      const script = await app.ask('GET', /src="([^"]+)"/.exec(attributes)?.[1] ?? '')
      assert.equal(script.status, 200)
      assert.match(script.headers.get('content-type') ?? '', /^text\/javascript/)
      assert.match(script.text, /createApiReference/)
    }
  })

  test('HEAD answers like GET, without the body', async () => {
    const answer = await app.ask('HEAD', '/health/live')
    assert.deepEqual([answer.status, answer.text], [200, ''])
  })

  test('the cookie of a sign-in is set for /auth only, and other sites cannot use it', async () => {
    const ada = await app.person()
    const body = { email: ada.email, password: PASSWORD }
    const signedIn = await app.ask('POST', '/auth/sign-in/email', { body, headers: { origin: app.url } })
    const [cookie = ''] = signedIn.headers.getSetCookie()
    assert.match(cookie, /; Path=\/auth;/)
    assert.match(cookie, /HttpOnly/)
    assert.match(cookie, /SameSite=Lax/)
    const headers = { cookie: cookie.split(';', 1)[0] ?? '' }
    const forged = await app.ask('POST', '/auth/sign-out', {
      body: {},
      headers: { ...headers, origin: 'https://evil.example' },
    })
    assert.deepEqual([forged.status, forged.json.code], [403, 'SIGN_IN_REFUSED'])
    assert.equal((await app.ask('GET', '/auth/token', { headers })).status, 200)
  })

  test('a client address that a caller claims in a request header is ignored', async () => {
    const sessions = async (headers: Record<string, string>) => {
      const body = { name: 'Eve', email: `eve-${Math.random()}@example.test`, password: PASSWORD }
      const made = await app.ask('POST', '/auth/sign-up/email', { body, headers: { ...headers, origin: app.url } })
      const cookie = made.headers
        .getSetCookie()
        .map((line) => line.split(';', 1)[0])
        .join('; ')
      return (await app.ask('GET', '/auth/list-sessions', { headers: { cookie } })).json
    }
    const claimed = {
      'x-forwarded-for': '203.0.113.9',
      'x-vitrine-client': '203.0.113.9',
      forwarded: 'for=203.0.113.9',
    }
    assert.doesNotMatch(JSON.stringify(await sessions(claimed)), /203\.0\.113\.9/)
  })

  test('a body under /auth that is not JSON is refused in the common error shape', async () => {
    const headers = { origin: app.url, 'content-type': 'application/x-www-form-urlencoded' }
    const form = await app.ask('POST', '/auth/sign-in/email', { body: 'email=a', headers })
    assert.deepEqual([form.status, form.json.code], [415, 'UNSUPPORTED_MEDIA_TYPE'])
    const cut = await app.ask('POST', '/auth/sign-in/email', { body: '{"email":', headers: { origin: app.url } })
    assert.deepEqual([cut.status, cut.json.code], [400, 'INVALID_REQUEST'])
  })
})
