// Tests in a real browser how a person connects their own PostgreSQL, up to the first answer. Also tests the health,
// access and settings pages.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import {
  accessible,
  browserOrSkip,
  button,
  consoleDir,
  eachLook,
  field,
  NARROW,
  pressQuickly,
  ready,
  said,
  shot,
  signIn,
  WIDE,
} from '../support/console.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'

const SQL = `CREATE TABLE customers (id int PRIMARY KEY, email text); INSERT INTO customers VALUES (1, 'a'), (2, 'b');
CREATE TABLE orders (id int PRIMARY KEY, total numeric); ANALYZE`

describe('connecting a datasource', () => {
  let app: TestApp
  let postgres: TestPostgres
  let owner: Person
  let database: string
  let teamId: string
  before(async () => {
    postgres = await startPostgres()
    database = await postgres.createDatabase('own', SQL)
    app = await startApp({ consoleDir: await consoleDir() })
    owner = await app.person('Olga')
    teamId = await app.team(owner, 'Own')
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const list = () => owner.must('GET', `/teams/${teamId}/datasources`)

  test('a connection string leads to the first answer, and nothing is saved before the person continues', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, '/app/t/own/datasources/new')
    await eachLook(page, '/app/t/own/datasources/new', 'Connect a datasource', 'connect')
    await field(page, 'Connection string').fill(postgres.url(database, 'nobody', 'wrong'))
    await button(page, 'Check connection').click()
    const checks = page.getByRole('list', { name: 'Checks', exact: true })
    await checks
      .getByRole('listitem')
      .filter({ hasText: /^Failed: / })
      .first()
      .waitFor()
    assert.equal(await button(page, 'Continue').isDisabled(), true)
    await button(page, 'Save without connecting').waitFor()
    await accessible(page, 'a failed check')
    await shot(page, 'connect-failed')
    await button(page, 'Change the password').click()
    const password = page.getByLabel('Password', { exact: true })
    await password.and(page.locator(':focus')).waitFor()
    assert.match((await password.getAttribute('aria-describedby')) ?? '', /-error/)
    await accessible(page, 'an error at its field')
    await shot(page, 'connect-field-error')

    await field(page, 'Name').fill('kept over a reload')
    await page.reload()
    await ready(page, 'Connect a datasource')
    assert.equal(await field(page, 'Name').inputValue(), 'kept over a reload')
    assert.equal(await field(page, 'Port').inputValue(), String(postgres.port))
    assert.equal(await password.inputValue(), '', 'no secret is kept')
    assert.ok(!(await page.evaluate<string>('JSON.stringify({...sessionStorage, ...localStorage})')).includes('wrong'))

    await field(page, 'Connection string').fill(postgres.url(database, postgres.superuser, postgres.password))
    await button(page, 'Read').click()
    assert.equal(await field(page, 'Port').inputValue(), String(postgres.port))
    assert.equal(await page.getByLabel('Password', { exact: true }).inputValue(), postgres.password)
    assert.ok(
      !(await field(page, 'Connection string').inputValue()).includes(postgres.password),
      'the string hides the password',
    )
    await field(page, 'Port').fill('5')
    await page
      .getByRole('alert')
      .getByText(/the field has 5. Choose one/)
      .waitFor()
    await accessible(page, 'a contradiction')
    await shot(page, 'connect-contradiction')
    await button(page, 'Use the string').click()
    await field(page, 'Name').fill('own')
    await button(page, 'Check connection').click()
    await checks
      .getByRole('listitem')
      .filter({ hasText: /^Warning: / })
      .first()
      .waitFor()
    await checks
      .getByRole('listitem')
      .filter({ hasText: /^Passed: / })
      .first()
      .waitFor()
    assert.equal(await button(page, 'Copy SQL').count(), 1, 'one remedy for all steps that it fixes')
    assert.deepEqual(await list(), [], 'nothing is saved yet')
    await accessible(page, 'checks')
    await shot(page, 'connect-checks')
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize(NARROW)
    await accessible(page, 'checks, narrow and dark')
    await shot(page, 'connect-checks-narrow-dark')
    await page.setViewportSize(WIDE)
    await page.emulateMedia({ colorScheme: 'light' })
    await button(page, 'Continue').click()

    await ready(page, 'Exposure')
    const [{ id, status }] = await list()
    assert.equal(status, 'CONNECTED')
    await page
      .getByRole('tree')
      .getByRole('treeitem', { name: /^orders/ })
      .waitFor()
    await shot(page, 'connect-tables')
    await page.getByRole('tree').focus()
    await pressQuickly(page, 'orders')
    await page.keyboard.press('Space')
    await button(page, 'Review changes').click()
    await button(page, 'Save version 1').click()
    await button(page, 'Create key').click()
    const key = await field(page, 'API key').inputValue()
    assert.match(key, /^sk_live_[0-9A-Za-z]{38}$/)
    await page.getByText('Waiting for the first call with this key.').waitFor()
    await accessible(page, 'a fresh key')
    const ask = (sql: string) =>
      app.ask('POST', `/teams/${teamId}/datasources/${id}/query`, { token: key, body: { sql } })
    assert.equal((await ask('SELECT 1 / 0 FROM orders')).status, 422)
    await page.getByText('A call arrived and failed.').waitFor()
    assert.equal((await ask('SELECT * FROM orders')).status, 200)
    await page.getByText(/Your first call arrived: 0 rows in/).waitFor()
    await shot(page, 'connect-first-answer')
    await page.getByRole('tab', { name: 'Health', exact: true }).click()
    const leaving = page.getByRole('alertdialog', { name: 'Leave without the key?', exact: true })
    await leaving.waitFor()
    await accessible(page, 'leaving without the key')
    await button(page, 'Stay').click()
    assert.equal(await field(page, 'API key').inputValue(), key)
    await page.getByRole('checkbox', { name: 'I have stored this key', exact: true }).check()
    await page.getByRole('tab', { name: 'Health', exact: true }).click()
    await ready(page, 'Health')
    browser.clean()
  })

  test('the health, access and settings of a datasource are shown and changed', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    for (const { id } of await list()) await owner.must('DELETE', `/teams/${teamId}/datasources/${id}`)
    const { host, port, superuser: username, password } = postgres
    const id = await app.datasource(owner, teamId, { name: 'own', host, port, database, username, password }, [])
    await owner.must('POST', `/teams/${teamId}/datasources/${id}/test`)
    const at = `/app/t/own/datasources/${id}`
    await postgres.query(database, 'CREATE TABLE invoices (id int)')
    const page = await browser.open(app)
    await signIn(page, owner.email, `${at}/health`)
    await ready(page, 'Health')
    await page.getByRole('list', { name: 'Checks', exact: true }).waitFor()
    await button(page, 'Look again').click()
    const changes = page.getByRole('region', { name: 'Changes in the database', exact: true })
    await changes.getByRole('list', { name: 'New', exact: true }).getByText('public.invoices').waitFor()
    await changes.getByText('New parts of an exposed column are shown at once.').waitFor()
    await button(page, 'Check connection').click()
    await eachLook(page, `${at}/health`, 'Health', 'health')

    await eachLook(page, `${at}/access`, 'Access', 'access')
    await page.getByRole('radio', { name: 'Only people on a list', exact: true }).check()
    assert.equal(await page.getByRole('checkbox', { name: owner.email, exact: true }).isDisabled(), true)
    await accessible(page, 'a list of people')
    await button(page, 'Save access').click()
    await said(page, 'Access saved')
    assert.equal((await owner.must('GET', `/teams/${teamId}/datasources/${id}`)).accessMode, 'EXPLICIT')

    await eachLook(page, `${at}/settings`, 'Settings', 'datasource-settings')
    assert.equal(await page.getByLabel('Password', { exact: true }).inputValue(), '')
    await field(page, 'Name').fill('our shop')
    await button(page, 'Save connection').click()
    await said(page, 'Connection saved')
    await button(page, 'Disable datasource').click()
    await button(page, 'Enable datasource').click()
    await button(page, 'Disable datasource').waitFor()
    await button(page, 'Delete datasource').click()
    const ask = page.getByRole('alertdialog', { name: 'Delete our shop', exact: true })
    await ask.getByRole('textbox', { name: 'Type our shop to confirm', exact: true }).fill('our shop')
    await ask.getByRole('button', { name: 'Delete datasource', exact: true }).click()
    await ready(page, 'Datasources')
    await page.getByRole('heading', { name: 'No datasource yet', exact: true }).waitFor()
    assert.deepEqual(await list(), [])
    browser.clean(/status of 404/)
  })

  test('before the first introspection, the health page names no changes, and the exposure says what will be read', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const { host, port, superuser: username } = postgres
    const page = await browser.open(app)
    await signIn(page, owner.email, '/app/t/own')
    for (const [type, words] of [
      ['POSTGRES', /It reads no rows\./],
      ['MONGODB', /it reads a sample of the documents/],
    ] as const) {
      const spec = { name: type, type, connectionMode: 'DIRECT', sslMode: 'disable', host, port, username, database }
      const { id } = await owner.must('POST', `/teams/${teamId}/datasources`, spec)
      await page.goto(`/app/t/own/datasources/${id}/health`)
      await page.getByText('There is nothing to compare with yet.').waitFor()
      await page.goto(`/app/t/own/datasources/${id}/exposure`)
      await page.getByText(words).waitFor()
      await owner.must('DELETE', `/teams/${teamId}/datasources/${id}`)
    }
    browser.clean(/status of (404|409)/)
  })
})
