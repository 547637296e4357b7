// Tests accounts and access over HTTP, with mail, on both stores. The test begins with an empty store and follows the
// links in the mails, until a colleague is in the team.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { DIALECTS } from '../support/stores.ts'
import { PASSWORD, startApp, type TestApp } from '../support/app.ts'
import { startSmtp, tokenIn, type TestSmtp } from '../support/mail.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { totp } from '../support/totp.ts'

const OTHER = 'another long password'

/** The content security policy must allow only the page's own script. */
function assertPolicy(page: { readonly headers: Headers }, html: string): void {
  const script = /<script>([\s\S]*?)<\/script>/.exec(html)?.[1] ?? ''
  const hash = createHash('sha256').update(script).digest('base64')
  const csp = page.headers.get('content-security-policy') ?? ''
  assert.ok(csp.startsWith("default-src 'none'; ") && csp.includes(`script-src 'sha256-${hash}';`), csp)
  assert.match(csp, /frame-ancestors 'none'/)
}

const linkIn = (text: string): string => /^https?:\/\/\S+$/m.exec(text)?.[0] ?? ''

for (const dialect of DIALECTS) {
  describe(`accounts, on ${dialect}`, () => {
    let server: TestPostgres | null = null
    let smtp: TestSmtp
    let app: TestApp

    before(async () => {
      smtp = await startSmtp()
      server = dialect === 'postgres' ? await startPostgres() : null
      const store =
        server === null
          ? {}
          : {
              DATABASE_URL: server.url(await server.createDatabase('people')),
              VITRINE_SECRET_KEY: Buffer.alloc(32, 6).toString('base64'),
            }
      app = await startApp({ env: { SMTP_URL: smtp.url, VITRINE_SIGNUP: 'invited', ...store } })
    })
    after(async () => {
      await app[Symbol.asyncDispose]()
      await smtp[Symbol.asyncDispose]()
      await server?.[Symbol.asyncDispose]()
    })

    const post = (path: string, body: object, cookie = '') =>
      app.ask('POST', `/auth/${path}`, { body, headers: { origin: app.url, cookie } })
    const cookieOf = (answer: { headers: Headers }) =>
      answer.headers
        .getSetCookie()
        .map((line) => line.split(';', 1)[0])
        .join('; ')
    const jwtOf = async (cookie: string): Promise<string> =>
      (await app.must('GET', '/auth/token', { headers: { cookie } })).token

    /**
     * Signs up, verifies the address and signs in. If the store already has an account, `more` needs an `inviteToken`.
     */
    async function signUpVerified(email: string, more: object = {}): Promise<string> {
      assert.equal((await post('sign-up/email', { name: 'N', email, password: PASSWORD, ...more })).status, 200)
      const link = linkIn((await smtp.next(email)).text)
      assert.ok(link.startsWith(`${app.url}/auth/verify-email?token=`), link)
      const page = await fetch(link)
      assert.deepEqual([page.status, page.headers.get('referrer-policy')], [200, 'no-referrer'])
      assertPolicy(page, await page.text())
      const early = await post('sign-in/email', { email, password: PASSWORD })
      assert.equal(early.json.reason, 'EMAIL_NOT_VERIFIED', 'a click alone does not verify the address')
      const token = tokenIn({ text: link })
      assert.equal((await post('verify-email', { token, password: PASSWORD })).status, 200)
      return await jwtOf(cookieOf(await post('sign-in/email', { email, password: PASSWORD })))
    }

    test('the first account needs no invitation, the next account needs one for its address, and accepting it adds the member', async () => {
      const ada = await signUpVerified('ada@example.test')
      const uninvited = await post('sign-up/email', { name: 'Eve', email: 'eve@example.test', password: PASSWORD })
      assert.deepEqual([uninvited.status, uninvited.json.reason], [403, 'INVITATION_NEEDED'])
      const { id } = await app.must('POST', '/teams', { token: ada, body: { name: 'Acme' } })
      const invite = (email: string) =>
        app.must('POST', `/teams/${id}/members`, { token: ada, body: { email, role: 'MEMBER' } })
      const { inviteToken } = await invite('bo@example.test')
      const mail = await smtp.next('bo@example.test')
      assert.ok(mail.text.includes(`POST ${app.url}/invitations/${inviteToken}/accept`))
      const other = await post('sign-up/email', {
        name: 'E',
        email: 'eve@example.test',
        password: PASSWORD,
        inviteToken,
      })
      assert.equal(other.json.reason, 'INVITATION_NEEDED')

      const bo = await signUpVerified('bo@example.test', { inviteToken })
      assert.deepEqual(await app.must('GET', '/teams', { token: bo }), [])
      assert.equal((await app.ask('POST', `/invitations/${inviteToken}/accept`, { token: ada })).status, 404)
      const joined = await app.must('POST', `/invitations/${inviteToken}/accept`, { token: bo })
      assert.deepEqual([joined.id, joined.status], [id, 'INVITED'])
      assert.equal((await app.ask('POST', `/invitations/${inviteToken}/accept`, { token: bo })).status, 404)
    })

    test('a forgotten password is reset by the mailed link, which does not sign in', async () => {
      const email = 'ada@example.test'
      assert.equal((await post('request-password-reset', { email })).status, 200)
      const mail = await smtp.next(email)
      const page = await fetch(linkIn(mail.text))
      const html = await page.text()
      assert.deepEqual([page.status, page.headers.get('referrer-policy')], [200, 'no-referrer'])
      assert.equal(page.headers.get('cache-control'), 'no-store')
      assert.ok(!html.includes(tokenIn(mail)))
      assertPolicy(page, html)
      const set = await post('reset-password', { token: tokenIn(mail), newPassword: OTHER })
      assert.equal(set.status, 200)
      assert.ok(!set.headers.getSetCookie().some((line) => line.includes('session_token')))
      assert.equal((await post('sign-in/email', { email, password: PASSWORD })).status, 401)
      const signedIn = await post('sign-in/email', { email, password: OTHER })
      const device = signedIn.headers.getSetCookie().find((line) => line.startsWith('vitrine.known_device='))
      assert.match(device ?? '', /; Path=\/auth; HttpOnly; SameSite=Lax$/)
      // The token works only once, even without the page.
      const again = await post('reset-password', { token: tokenIn(mail), newPassword: PASSWORD })
      assert.deepEqual([again.status, again.json.code, again.json.reason], [400, 'INVALID_REQUEST', 'INVALID_TOKEN'])
    })

    test('sessions are listed, and can be ended one by one, all except the current session, or all together', async () => {
      const [one, two, three] = await Promise.all(
        [1, 2, 3].map(async () =>
          cookieOf(await post('sign-in/email', { email: 'bo@example.test', password: PASSWORD })),
        ),
      )
      assert.ok(one && two && three)
      const alive = async (cookie: string) =>
        (await app.ask('GET', '/auth/token', { headers: { cookie } })).status === 200
      const jwt = await jwtOf(two)
      const list = await app.must('GET', '/auth/list-sessions', { headers: { cookie: one } })
      const { session } = await app.must('GET', '/auth/get-session', { headers: { cookie: two } })
      assert.ok(list.some((entry: { id: string }) => entry.id === session.id))
      assert.deepEqual(
        list.filter((entry: { current?: true }) => entry.current),
        [(await app.must('GET', '/auth/get-session', { headers: { cookie: one } })).session],
      )
      assert.equal((await app.ask('GET', '/users/me', { token: jwt })).status, 200)
      await post('revoke-session', { id: session.id }, one)
      assert.deepEqual([await alive(two), (await app.ask('GET', '/users/me', { token: jwt })).status], [false, 401])
      // Another account cannot end the session.
      const ada = cookieOf(await post('sign-in/email', { email: 'ada@example.test', password: OTHER }))
      const own = await app.must('GET', '/auth/get-session', { headers: { cookie: one } })
      await post('revoke-session', { id: own.session.id }, ada)
      assert.ok(await alive(one))
      await post('revoke-other-sessions', {}, one)
      assert.deepEqual([await alive(one), await alive(three)], [true, false])
      await post('revoke-sessions', {}, one)
      assert.equal(await alive(one), false)
      for (const path of ['revoke-session', 'revoke-sessions', 'revoke-other-sessions']) {
        const refused = await post(path, path === 'revoke-session' ? { id: 'x' } : {}, one)
        assert.deepEqual([refused.status, refused.json.code], [401, 'UNAUTHENTICATED'], path)
      }
    })

    test('after the password, a second factor is required before any token is issued', async () => {
      const email = 'bo@example.test'
      const cookie = cookieOf(await post('sign-in/email', { email, password: PASSWORD }))
      const { totpURI } = (await post('two-factor/enable', { password: PASSWORD }, cookie)).json
      const on = await post('two-factor/verify-totp', { code: totp(totpURI) }, cookie)
      assert.equal(on.status, 200)
      const half = await post('sign-in/email', { email, password: PASSWORD })
      assert.equal(half.json.twoFactorRedirect, true)
      const waiting = cookieOf(half)
      assert.equal((await app.ask('GET', '/auth/token', { headers: { cookie: waiting } })).status, 401)
      const wrong = await post('two-factor/verify-totp', { code: '12345' }, waiting)
      assert.deepEqual([wrong.status, wrong.json.reason], [401, 'INVALID_CODE'])
      const whole = await post('two-factor/verify-totp', { code: totp(totpURI, 1) }, waiting)
      assert.equal((await app.ask('GET', '/users/me', { token: await jwtOf(cookieOf(whole)) })).status, 200)
    })

    test('unlisted routes and unknown parameters under /auth are refused in the common error shape', async () => {
      for (const [method, path, status] of [
        ['GET', 'reset-password/x', 404],
        ['POST', 'change-email', 404],
        ['POST', 'two-factor/send-otp', 404],
        ['GET', 'get-session?disableCookieCache=1', 400],
        ['GET', 'verify-email', 400],
        ['GET', 'verify-email?token=a&token2=b', 400],
        ['GET', 'verify-email?token=a', 200],
      ] as const) {
        const answer = await app.ask(method, `/auth/${path}`, method === 'POST' ? { body: {} } : {})
        assert.equal(answer.status, status, path)
        if (status !== 200) assert.ok(typeof answer.json.error === 'string' && typeof answer.json.code === 'string')
      }
    })
  })
}

test('behind a proxy, attempts are counted for the address that the proxy saw, not for an address that the caller claims', async () => {
  await using app = await startApp({ env: { VITRINE_TRUST_PROXY: '1' } })
  const attempt = async (claimed: string, seen: string) => {
    const headers = { origin: app.url, 'x-forwarded-for': `${claimed}, ${seen}` }
    const body = { email: 'ada@example.test', password: PASSWORD }
    return (await app.ask('POST', '/auth/sign-in/email', { body, headers })).status
  }
  const statuses: number[] = []
  // Some proxies add the port of the connection, which must not matter. So each attempt has another port.
  for (let i = 0; i < 11; i++) statuses.push(await attempt(`10.0.${i}.1`, `192.0.2.1:${40_000 + i}`))
  assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 401), 429])
  assert.equal(
    await attempt('192.0.2.1', '198.51.100.1'),
    401,
    'attempts of a caller who only claims an address are not counted for that address',
  )
})
