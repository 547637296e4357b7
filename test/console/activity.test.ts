// Tests the activity page in a real browser: calls and their filters, one call, the link from a refusal to the
// exposure, usage and export.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Agent } from '../support/agent.ts'
import { accessible, browserOrSkip, consoleDir, eachLook, ready, shot, signIn } from '../support/console.ts'
import { connected, overHttp, registered } from '../support/oauth.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { until } from '../support/until.ts'

describe('activity', () => {
  let shop: Shop
  before(async () => {
    shop = await openShop({ consoleDir: await consoleDir() })
    for (let n = 1; n <= 60; n++) await shop.query(`SELECT name FROM customers WHERE id = ${n}`)
    for (let n = 1; n <= 3; n++) await shop.query(`SELECT email FROM customers WHERE id = ${n}`)
    await shop.query('SELEC 1')
  })
  after(() => shop[Symbol.asyncDispose]())

  const PATH = '/app/t/shop/activity'

  test('the activity page lists calls, filters them, and links from a refusal to the exposure', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, PATH)
    await eachLook(page, PATH, 'Activity', 'activity')
    const calls = page.getByRole('table', { name: 'Calls', exact: true })
    const has = (rows: number) => until(`${rows} rows`, async () => (await calls.getByRole('row').count()) === rows)
    await has(51)
    await page.getByRole('button', { name: 'Show older calls', exact: true }).click()
    await calls.getByRole('row').nth(60).waitFor()
    await page.getByRole('combobox', { name: 'Outcome', exact: true }).click()
    await page.getByRole('option', { name: 'Refused', exact: true }).click()
    await page.waitForURL(/outcome=DENIED/)
    await has(4)
    assert.equal(await calls.getByRole('row', { name: /column email/ }).count(), 3)
    await calls.getByRole('button', { name: 'Show call', exact: true }).first().click()
    const call = page.getByRole('region', { name: 'Call', exact: true })
    for (const name of ['Asked', 'The database saw', 'Why']) {
      await call.getByRole('heading', { name, exact: true }).waitFor()
    }
    await call.getByText('SELECT email FROM customers WHERE id = 3').waitFor()
    await accessible(page, 'a call')
    await shot(page, 'activity-call')
    await call.getByRole('link', { name: 'Open in playground', exact: true }).waitFor()
    await call.getByRole('link', { name: 'Expose from this', exact: true }).click()
    await page.waitForURL(/\/exposure\?from=[\w-]+$/)
    browser.clean()
  })

  test('new calls appear on the activity page by themselves while Live is on', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, PATH)
    await ready(page, 'Activity')
    await page.getByRole('switch', { name: 'Live', exact: true }).check()
    await shop.query('SELECT 4711 AS lively FROM customers LIMIT 1')
    await page.getByRole('row', { name: /4711/ }).waitFor()
    browser.clean()
  })

  test('refusals are grouped by the blocked name, and usage is shown by day, key and agent', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const { app, owner, teamId, datasourceId } = shop
    const service = overHttp(app)
    const { access } = await connected(service, owner, await registered(service), { teamIds: [teamId] })
    await new Agent(app, access).tool('run_query', { teamId, datasourceId, sql: 'SELECT 1' })
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, PATH)
    await ready(page, 'Activity')
    await page.getByRole('tab', { name: 'Refusals', exact: true }).click()
    const group = page.getByRole('row', { name: /column email/ })
    await group.getByRole('cell', { name: '3', exact: true }).waitFor()
    await group.getByRole('link', { name: 'Expose from this', exact: true }).waitFor()
    await accessible(page, 'refusals')
    await shot(page, 'activity-refusals')
    await page.getByRole('tab', { name: 'Usage', exact: true }).click()
    await page.getByRole('img', { name: /^Queries per day: / }).waitFor()
    await page.getByRole('table', { name: 'Queries per day', exact: true }).waitFor()
    const [{ clientName }] = await owner.must('GET', '/users/me/grants')
    const byKey = page.getByRole('table', { name: 'By key or agent', exact: true })
    await byKey.getByRole('cell', { name: clientName, exact: true }).waitFor()
    await accessible(page, 'usage')
    await shot(page, 'activity-usage')
    browser.clean()
  })

  test('an export of the activity is saved as a file', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, `${PATH}?outcome=FAILED`)
    await ready(page, 'Activity')
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      (async () => {
        await page.getByRole('button', { name: 'Export', exact: true }).click()
        await page.getByRole('menuitem', { name: 'JSON lines', exact: true }).click()
      })(),
    ])
    assert.equal(file.suggestedFilename(), 'shop-activity.jsonl')
    browser.clean()
  })

  test('on the activity page, a member sees only their own calls', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const mia = await shop.app.person('Mia')
    await shop.app.join(shop.owner, shop.teamId, mia)
    await shop.app.datasource(mia, await shop.app.team(mia, 'Another'), shop.spec)
    const page = await browser.open(shop.app)
    await signIn(page, mia.email, PATH)
    await ready(page, 'Activity')
    await page.getByText('Only admins see the calls of others. These are your own calls.').waitFor()
    assert.equal(await page.getByText('SELECT email').count(), 0)
    await page
      .getByRole('row', { name: /Create datasource/ })
      .getByRole('button', { name: 'Show call', exact: true })
      .click()
    const call = page.getByRole('region', { name: 'Call', exact: true })
    await call.getByText('a datasource that you do not reach in this team').waitFor()
    await call.getByText('No query was sent to the database.').waitFor()
    await accessible(page, 'a member')
    browser.clean()
  })
})
