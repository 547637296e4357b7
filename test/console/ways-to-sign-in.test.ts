// Tests passkeys and sign-in providers in a real browser. Chromium has a virtual authenticator, and an OpenID Connect
// provider runs in this process.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { PASSWORD, startApp, type TestApp } from '../support/app.ts'
import {
  accessible,
  browserOrSkip,
  button,
  consoleDir,
  eachLook,
  ready,
  shot,
  type TestBrowser,
} from '../support/console.ts'
import { startOidc } from '../support/oidc.ts'
import { stopDates, totp } from '../support/totp.ts'

/** Passkeys work only under a host name. */
const local = (app: TestApp) => ({ url: app.url.replace('127.0.0.1', 'localhost') })

/** The virtual authenticator confirms each request immediately, as if the person touched the sensor. */
async function withAuthenticator(page: Page) {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return {
    verified: (isUserVerified: boolean) => cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
    count: async () => (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials.length,
  }
}

async function openLocal(browser: TestBrowser, app: TestApp): Promise<Page> {
  const other = local(app)
  const page = await browser.open(app)
  const { context } = { context: page.context() }
  const tab = await browser.watch(context, other)
  await page.close()
  return tab
}

async function fillPassword(page: Page, email: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Email', exact: true }).fill(email)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await button(page, 'Sign in').click()
}

test('a passkey is added, named, used without a password, and removed', async (t) => {
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  await using app = await startApp({ consoleDir: await consoleDir() })
  const ada = await app.person('Ada')
  await app.team(ada, 'Acme')
  const { url } = local(app)
  const page = await openLocal(browser, app)
  const device = await withAuthenticator(page)
  await page.goto(`${url}/app/settings/security`)
  await fillPassword(page, ada.email)
  await ready(page, 'Security')
  await button(page, 'Add passkey').click()
  await page.getByRole('status').getByText('The passkey is added').waitFor()
  assert.equal(await device.count(), 1)
  await button(page, 'Rename Chrome on Linux').click()
  await page
    .getByRole('dialog', { name: 'Rename passkey', exact: true })
    .getByRole('textbox')
    .fill('Ada’s <b>laptop</b>')
  await accessible(page, 'Rename passkey')
  await shot(page, 'security-passkey-rename')
  await button(page, 'Save').click()
  await page.getByRole('row').filter({ hasText: 'Ada’s <b>laptop</b>' }).waitFor()
  await button(page, 'Add passkey').click()
  await page.getByRole('alert').getByText('This device already has a passkey of your account.').waitFor()
  await eachLook(page, `${url}/app/settings/security`, 'Security', 'security-passkeys')

  await button(page, 'Account').click()
  await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
  await ready(page, 'Sign in to Vitrine')
  await device.verified(false)
  await button(page, 'Continue with passkey').click()
  await page.getByRole('alert').getByText('No passkey was used.').waitFor()
  await device.verified(true)
  await button(page, 'Continue with passkey').click()
  await ready(page, 'Home')

  await page.goto(`${url}/app/settings/security`)
  await ready(page, 'Security')
  await button(page, 'Remove Ada’s <b>laptop</b>').click()
  const dialog = page.getByRole('alertdialog', { name: 'Remove passkey', exact: true })
  await accessible(page, 'Remove passkey')
  await shot(page, 'security-passkey-remove')
  await dialog.getByRole('button', { name: 'Cancel', exact: true }).click()
  await page.getByRole('row').filter({ hasText: 'laptop' }).waitFor()
  await button(page, 'Remove Ada’s <b>laptop</b>').click()
  await dialog.getByRole('button', { name: 'Remove passkey', exact: true }).click()
  await page.getByText('No passkey yet.').waitFor()
  await button(page, 'Account').click()
  await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
  await button(page, 'Continue with passkey').click()
  await page.getByRole('alert').getByText('This passkey is not known here. It may have been removed.').waitFor()
  browser.clean(/status of (401|409)/)
})

test('if the address of the service is an IP address, the page says under which address passkeys work', async (t) => {
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  await using app = await startApp({ consoleDir: await consoleDir() })
  const ada = await app.person('Ada')
  await app.team(ada, 'Acme')
  const page = await browser.open(app)
  await page.goto('/app/settings/security')
  assert.equal(await button(page, 'Continue with passkey').count(), 0)
  await fillPassword(page, ada.email)
  await ready(page, 'Security')
  assert.equal(await button(page, 'Add passkey').isDisabled(), true)
  const there = await page.getByRole('link', { name: 'localhost', exact: true }).getAttribute('href')
  assert.equal(there, `${local(app).url}/app/settings/security`)
  browser.clean()
})

test('a provider signs a person in, a second factor is still required, a provider is connected and disconnected, and failures are explained', async (t) => {
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  using _dates = stopDates()
  await using oidc = await startOidc()
  await using app = await startApp({
    consoleDir: await consoleDir(),
    env: { ...oidc.env, VITRINE_OIDC_NAME: 'Acme ID' },
  })
  oidc.people.set('1', { email: 'ada@example.test', email_verified: true, name: 'Ada' })
  const page = await browser.open(app)
  await eachLook(page, '/app/setup', 'Set up Vitrine', 'setup-provider')
  oidc.next = null
  await button(page, 'Continue with Acme ID').click()
  await page.getByRole('alert').getByText('The sign-in at Acme ID was cancelled.').waitFor()
  oidc.next = '1'
  await button(page, 'Continue with Acme ID').click()
  await ready(page, 'Welcome')
  await page.getByRole('textbox', { name: 'Team name', exact: true }).fill('Acme')
  await button(page, 'Create team').click()
  await ready(page, 'Home')

  await page.goto('/app/settings/security')
  await ready(page, 'Security')
  await page.getByText('Your account has no password: you sign in another way.').waitFor()
  await page.getByRole('row').filter({ hasText: 'ada@example.test' }).waitFor()
  await eachLook(page, '/app/settings/security', 'Security', 'security-provider')
  await button(page, 'Disconnect Acme ID').click()
  const dialog = page.getByRole('alertdialog', { name: 'Disconnect account', exact: true })
  await accessible(page, 'Disconnect account')
  await dialog.getByRole('button', { name: 'Disconnect', exact: true }).click()
  await dialog.getByRole('alert').getByText('This is the last way to sign in').waitFor()
  await dialog.getByRole('button', { name: 'Cancel', exact: true }).click()

  // This person has a password and a second factor. A sign-in with the connected provider still asks for the second
  // factor.
  const eve = await app.person('Eve')
  await app.team(eve, 'Evergreen')
  oidc.people.set('2', { email: 'eve@elsewhere.test', email_verified: true })
  const own = await browser.open(app)
  await own.goto('/app/settings/security')
  await fillPassword(own, eve.email)
  await ready(own, 'Security')
  await button(own, 'Turn on two-factor').click()
  await own.getByRole('dialog').getByLabel('Password', { exact: true }).fill(PASSWORD)
  await button(own, 'Continue').click()
  await own.getByRole('img', { name: 'QR code of the secret', exact: true }).waitFor()
  await accessible(own, 'QR code')
  await shot(own, 'security-qr')
  const uri = (await own.getByRole('link', { name: 'open it on this device' }).getAttribute('href')) ?? ''
  await own.getByRole('textbox', { name: 'Code', exact: true }).fill(totp(uri, -1))
  await button(own, 'Verify').click()
  await own.getByRole('checkbox', { name: 'I have stored these codes', exact: true }).check()
  await button(own, 'Done').click()
  oidc.next = '1'
  await button(own, 'Connect Acme ID').click()
  await own.getByRole('alert').getByText('This account at Acme ID is connected to another account here.').waitFor()
  oidc.next = '2'
  await button(own, 'Connect Acme ID').click()
  await own.getByRole('status').getByText('Acme ID is connected.').waitFor()
  await accessible(own, 'connected')
  await button(own, 'Account').click()
  await own.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
  await own.goto('/app/sign-in?next=/app/settings/profile')
  await ready(own, 'Sign in to Vitrine')
  await button(own, 'Continue with Acme ID').click()
  await ready(own, 'Enter your code')
  await own.getByRole('textbox', { name: 'Code', exact: true }).fill(totp(uri))
  await button(own, 'Verify').click()
  await ready(own, 'Profile')
  await own.goto('/app/settings/security')
  await button(own, 'Disconnect Acme ID').click()
  await own.getByRole('alertdialog').getByRole('button', { name: 'Disconnect', exact: true }).click()
  await button(own, 'Connect Acme ID').waitFor()

  const stranger = await browser.open(app)
  oidc.people.set('3', { email: eve.email, email_verified: true })
  oidc.next = '3'
  await stranger.goto('/app/sign-in')
  await ready(stranger, 'Sign in to Vitrine')
  await button(stranger, 'Continue with Acme ID').click()
  await stranger.getByRole('alert').getByText('the address was never verified here').waitFor()
  await eachLook(
    stranger,
    '/app/sign-in?failed=ACCOUNT_UNVERIFIED&provider=oidc',
    'Sign in to Vitrine',
    'sign-in-failed',
  )
  await stranger.goto('/app/sign-in?failed=Call+0800+12345&provider=oidc')
  await ready(stranger, 'Sign in to Vitrine')
  assert.equal(await stranger.getByRole('alert').count(), 0)
  const { origin } = new URL(oidc.issuer)
  browser.clean(new RegExp(`status of (401|409)|request to ${origin}`))
})
