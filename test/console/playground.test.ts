// Tests the playground in a real browser: a verdict while the person types, an answer, and a refusal with what to write
// instead.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import {
  accessible,
  browserOrSkip,
  consoleDir,
  eachLook,
  NARROW,
  ready,
  REPLACED,
  shot,
  signIn,
  WIDE,
} from '../support/console.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { until } from '../support/until.ts'
import type { Page } from 'playwright-core'

describe('the playground', () => {
  let shop: Shop
  before(async () => {
    shop = await openShop({ consoleDir: await consoleDir() })
  })
  after(() => shop[Symbol.asyncDispose]())

  const PATH = '/app/t/shop/playground'
  const editor = (page: Page) => page.getByRole('textbox', { name: 'Query', exact: true })
  const verdict = (page: Page, words: string) =>
    page.getByRole('status', { name: 'Verdict', exact: true }).filter({ hasText: words }).waitFor()
  const run = (page: Page) => page.getByRole('button', { name: 'Run query' }).click()

  async function write(page: Page, sql: string): Promise<void> {
    await editor(page).click()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(sql)
  }

  test('a query is judged while the person types, and the rows, the printed query, the cost and the command are shown', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, PATH)
    await ready(page, 'Playground')
    await write(page, 'SELECT id, name, country FROM customers ORDER BY id LIMIT 20')
    await verdict(page, 'Allowed')
    assert.match((await page.getByRole('meter', { name: 'Cost' }).getAttribute('aria-valuetext')) ?? '', /^\d.* of /)
    await page.keyboard.press('Control+Enter')
    const grid = page.getByRole('grid', { name: 'Result', exact: true })
    await grid.waitFor()
    assert.equal(await grid.getAttribute('aria-rowcount'), '21')
    await grid.getByRole('columnheader', { name: /country/ }).waitFor()
    await grid.getByRole('gridcell', { name: 'customer 1', exact: true }).waitFor()
    await shot(page, 'playground-answer')
    await accessible(page, 'an answer')
    await grid.focus()
    await page.keyboard.press('Control+End')
    await grid.getByRole('gridcell', { name: 'customer 20', exact: true }).waitFor()
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('Enter')
    const cell = page.getByRole('dialog', { name: 'name', exact: true })
    await cell.getByText('customer 20').waitFor()
    await accessible(page, 'an opened cell')
    await page.keyboard.press('Escape')
    await cell.waitFor({ state: 'detached' })
    for (const [tab, text] of [
      ['What the database saw', /FROM "public"\."customers"|customers/],
      ['Plan and cost', /Limit of the team/],
      ['As curl', /curl -sS 'http/],
    ] as const) {
      await page.getByRole('tab', { name: tab, exact: true }).click()
      await page.getByRole('tabpanel').getByText(text).first().waitFor()
      await accessible(page, tab)
      await shot(page, `playground-${tab.replaceAll(' ', '-').toLowerCase()}`)
    }
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      (async () => {
        await page.getByRole('tab', { name: 'Result', exact: true }).click()
        await page.getByRole('button', { name: 'Download CSV', exact: true }).click()
      })(),
    ])
    assert.equal(file.suggestedFilename(), 'shop.csv')
    browser.clean()
  })

  test('the JSON file has every column, even if columns share a name', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, PATH)
    await ready(page, 'Playground')
    await write(page, 'SELECT 1 AS a, 2 AS a, 3 AS a_2')
    await run(page)
    const save = page.getByRole('button', { name: 'Download JSON', exact: true })
    const [file] = await Promise.all([page.waitForEvent('download'), save.click()])
    assert.deepEqual(JSON.parse(await readFile(await file.path(), 'utf8')), [{ a: 1, a_3: 2, a_2: 3 }])
    browser.clean()
  })

  test('a refused name is underlined, and shown with what to write instead and a link to the exposure', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, PATH)
    await ready(page, 'Playground')
    await write(page, 'SELECT id, email FROM customers')
    await verdict(page, 'Would be refused')
    await page.getByRole('alert').filter({ hasText: 'email' }).waitFor()
    const underlined = page.locator('.cm-lintRange-error')
    assert.equal(await underlined.textContent(), 'email')
    await accessible(page, 'a refusal')
    await shot(page, 'playground-refusal')
    await run(page)
    await page.getByRole('alert').filter({ hasText: 'email' }).waitFor()
    await page.getByRole('button', { name: 'Expose from this', exact: true }).click()
    await page.waitForURL(/\/exposure\?from=[\w-]+$/)
    browser.clean(/status of 403|status of 422/)
  })

  test('a query can be checked as another role, but runs only as the person', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await shop.owner.must('PATCH', shop.at, { minRole: 'ADMIN' })
    await signIn(page, shop.owner.email, `${PATH}?q=SELECT%201%20FROM%20orders`)
    await verdict(page, 'Allowed')
    await page.getByRole('combobox', { name: 'Run as', exact: true }).click()
    await page.getByRole('option', { name: /Member/ }).click()
    await verdict(page, 'Would be refused')
    assert.equal(await page.getByRole('button', { name: 'Run query' }).isDisabled(), true)
    browser.clean()
  })

  test('a query that is stopped in the console also stops in the database', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, PATH)
    await ready(page, 'Playground')
    const slow =
      'SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.total + b.total > c.total + d.total'
    const settings = { postgresMaxPlanCost: 1e15, statementTimeoutMs: 60_000 }
    await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings })
    await write(page, slow)
    await verdict(page, 'Allowed')
    await run(page)
    const active = `SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE '%count%orders%'`
    const running = async () => (await shop.postgres.query(shop.database, active)).length
    await until('the query runs', async () => (await running()) > 0)
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByText('The query was stopped.').waitFor()
    await until('no query runs', async () => (await running()) === 0)
    browser.clean()
  })

  test('the playground is accessible in both themes and at both widths', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, PATH)
    await eachLook(page, `${PATH}?q=SELECT%20*%20FROM%20orders`, 'Playground', 'playground')
    await page.setViewportSize(NARROW)
    await run(page)
    await page.getByRole('grid', { name: 'Result', exact: true }).waitFor()
    await shot(page, 'playground-answer-narrow')
    await page.setViewportSize(WIDE)
    await write(page, 'SELECT customer_id, sum(total) AS spent FROM orders GROUP BY customer_id ORDER BY 1')
    await verdict(page, 'Allowed')
    await run(page)
    await page.getByRole('button', { name: 'Chart', exact: true }).click()
    const chart = page.getByRole('img', { name: 'spent by customer_id', exact: true })
    await chart.waitFor()
    const [box, panel] = [await chart.boundingBox(), await page.getByRole('tabpanel').boundingBox()]
    assert.equal(box?.width, panel?.width)
    await accessible(page, 'a chart')
    await shot(page, 'playground-chart')
    browser.clean(REPLACED)
  })
})
