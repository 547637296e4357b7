// Tests the list of datasources and the exposure in a real browser, on a real PostgreSQL.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Person, TestApp } from '../support/app.ts'
import {
  accessible,
  browserOrSkip,
  button,
  consoleDir,
  eachLook,
  NARROW,
  pressQuickly,
  ready,
  said,
  shot,
  signIn,
  WIDE,
} from '../support/console.ts'
import { openShop, type Shop } from '../support/shop.ts'

/** This name is markup, and contains a character that reverses the direction of the text after it. */
const ODD = '<img src=x onerror=alert(1)>\u202egnp'

describe('datasources and their exposure', () => {
  let shop: Shop
  let app: TestApp
  let owner: Person
  let exposure: string
  before(async () => {
    shop = await openShop({ consoleDir: await consoleDir() })
    ;({ app, owner } = shop)
    await shop.postgres.query(
      shop.database,
      `CREATE TABLE "${ODD}" (id int, "${ODD}" text); CREATE TABLE odd (id int, whole customers); ANALYZE`,
    )
    await owner.must('POST', `${shop.at}/introspect`)
    exposure = `/app/t/shop/datasources/${shop.datasourceId}/exposure`
  })
  after(() => shop[Symbol.asyncDispose]())

  const saved = () => owner.must('GET', `${shop.at}/exposure`)
  const row = (page: Page, name: string | RegExp) =>
    page.getByRole('tree', { name: 'Tables and columns', exact: true }).getByRole('treeitem', { name })
  const isChecked = (page: Page, name: RegExp, checked: string) =>
    row(page, name)
      .and(page.locator(`[aria-checked=${checked}]`))
      .waitFor()

  test('the list shows a datasource, and its menu disables it, enables it and asks before a deletion', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, '/app/t/shop/datasources')
    await ready(page, 'Datasources')
    const table = page.getByRole('table', { name: 'Datasources', exact: true })
    await table
      .getByRole('row', { name: /shop/ })
      .getByText(/3 of \d+ tables/)
      .waitFor()
    await eachLook(page, '/app/t/shop/datasources', 'Datasources', 'datasources')
    await button(page, 'Actions for shop').click()
    await accessible(page, 'the menu of actions')
    await page.getByRole('menuitem', { name: 'Disable', exact: true }).click()
    await table.getByText('Disabled', { exact: true }).waitFor()
    await button(page, 'Actions for shop').click()
    await page.getByRole('menuitem', { name: 'Enable', exact: true }).click()
    await table.getByText('Pending', { exact: true }).waitFor()
    await button(page, 'Actions for shop').click()
    await page.getByRole('menuitem', { name: 'Delete', exact: true }).click()
    const ask = page.getByRole('alertdialog', { name: 'Delete shop', exact: true })
    assert.equal(await ask.getByRole('button', { name: 'Delete datasource', exact: true }).isDisabled(), true)
    await ask.getByRole('textbox', { name: 'Type shop to confirm', exact: true }).fill('shop')
    assert.equal(await ask.getByRole('button', { name: 'Delete datasource', exact: true }).isDisabled(), false)
    await accessible(page, 'the dialog before a deletion')
    await shot(page, 'datasource-delete')
    await page.keyboard.press('Escape')
    await table.getByRole('link', { name: 'shop', exact: true }).click()
    await ready(page, 'Exposure')
    browser.clean()
  })

  test('a team without a datasource sees what to do', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const ada = await app.person('Ada')
    await app.team(ada, 'Void')
    const page = await browser.open(app)
    await signIn(page, ada.email, '/app/t/void/datasources')
    await page.getByRole('heading', { name: 'No datasource yet', exact: true }).waitFor()
    await eachLook(page, '/app/t/void/datasources', 'Datasources', 'datasources-empty')
    await page.getByRole('link', { name: 'Connect a datasource', exact: true }).waitFor()
    browser.clean()
  })

  test('in the exposure, columns are ticked, reviewed with their impact, and saved', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    for (let n = 0; n < 2; n++) assert.equal((await shop.query('SELECT email FROM customers')).status, 403)
    const page = await browser.open(app)
    await signIn(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await eachLook(page, exposure, 'Exposure', 'exposure')
    await isChecked(page, /^public/, 'mixed')
    await page.getByRole('tree').focus()
    await pressQuickly(page, 'cust')
    await page.keyboard.press('ArrowRight')
    await row(page, /^email text/)
      .getByText(/looks personal/)
      .waitFor()
    assert.equal(await row(page, /^customers/).getAttribute('aria-expanded'), 'true')
    await row(page, /^email text/).click()
    await isChecked(page, /^email text/, 'true')
    await isChecked(page, /^customers/, 'true')
    await page.getByText(/^After a save, agents see 3 of/).waitFor()
    const bar = page.getByRole('region', { name: 'Unsaved changes', exact: true })
    await bar.getByText('1 column added').waitFor()
    await bar.getByText(/2 refused queries would pass/).waitFor()
    await accessible(page, 'unsaved changes')
    await shot(page, 'exposure-unsaved')
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize(NARROW)
    await accessible(page, 'unsaved changes, narrow and dark')
    await shot(page, 'exposure-unsaved-narrow-dark')
    await page.setViewportSize(WIDE)
    await page.emulateMedia({ colorScheme: 'light' })

    await page.reload()
    await ready(page, 'Exposure')
    await page.getByText('Restore unsaved changes?', { exact: true }).waitFor()
    await shot(page, 'exposure-restore')
    await button(page, 'Restore changes').click()
    await bar.getByText('1 column added').waitFor()

    await page.keyboard.press('Control+s')
    const review = page.getByRole('dialog', { name: 'Review changes', exact: true })
    await review.getByRole('list', { name: 'Added', exact: true }).getByText('public.customers.email').waitFor()
    await review
      .getByRole('region', { name: 'Impact', exact: true })
      .getByText(/2 refused queries would pass/)
      .waitFor()
    await review.getByRole('button', { name: 'See them', exact: true }).click()
    await review.getByText('SELECT email FROM customers').first().waitFor()
    await review.getByRole('textbox', { name: 'Note', exact: true }).fill('for the newsletter')
    await accessible(page, 'review')
    await shot(page, 'exposure-review')
    await review.getByRole('button', { name: 'Save version 2', exact: true }).click()
    await said(page, 'Saved as version 2')
    await bar.waitFor({ state: 'detached' })
    await page.getByText(/^Agents see 3 of/).waitFor()
    assert.equal((await shop.query('SELECT email FROM customers')).status, 200)
    assert.equal((await saved()).note, 'for the newsletter')
    await page.reload()
    await ready(page, 'Exposure')
    assert.equal(await page.getByText('Restore unsaved changes?').count(), 0)
    browser.clean()
  })

  test('names from a database are shown as text, and filters find them', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await page.keyboard.press('/')
    await page.keyboard.type('<img')
    await row(page, /^<img src=x onerror=alert\(1\)>/)
      .first()
      .waitFor()
    await accessible(page, 'an odd name')
    await shot(page, 'exposure-odd-name')
    await page.getByRole('searchbox', { name: 'Filter tables and columns', exact: true }).fill('salary')
    await row(page, /^salary/).waitFor()
    assert.equal(await row(page, /^note/).count(), 0)
    await page.getByRole('searchbox').fill('')
    const show = page.getByRole('group', { name: 'Show', exact: true })
    for (const name of ['Exposed', 'Hidden', 'Looks personal', 'Wanted', 'New', 'All']) {
      await show.getByRole('button', { name, exact: true }).click()
      assert.equal(await show.getByRole('button', { name, exact: true }).getAttribute('aria-pressed'), 'true')
    }
    await show.getByRole('button', { name: 'Hidden', exact: true }).click()
    await row(page, /^payroll/).waitFor()
    assert.equal(await row(page, /^orders/).count(), 0)
    await show.getByRole('button', { name: 'All', exact: true }).click()
    await page.getByRole('searchbox').fill('whole')
    await row(page, /^whole/)
      .getByText(/cannot be exposed/)
      .waitFor()
    assert.equal(await row(page, /^whole/).getAttribute('aria-disabled'), 'true')
    browser.clean()
  })

  test('many columns are ticked by a pattern, and the unsaved change is discarded', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await button(page, 'Tick matching').click()
    const bulk = page.getByRole('dialog', { name: 'Tick matching', exact: true })
    await bulk.getByRole('textbox', { name: 'Names like', exact: true }).fill('payroll.*')
    await bulk.getByText('Ticks 2 columns in 1 table.').waitFor()
    await bulk.getByRole('checkbox', { name: 'Leave out what looks personal', exact: true }).uncheck()
    await bulk.getByText('Ticks 3 columns in 1 table.').waitFor()
    await accessible(page, 'tick matching')
    await shot(page, 'exposure-bulk')
    await bulk.getByRole('button', { name: 'Tick 3 columns', exact: true }).click()
    await isChecked(page, /^payroll/, 'true')
    const before = await saved()
    await button(page, 'Discard').click()
    await isChecked(page, /^payroll/, 'false')
    assert.deepEqual(await saved(), before)
    await page.getByRole('tree').focus()
    await pressQuickly(page, 'pay')
    await page.keyboard.press('Space')
    await isChecked(page, /^payroll/, 'true')
    await page.keyboard.press('Space')
    await isChecked(page, /^payroll/, 'false')
    await page.getByRole('region', { name: 'Unsaved changes' }).waitFor({ state: 'detached' })
    browser.clean()
  })

  test('if two people save an exposure at the same time, neither loses a change', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await page.getByRole('searchbox').fill('salary')
    await row(page, /^salary/).click()
    const { tables, version } = await saved()
    const others = [...tables, { schema: 'public', table: 'odd', columns: ['id'] }]
    await owner.must('PUT', `${shop.at}/exposure`, { tables: others, version })
    await button(page, 'Review changes').click()
    const review = page.getByRole('dialog', { name: 'Review changes', exact: true })
    await review.getByRole('button', { name: `Save version ${version + 1}`, exact: true }).click()
    const alert = review.getByRole('alert')
    await alert.getByText(`Olga saved version ${version + 1}`).waitFor()
    await alert.getByRole('button', { name: 'Compare', exact: true }).click()
    await review.getByText('public.odd.id').waitFor()
    await accessible(page, 'a conflict')
    await shot(page, 'exposure-conflict')
    await alert.getByRole('button', { name: 'Put mine on top', exact: true }).click()
    await review.getByRole('button', { name: `Save version ${version + 2}`, exact: true }).click()
    await said(page, `Saved as version ${version + 2}`)
    const now: { readonly table: string; readonly columns: readonly string[] }[] = (await saved()).tables
    assert.deepEqual(now.find(({ table }) => table === 'odd')?.columns, ['id'])
    assert.deepEqual(now.find(({ table }) => table === 'payroll')?.columns, ['salary'])
    browser.clean(/status of 409/)
  })

  test('an old version is restored after a review, and the page shows what agents see and which grants the database needs', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await button(page, 'Versions').click()
    const versions = page.getByRole('dialog', { name: 'Versions', exact: true })
    await versions.getByText('for the newsletter').waitFor()
    await accessible(page, 'versions')
    await shot(page, 'exposure-versions')
    await versions.getByRole('button', { name: 'Restore version 1', exact: true }).click()
    const review = page.getByRole('dialog', { name: 'Review changes', exact: true })
    await review.getByRole('list', { name: 'Removed', exact: true }).getByText('public.customers.email').waitFor()
    const { version } = await saved()
    await review.getByRole('button', { name: `Save version ${version + 1}`, exact: true }).click()
    await said(page, `Saved as version ${version + 1}`)
    assert.equal((await shop.query('SELECT email FROM customers')).status, 403)
    await owner.must('POST', '/users/me/keys', { name: 'No schema', scopes: ['data:read'] })
    await button(page, 'As an agent sees it').click()
    const agent = page.getByRole('dialog', { name: 'As an agent sees it', exact: true })
    const text = agent.getByRole('group', { name: 'description', exact: true })
    await text.getByText(/^customers\(id integer pk, name text!, country char\(2\)\)/m).waitFor()
    await agent.getByText(/^about \d+ tokens$/).waitFor()
    assert.doesNotMatch(await text.innerText(), /email/)
    await agent.getByRole('combobox', { name: 'Detail', exact: true }).click()
    await page.getByRole('option', { name: /^Everything/ }).click()
    await text.getByText(/Who buys\./).waitFor()
    await accessible(page, 'as an agent sees it')
    await shot(page, 'exposure-agent')
    await agent.getByRole('combobox', { name: 'As', exact: true }).click()
    await page.getByRole('option', { name: /^No schema/ }).click()
    await agent.getByText(/^This key lacks the scope data:schema\./).waitFor()
    assert.equal(await text.count(), 0)
    await page.keyboard.press('Escape')
    await button(page, 'Make the database agree').click()
    const agree = page.getByRole('dialog', { name: 'Make the database agree', exact: true })
    await agree.getByText(/GRANT SELECT \("?id"?, "?name"?, "?country"?\) ON .*customers/).waitFor()
    await accessible(page, 'make the database agree')
    await shot(page, 'exposure-agree')
    browser.clean()
  })

  test('a refused query leads to the smallest change of the exposure, and is checked again after the save', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    assert.equal((await shop.query('SELECT email, name FROM customers')).status, 403)
    const { items } = await owner.must('GET', `/teams/${shop.teamId}/audit?outcome=DENIED&limit=1`)
    const page = await browser.open(app)
    await signIn(page, owner.email, `${exposure}?from=${items[0].id}`)
    await ready(page, 'Exposure')
    await page.getByText(/The smallest change that allows the query is ticked: 1 column/).waitFor()
    await accessible(page, 'from a refusal')
    await shot(page, 'exposure-from-refusal')
    await button(page, 'Review changes').click()
    const review = page.getByRole('dialog', { name: 'Review changes', exact: true })
    await review.getByRole('list', { name: 'Added', exact: true }).getByText('public.customers.email').waitFor()
    assert.match(
      await review.getByRole('textbox', { name: 'Note', exact: true }).inputValue(),
      /^From the refusal of column email/,
    )
    await review.getByRole('button', { name: /^Save version/ }).click()
    await page.getByText('It would be answered now.', { exact: true }).waitFor()
    await shot(page, 'exposure-from-refusal-saved')
    browser.clean()
  })
})
