// The service itself renders the pages of an OAuth authorization, without the console. A person signs in with a second
// factor, chooses what the agent may do, and returns to the agent.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, startApp, type Person, type TestApp } from '../support/app.ts'
import { accessible, browserOrSkip, consoleDir, ready } from '../support/console.ts'
import { authorizePath, overHttp, pkce, REDIRECT, registered } from '../support/oauth.ts'
import { stopDates, totp } from '../support/totp.ts'

/** Turns on the second factor. Returns a backup code. */
async function secondFactor(app: TestApp, person: Person): Promise<string> {
  const headers = { cookie: person.cookie, origin: app.url }
  const enabled = await app.must('POST', '/auth/two-factor/enable', { body: { password: PASSWORD }, headers })
  await app.must('POST', '/auth/two-factor/verify-totp', { body: { code: totp(enabled.totpURI) }, headers })
  return enabled.backupCodes[0]
}

test('a person signs in with a second factor, chooses what the agent may do, and returns to the agent', async (t) => {
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  using _dates = stopDates()
  await using app = await startApp({ consoleDir: await consoleDir() })
  const ada = await app.person('Ada')
  const teams = { alpha: await app.team(ada, 'Alpha'), beta: await app.team(ada, 'Beta') }
  const shop = { type: 'POSTGRES', connectionMode: 'DIRECT', host: '127.0.0.1', port: 1, database: 'shop' }
  const login = { username: 'reader', password: 'pw', sslMode: 'disable', accessMode: 'ROLE_BASED', minRole: 'MEMBER' }
  const add = async (team: string, name: string) =>
    (await ada.must('POST', `/teams/${team}/datasources`, { name, ...shop, ...login })).id
  const one = await add(teams.alpha, 'One')
  await add(teams.alpha, 'Two')
  await add(teams.beta, 'Three')
  const code = await secondFactor(app, ada)
  const service = overHttp(app)
  const client = await registered(service, { client_name: 'Agent <b>' })
  const path = authorizePath(service, client, pkce().challenge)

  const page = await browser.open(app)
  await page.context().route(`${REDIRECT}*`, (route) => route.fulfill({ body: 'back at the agent' }))
  /** Turning on the second factor has ended all other sessions. So this uses the session of the browser. */
  const grantsOf = async () => {
    const cookie = (await page.context().cookies(`${app.url}/auth`))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
    const { token } = await app.must('GET', '/auth/token', { headers: { cookie } })
    return await app.must('GET', '/users/me/grants', { token })
  }
  await page.goto(path)
  await accessible(page, 'the page to sign in')
  await page.getByLabel('E-mail').fill(ada.email)
  await page.getByLabel('Password').fill('not the password')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('The e-mail address or the password is wrong.').waitFor()
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByLabel(/backup code/).fill('wrong')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('The code is wrong or was used before.').waitFor()
  await page.getByLabel(/backup code/).fill(code)
  await page.getByRole('button', { name: 'Continue' }).click()

  await page.getByRole('heading', { name: '127.0.0.1' }).waitFor()
  await accessible(page, 'the page to allow')
  await page.getByText('Agent <b>', { exact: true }).waitFor()
  await page.getByLabel('See your name and e-mail address').uncheck()
  await page.getByLabel('Beta').uncheck()
  assert.ok(await page.getByLabel('Three').isDisabled())
  await page.getByLabel('Two', { exact: true }).uncheck()
  await page.getByLabel('For how long?').selectOption('7')
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.getByText('back at the agent').waitFor()
  const { searchParams: params } = new URL(page.url())
  assert.ok(params.get('code'))
  assert.deepEqual([params.get('state'), params.get('iss')], ['state-1', app.url])
  const [grant] = await grantsOf()
  assert.deepEqual(
    [grant.scopes, grant.teamIds, grant.datasourceIds],
    [['data:schema', 'data:read'], [teams.alpha], [one]],
  )
  assert.equal(Date.parse(grant.expiresAt) - Date.parse(grant.createdAt), 7 * 86_400_000)

  // The page asks again, although the person is signed in and has a grant. If the person refuses, the agent gets no
  // further grant.
  await page.goto(path)
  await page.getByRole('button', { name: 'Refuse' }).click()
  await page.getByText('back at the agent').waitFor()
  assert.equal(new URL(page.url()).searchParams.get('error'), 'access_denied')
  assert.equal((await grantsOf()).length, 1)

  await page.goto(path)
  await page.getByRole('button', { name: 'Use another account' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.goto(path.replace(/redirect_uri=[^&]*/, 'redirect_uri=https%3A%2F%2Fevil.example'))
  await page.getByRole('heading', { name: 'This agent cannot be connected' }).waitFor()
  await accessible(page, 'the page of a refusal')

  // The link leads to the sign-in of the console. From there, the browser may return to the consent page, but to no
  // other page outside of the console.
  await page.context().clearCookies()
  await page.goto(path)
  await page.getByRole('link', { name: 'Sign in with a passkey or another account' }).click()
  await ready(page, 'Sign in to Vitrine')
  const bo = await app.person('Bo')
  await page.getByLabel('Email', { exact: true }).fill(bo.email)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByText(`You are signed in as Bo (${bo.email}).`).waitFor()
  const consent = page.url().slice(app.url.length)
  await page.goto(`/app/sign-in?next=${encodeURIComponent(consent)}`)
  await page.getByText('You are signed in as Bo').waitFor()
  for (const next of [
    'https://evil.example/auth/consent?x',
    '//evil.example/auth/consent?x',
    '/\\evil.example/auth/consent?x',
    '/auth/consent',
    '/auth/consent/../token?x',
    '/auth/consent?x\n//evil.example',
    '/auth/sign-out?x',
    '/auth/oauth2/authorize?x',
  ]) {
    await page.goto(`/app/sign-in?next=${encodeURIComponent(next)}`)
    await page.waitForURL(/\/app\/(?!sign-in)/)
    assert.match(page.url(), new RegExp(`^${app.url}/app/`), next)
  }
  // The browser reports an error for the wrong password, the wrong code, the refused request, and the agent's own
  // address.
  browser.clean(/status of 40[01]|request to http:\/\/127\.0\.0\.1:33418\//)
})
