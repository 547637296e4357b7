// Tests the pages for people and teams in a real browser: set-up, sign-up, invitation, members, settings, keys,
// profile, security.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { PASSWORD, startApp, type TestApp } from '../support/app.ts'
import {
  accessible,
  browserOrSkip,
  consoleDir,
  eachLook,
  ready,
  shot,
  signIn,
  signInOnPage,
} from '../support/console.ts'
import { startSmtp } from '../support/mail.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { totp } from '../support/totp.ts'

test('the first person sets the service up, names a team and signs out', async (t) => {
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  await using app = await startApp({ consoleDir: await consoleDir() })
  const page = await browser.open(app)
  await eachLook(page, '/app', 'Set up Vitrine', 'setup')
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Ada')
  await page.getByRole('textbox', { name: 'Email', exact: true }).fill('ada@example.test')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account', exact: true }).click()
  await ready(page, 'Welcome')
  await eachLook(page, '/app/welcome', 'Welcome', 'welcome')
  await page.getByRole('textbox', { name: 'Team name', exact: true }).fill('Acme <b>data</b>')
  await page.getByRole('button', { name: 'Create team', exact: true }).click()
  await ready(page, 'Home')
  await page.getByRole('button', { name: 'Team: Acme <b>data</b>', exact: true }).waitFor()
  assert.equal(await page.title(), 'Home · Acme <b>data</b> · Vitrine')
  await page.getByRole('region', { name: 'Waiting for you', exact: true }).getByText('Connect a datasource').waitFor()
  browser.clean()
})

test('with mail, a sign-up is verified and a password is reset by links that lead to the console', async (t) => {
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  await using smtp = await startSmtp()
  await using app = await startApp({ consoleDir: await consoleDir(), env: { SMTP_URL: smtp.url } })
  const page = await browser.open(app)
  await page.goto('/app')
  await ready(page, 'Set up Vitrine')
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Ada')
  await page.getByRole('textbox', { name: 'Email', exact: true }).fill('ada@example.test')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account', exact: true }).click()
  await ready(page, 'Check your mail')
  const verification = pathIn(await smtp.next('ada@example.test'))
  assert.match(verification, /^\/app\/verify\?token=/)
  await eachLook(page, verification, 'Verify your address', 'verify')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Verify', exact: true }).click()
  await page.getByRole('status').getByText('Your address is verified.').waitFor()
  assert.doesNotMatch(page.url(), /token/)
  await page.getByRole('link', { name: 'Sign in', exact: true }).click()
  await ready(page, 'Sign in to Vitrine')
  await page.getByRole('link', { name: 'Forgot password?', exact: true }).click()
  await page.getByRole('textbox', { name: 'Email', exact: true }).fill('ada@example.test')
  await page.getByRole('button', { name: 'Send link', exact: true }).click()
  await page.getByRole('status').getByText('a link is on its way').waitFor()
  const reset = pathIn(await smtp.next('ada@example.test', /app\/reset/))
  await page.goto(reset)
  await page.getByLabel('New password', { exact: true }).fill('another long password')
  await accessible(page, 'new password')
  await shot(page, 'reset-new')
  await page.getByRole('button', { name: 'Set password', exact: true }).click()
  await page.getByRole('status').getByText('The new password is set.').waitFor()
  await page.getByRole('link', { name: 'Sign in', exact: true }).click()
  await page.getByRole('textbox', { name: 'Email', exact: true }).fill('ada@example.test')
  await page.getByLabel('Password', { exact: true }).fill('another long password')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await ready(page, 'Welcome')
  browser.clean()
})

function pathIn({ text }: { readonly text: string }): string {
  const link = /https?:\/\/\S+/.exec(text)?.[0] ?? ''
  return new URL(link).pathname + new URL(link).search
}

describe('with a shop', () => {
  let shop: Shop
  let app: TestApp
  before(async () => {
    shop = await openShop({ consoleDir: await consoleDir() })
    app = shop.app
    await shop.query('SELECT id, name FROM customers')
    for (let n = 0; n < 3; n++) await shop.query('SELECT email FROM customers')
  })
  after(() => shop[Symbol.asyncDispose]())

  test('a colleague who accepts an invitation joins the team', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signInOnPage(page, shop.owner.email, `/app/t/${shop.teamId}/members`)
    await ready(page, 'Members')
    await page.getByRole('button', { name: 'Invite a colleague', exact: true }).click()
    await page.getByRole('textbox', { name: 'Email', exact: true }).fill('bo@example.test')
    await page.getByRole('combobox', { name: 'Role', exact: true }).click()
    await page.getByRole('option', { name: 'Admin', exact: true }).click()
    await accessible(page, 'Invite a colleague')
    await shot(page, 'members-invite')
    await page.getByRole('button', { name: 'Send invitation', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Invitation made', exact: true })
    const link = await dialog.getByRole('textbox', { name: 'Invitation link', exact: true }).inputValue()
    assert.match(link, /\/app\/invite\/[\w-]{20,}$/)
    await accessible(page, 'Invitation made')
    await dialog.getByRole('button', { name: 'Done', exact: true }).click()
    await page.getByRole('row').filter({ hasText: 'bo@example.test' }).getByText('Invited').waitFor()

    const bo = await browser.open(app)
    await eachLook(bo, new URL(link).pathname, 'Join Shop', 'invite')
    await bo.getByRole('link', { name: 'Create account', exact: true }).click()
    await ready(bo, 'Create account')
    assert.equal(await bo.getByRole('textbox', { name: 'Email', exact: true }).inputValue(), 'bo@example.test')
    await bo.getByRole('textbox', { name: 'Name', exact: true }).fill('Bo')
    await bo.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await bo.getByRole('button', { name: 'Create account', exact: true }).click()
    await ready(bo, 'Join Shop')
    await bo.getByRole('button', { name: 'Accept invitation', exact: true }).click()
    await ready(bo, 'Playground')
    await bo.goto(new URL(link).pathname)
    await ready(bo, 'Nothing here')

    await page.reload()
    await ready(page, 'Members')
    await page.getByRole('combobox', { name: 'Role of bo@example.test', exact: true }).click()
    await page.getByRole('option', { name: 'Member', exact: true }).click()
    await page.getByRole('status').getByText('bo@example.test is member now').waitFor()
    await bo.goto(`/app/t/${shop.teamId}/settings`)
    await ready(bo, 'Team')
    await bo.getByRole('note').getByText('You need the role admin for this.').waitFor()
    await eachLook(bo, `/app/t/${shop.teamId}/settings`, 'Team', 'team-settings-forbidden')
    await page.getByRole('button', { name: 'Remove bo@example.test', exact: true }).click()
    await accessible(page, 'Remove member')
    await page.getByRole('alertdialog').getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByRole('status').getByText('Removed bo@example.test').waitFor()
    browser.clean(/status of (401|403|404)/)
  })

  test('an invitation for another address says whom it is for', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const cy = await app.person('Cy')
    const { inviteToken } = await shop.owner.must('POST', `/teams/${shop.teamId}/members`, {
      email: 'di@example.test',
      role: 'MEMBER',
    })
    const page = await browser.open(app)
    await page.goto(`/app/sign-in?next=${encodeURIComponent(`/app/invite/${inviteToken}`)}`)
    await page.getByRole('textbox', { name: 'Email', exact: true }).fill(cy.email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await ready(page, 'Join Shop')
    await page.getByRole('alert').getByText('di@example.test').waitFor()
    browser.clean()
  })

  test('several team settings are saved by one button, and the problem of a refused setting is shown', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, shop.owner.email, `/app/t/${shop.teamId}/settings`)
    await ready(page, 'Team')
    await page.getByRole('spinbutton', { name: 'Row cap', exact: true }).fill('500')
    await page.getByRole('spinbutton', { name: 'Timeout in seconds', exact: true }).fill('20')
    await page.getByRole('checkbox', { name: 'Redact literals', exact: true }).check()
    await page.getByRole('button', { name: 'Save settings', exact: true }).click()
    await page.getByRole('status').getByText('Saved').waitFor()
    const { settings } = await shop.owner.must('GET', `/teams/${shop.teamId}`)
    assert.deepEqual([settings.rowCap, settings.statementTimeoutMs, settings.auditRedactLiterals], [500, 20_000, true])
    await page.getByRole('textbox', { name: 'Slug', exact: true }).fill('Not A Slug')
    await page.getByRole('button', { name: 'Save settings', exact: true }).click()
    await page.getByRole('alert').getByText('lower-case letters').waitFor()
    await page.getByRole('button', { name: 'Discard', exact: true }).click()
    await page.getByRole('button', { name: 'Delete team', exact: true }).click()
    const dialog = page.getByRole('alertdialog')
    assert.equal(await dialog.getByRole('button', { name: 'Delete team', exact: true }).isDisabled(), true)
    await accessible(page, 'Delete team')
    browser.clean(/status of 400/)
  })

  test('the dialog of a new key stays open until the person confirms that the key is stored, and a key is renamed, rotated and revoked', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, shop.owner.email, '/app/settings/keys')
    await ready(page, 'API keys')
    await page.getByRole('button', { name: 'Create key', exact: true }).first().click()
    const order = page.getByRole('dialog', { name: 'New API key', exact: true })
    await order.getByRole('textbox', { name: 'Name', exact: true }).fill('nightly report')
    await accessible(page, 'New API key')
    await shot(page, 'keys-new')
    await order.getByRole('button', { name: 'Create key', exact: true }).click()
    const fresh = page.getByRole('dialog', { name: 'Copy your key now', exact: true })
    const key = await fresh.getByRole('textbox', { name: 'API key', exact: true }).inputValue()
    assert.match(key, /^sk_live_[0-9A-Za-z]{38}$/)
    await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    for (const name of ['Python', 'TypeScript', 'MCP', 'curl'])
      await fresh.getByRole('tab', { name, exact: true }).click()
    await accessible(page, 'Copy your key now')
    await shot(page, 'keys-fresh')
    assert.equal((await app.ask('GET', '/teams', { token: key })).status, 200)
    assert.equal(await fresh.getByRole('button', { name: 'Done', exact: true }).isDisabled(), true)
    await fresh.getByRole('checkbox', { name: 'I have stored this key', exact: true }).check()
    await fresh.getByRole('button', { name: 'Done', exact: true }).click()
    await page.getByRole('button', { name: 'Actions for nightly report', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Rename', exact: true }).click()
    const rename = page.getByRole('dialog', { name: 'Rename key', exact: true })
    await rename.getByRole('textbox', { name: 'Name', exact: true }).fill('weekly report')
    await rename.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Actions for weekly report', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Rotate', exact: true }).click()
    await page.getByRole('button', { name: 'Rotate key', exact: true }).click()
    await fresh.getByRole('checkbox', { name: 'I have stored this key', exact: true }).check()
    await fresh.getByRole('button', { name: 'Done', exact: true }).click()
    await page.getByRole('button', { name: 'Actions for weekly report', exact: true }).first().click()
    await page.getByRole('menuitem', { name: 'Revoke', exact: true }).click()
    const revoke = page.getByRole('alertdialog', { name: 'Revoke key', exact: true })
    await accessible(page, 'Revoke key')
    await revoke.getByRole('textbox').fill('weekly report')
    await revoke.getByRole('button', { name: 'Revoke key', exact: true }).click()
    await revoke.waitFor({ state: 'detached' })
    browser.clean()
  })

  test('a second factor is turned on and then required', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const eve = await app.person('Eve')
    await app.team(eve, 'Evergreen')
    const page = await browser.open(app)
    await signInOnPage(page, eve.email, '/app/settings/security')
    await ready(page, 'Security')
    await page.getByRole('row').filter({ hasText: 'This session' }).waitFor()
    await page.getByRole('button', { name: 'Turn on two-factor', exact: true }).click()
    await page.getByRole('dialog').getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    const uri = await page.getByRole('link', { name: 'open it on this device' }).getAttribute('href')
    await accessible(page, 'authenticator')
    await page.getByRole('textbox', { name: 'Code', exact: true }).fill(totp(uri ?? ''))
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    const codes = await page.getByRole('group', { name: 'backup codes', exact: true }).innerText()
    await page.getByRole('checkbox', { name: 'I have stored these codes', exact: true }).check()
    await page.getByRole('button', { name: 'Done', exact: true }).click()
    await page.getByRole('button', { name: 'Turn off two-factor', exact: true }).waitFor()
    const again = await browser.open(app)
    await again.goto('/app/settings/profile')
    await again.getByRole('textbox', { name: 'Email', exact: true }).fill(eve.email)
    await again.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await again.getByRole('button', { name: 'Sign in', exact: true }).click()
    await ready(again, 'Enter your code')
    await accessible(again, 'two-factor')
    await shot(again, 'two-factor')
    await again.getByRole('button', { name: 'Use a backup code', exact: true }).click()
    await again.getByRole('textbox', { name: 'Code', exact: true }).fill(codes.split('\n')[0] ?? '')
    await again.getByRole('button', { name: 'Verify', exact: true }).click()
    await ready(again, 'Profile')
    browser.clean()
  })

  test('the pages for people and teams are accessible in both themes and at both widths', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, shop.owner.email)
    const at = `/app/t/${shop.teamId}`
    await eachLook(page, at, 'Home', 'home')
    await eachLook(page, `${at}/members`, 'Members', 'members')
    await eachLook(page, `${at}/settings`, 'Team', 'team-settings')
    await eachLook(page, `${at}/keys`, 'API keys of this team', 'team-keys')
    await page.getByText('everything its owner reaches').first().waitFor()
    await eachLook(page, '/app/settings/keys', 'API keys', 'keys')
    await eachLook(page, '/app/settings/profile', 'Profile', 'profile')
    await eachLook(page, '/app/settings/security', 'Security', 'security')
    browser.clean()
  })

  test('without a session, sign-up and reset are accessible in both themes and at both widths', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await eachLook(page, '/app/sign-up', 'Create account', 'sign-up')
    await eachLook(page, '/app/reset', 'Reset password', 'reset')
    await page.getByRole('textbox', { name: 'Email', exact: true }).fill('nobody@example.test')
    await page.getByRole('button', { name: 'Send link', exact: true }).click()
    await page.getByRole('status').getByText('a link is on its way').waitFor()
    browser.clean()
  })
})
