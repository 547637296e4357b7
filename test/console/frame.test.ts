// Tests what all pages of the console share: navigation, palette, keyboard shortcuts, sessions that end, other tabs.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { PASSWORD, startApp, type Person, type TestApp } from '../support/app.ts'
import {
  accessible,
  browserOrSkip,
  consoleDir,
  eachLook,
  endSessionAt,
  NARROW,
  pressQuickly,
  ready,
  shot,
  signInOnPage,
} from '../support/console.ts'

describe('the frame', () => {
  let app: TestApp
  let ada: Person
  before(async () => {
    app = await startApp({ consoleDir: await consoleDir() })
    ada = await app.person('Ada')
    await app.team(ada, 'Acme')
  })
  after(() => app[Symbol.asyncDispose]())

  const places = ['Home', 'Datasources', 'Playground', 'Activity', 'Members', 'Settings', 'API keys']

  test('a deep link asks for a sign-in without sending a request that fails, and then opens its page', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await page.goto('/app/t/acme/members')
    await ready(page, 'Sign in to Vitrine')
    assert.match(page.url(), /\/app\/sign-in\?next=%2Fapp%2Ft%2Facme%2Fmembers$/)
    await eachLook(page, '/app/sign-in?next=%2Fapp%2Ft%2Facme%2Fmembers', 'Sign in to Vitrine', 'sign-in')
    await page.getByLabel('Email', { exact: true }).fill(ada.email)
    await page.getByLabel('Password', { exact: true }).fill('wrong password')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await ready(page, 'Members')
    assert.match(page.url(), /\/app\/t\/acme\/members$/)
    assert.equal(await page.title(), 'Members · Acme · Vitrine')
    browser.clean(/status of 401 .*sign-in\/email/)
  })

  test('every item of the navigation is a link, and at a width of 390 px the button More shows further items', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signInOnPage(page, ada.email)
    const nav = page.getByRole('navigation', { name: 'Main', exact: true })
    const headings: Readonly<Record<string, string>> = { Settings: 'Team' }
    for (const name of places) {
      await nav.getByRole('link', { name, exact: true }).click()
      await ready(page, headings[name] ?? name)
      assert.equal(await nav.getByRole('link', { name, exact: true }).getAttribute('aria-current'), 'page')
    }
    await page.getByRole('button', { name: 'Team: Acme', exact: true }).waitFor()
    await accessible(page, 'wide')
    await page.setViewportSize(NARROW)
    await nav.getByRole('button', { name: 'More', exact: true }).click()
    await accessible(page, 'narrow, More is open')
    await shot(page, 'frame-more-narrow')
    await nav.getByRole('link', { name: 'Members', exact: true }).click()
    await ready(page, 'Members')
    await page.goto('/app/no/such/page')
    await ready(page, 'Nothing here')
    await page.goto('/app/t/nobodys-team/members')
    await ready(page, 'Nothing here')
    await accessible(page, 'nothing here')
    browser.clean()
  })

  test('the palette and the keyboard shortcuts open pages, and the shortcuts with G can be switched off', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signInOnPage(page, ada.email)
    await ready(page, 'Home')
    await page.keyboard.press('Control+k')
    const find = page.getByRole('combobox', { name: 'Search or jump to', exact: true })
    await find.fill('memb')
    await page.getByRole('dialog', { name: 'Command palette' }).waitFor()
    await accessible(page, 'palette')
    await shot(page, 'palette')
    await page.getByRole('option', { name: 'Members', exact: true }).waitFor()
    await page.keyboard.press('Enter')
    await ready(page, 'Members')
    await pressQuickly(page, 'gd')
    await ready(page, 'Datasources')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys', exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.evaluate(() => localStorage.setItem('vitrine.shortcuts', 'off'))
    await page.reload()
    await ready(page, 'Datasources')
    await pressQuickly(page, 'gm')
    await page.keyboard.press('Control+k')
    await find.waitFor()
    assert.match(page.url(), /\/datasources$/)
    browser.clean()
  })

  test('when the session ends, a dialog over the page asks for the password', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const bo = await app.person('Bo')
    await app.team(bo, 'Bolt')
    const page = await browser.open(app)
    await signInOnPage(page, bo.email)
    await ready(page, 'Home')
    await endSessionAt(page, app, (request) => request.url().endsWith('/members') && request.resourceType() === 'fetch')
    await page.getByRole('link', { name: 'Members', exact: true }).click()
    await page.getByRole('alertdialog', { name: 'Sign in again', exact: true }).waitFor()
    await accessible(page, 'sign in again')
    await shot(page, 'sign-in-again')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('alertdialog').waitFor({ state: 'detached' })
    await page.getByRole('row').filter({ hasText: bo.email }).waitFor()
    browser.clean(/status of 401/)
  })

  test('if the session ends while a dialog is open, the text typed into the dialog is kept', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const cy = await app.person('Cy')
    const teamId = await app.team(cy, 'Cyan')
    const page = await browser.open(app)
    await signInOnPage(page, cy.email, `/app/t/${teamId}/members`)
    await ready(page, 'Members')
    await page.getByRole('button', { name: 'Invite a colleague', exact: true }).click()
    await page.getByRole('textbox', { name: 'Email', exact: true }).fill('typed@example.test')
    await endSessionAt(page, app, (request) => request.method() === 'POST' && request.url().endsWith('/members'))
    await page.getByRole('button', { name: 'Send invitation', exact: true }).click()
    const ask = page.getByRole('alertdialog', { name: 'Sign in again', exact: true })
    await ask.getByLabel('Password', { exact: true }).click()
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    const made = page.getByRole('dialog', { name: 'Invitation made', exact: true })
    await made.getByText('typed@example.test').waitFor()
    browser.clean(/status of 401/)
  })

  test('a sign-out in one tab signs out every tab, even if localStorage is disabled', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await page.context().addInitScript(`Object.defineProperty(window, 'localStorage', {
      get() { throw new DOMException('The operation is insecure.', 'SecurityError') },
    })`)
    await signInOnPage(page, ada.email)
    await ready(page, 'Home')
    const other = await browser.watch(page.context(), app)
    await other.goto('/app/t/acme/members')
    await ready(other, 'Members')
    await page.getByRole('button', { name: 'Account', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
    await ready(page, 'Sign in to Vitrine')
    await ready(other, 'Sign in to Vitrine')
    browser.clean()
  })

  test('a line says that the service does not answer, and disappears when the service is back', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signInOnPage(page, ada.email)
    await ready(page, 'Home')
    await page.route(/^(?!.*\/app\/).*/, (route) => route.abort())
    await page.getByRole('link', { name: 'Members', exact: true }).click()
    await page.getByText('The service does not answer. Your input is kept.').first().waitFor()
    await page.unroute(/^(?!.*\/app\/).*/)
    await page.getByText('The service does not answer. Your input is kept.').first().waitFor({ state: 'detached' })
    browser.clean(/ERR_FAILED/)
  })
})
