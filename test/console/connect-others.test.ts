// A person connects MongoDB and BigQuery in a real browser, up to the first answer. MongoDB is the real engine.
// BigQuery is the double from the driver’s tests, at an address that the operator allows.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { startApp, type TestApp } from '../support/app.ts'
import { PROJECT, startShop } from '../support/bigquery-shop.ts'
import {
  accessible,
  browserOrSkip,
  button,
  consoleDir,
  field,
  NARROW,
  pressQuickly,
  ready,
  shot,
  signIn,
  type TestBrowser,
} from '../support/console.ts'
import { startMongod } from '../support/mongodb.ts'
import { engineOrSkip } from '../support/no-such-engine.ts'

/** The columns of `products`. */
const ROW = {
  fields: ['id', 'name', 'price', 'supplier_secret'].map((name, n) => ({
    name,
    type: n === 0 ? 'INTEGER' : n === 2 ? 'NUMERIC' : 'STRING',
  })),
}

async function wizard(browser: TestBrowser, app: TestApp): Promise<Page> {
  const owner = await app.person('Olga')
  await app.team(owner, 'Own')
  const page = await browser.open(app)
  await signIn(page, owner.email, '/app/t/own/datasources/new')
  await ready(page, 'Connect a datasource')
  return page
}

/** Continues from a passed connection check to the first call with a new key. Returns the rows of the answer. */
async function showAndAsk(page: Page, app: TestApp, table: string): Promise<unknown> {
  await page
    .getByRole('list', { name: 'Checks', exact: true })
    .getByRole('listitem')
    .filter({ hasText: /^Passed: / })
    .first()
    .waitFor()
  await accessible(page, 'checks')
  await button(page, 'Continue').click()
  await ready(page, 'Exposure')
  await page
    .getByRole('treeitem', { name: new RegExp(`^${table}`) })
    .first()
    .waitFor()
  await page.getByRole('tree').focus()
  await pressQuickly(page, table)
  await page.keyboard.press('Space')
  await button(page, 'Review changes').click()
  await button(page, 'Save version 1').click()
  await button(page, 'Create key').click()
  await field(page, 'API key').waitFor()
  await shot(page, `connect-${table}`)
  const command = (await page.getByRole('group', { name: 'curl', exact: true }).textContent()) ?? ''
  const [, path = '', key = '', body = ''] =
    /curl -s [^/]+\/\/[^/]+(\S+) .*Bearer (\S+)'.*-d '(.*)'$/s.exec(command) ?? []
  const answer = await app.must('POST', path, { token: key, body })
  await page.getByText(/Your first call arrived: \d+ rows? in/).waitFor()
  await page.getByRole('checkbox', { name: 'I have stored this key', exact: true }).check()
  return answer.rows
}

test('MongoDB: a wrong login is shown beside its field, and a connection string leads to the first answer', async (t) => {
  await using server = await engineOrSkip(t, () => startMongod({ auth: true }))
  if (server === null) return
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  const database = server.database('docs')
  await server.client
    .db(database)
    .collection('products')
    .insertMany([{ name: 'tea', supplier: { name: 's' } }, { name: 'cup' }])
  await server.createUser(database, 'reader', 'reader-pw', [{ role: 'read', db: database }])
  await using app = await startApp({ consoleDir: await consoleDir() })
  const page = await wizard(browser, app)
  await page.getByRole('radio', { name: 'MongoDB', exact: true }).check()
  await field(page, 'Host').fill(server.host)
  await field(page, 'Port').fill(String(server.port))
  await field(page, 'Database').fill(database)
  await field(page, 'Username').fill('reader')
  await page.getByLabel('Password', { exact: true }).fill('reader-pw')
  await button(page, 'Check connection').click()
  await page.getByRole('button', { name: /^Change the (username|password)$/ }).click()
  await page.locator('[aria-invalid=true]:focus').waitFor()
  await page.getByText('More options', { exact: true }).click()
  await field(page, 'Login database').fill(database)
  await button(page, 'Check connection').click()
  await page.getByRole('list', { name: 'Checks', exact: true }).waitFor()
  await button(page, 'Back').click()

  const uri = `mongodb://reader:reader-pw@${server.host}:${server.port}/${database}`
  await field(page, 'Connection string').fill(uri)
  await button(page, 'Read').click()
  assert.equal(await field(page, 'Host').count(), 0, 'the string is sent whole')
  await button(page, 'Check connection').click()
  const rows = await showAndAsk(page, app, 'products')
  assert.equal(Array.isArray(rows) && rows.length, 2)
  await page.getByRole('searchbox').fill('supplier')
  const [whole, part] = [/^supplier(?!\.)/, /^supplier\.name/].map((name) => page.getByRole('treeitem', { name }))
  assert.ok(whole !== undefined && part !== undefined)
  const isChecked = (checked: boolean) => part.and(page.locator(`[aria-checked=${checked}]`)).waitFor()
  await whole.click()
  await isChecked(false)
  await part.click()
  await isChecked(true)
  await whole.click()
  await whole.click()
  // If a column is unticked, all its nested fields are unticked too.
  await isChecked(false)
  browser.clean()
})

test('BigQuery: an endpoint that the operator allows leads to the first answer', async (t) => {
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  await using double = await startShop([
    { says: /products/, evaluation: { schema: ROW, rows: [['1', 'tea', '2.5', 'x']] } },
  ])
  await using app = await startApp({
    consoleDir: await consoleDir(),
    env: { VITRINE_ALLOW_BIGQUERY_ENDPOINT: '1', VITRINE_ALLOW_APPLICATION_DEFAULT: '1' },
  })
  const page = await wizard(browser, app)
  await page.getByRole('radio', { name: 'BigQuery', exact: true }).check()
  await page.getByRole('radio', { name: /^The identity of the machine/ }).check()
  assert.equal(await field(page, 'Service account key').count(), 0)
  await page.getByRole('radio', { name: /^A service account/ }).check()
  await field(page, 'Database').fill(PROJECT)
  assert.equal(
    await button(page, 'Check connection').isDisabled(),
    true,
    'without a key the connection cannot be checked',
  )
  await field(page, 'Service account key').fill('{"type":"authorized_user"}')
  await button(page, 'Check connection').click()
  await page.getByRole('alert').filter({ hasText: 'serviceAccountKey' }).waitFor()
  await field(page, 'Service account key').fill('')
  await page.getByText('More options', { exact: true }).click()
  await field(page, 'Endpoint').fill(double.url)
  await field(page, 'Datasets').fill('shop')
  await page.setViewportSize(NARROW)
  await accessible(page, 'the fields of BigQuery')
  await shot(page, 'connect-bigquery-narrow')
  await button(page, 'Check connection').click()
  const rows = await showAndAsk(page, app, 'products')
  assert.deepEqual(rows, [[1, 'tea', 2.5, 'x']])
  browser.clean(/status of 400/)
})
