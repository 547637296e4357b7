// A query of a member is refused, and the member asks an admin to expose the columns. The admin exposes them or
// declines. The text of a query that is typed but not run is not stored.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Person } from '../support/app.ts'
import {
  accessible,
  browserOrSkip,
  button,
  consoleDir,
  eachLook,
  ready,
  REPLACED,
  shot,
  signIn,
} from '../support/console.ts'
import { openShop, type Shop } from '../support/shop.ts'

const PLAYGROUND = '/app/t/shop/playground'

describe('refusals of a member', () => {
  let shop: Shop
  let mia: Person
  before(async () => {
    shop = await openShop({ consoleDir: await consoleDir() })
    mia = await shop.app.person('Mia')
    await shop.app.join(shop.owner, shop.teamId, mia)
  })
  after(() => shop[Symbol.asyncDispose]())

  const verdict = (page: Page, words: string) =>
    page.getByRole('status', { name: 'Verdict', exact: true }).filter({ hasText: words }).waitFor()
  const requests = () => shop.owner.must('GET', `/teams/${shop.teamId}/requests`)

  test('a query is judged while the member types, and the audit stores none of its text', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, mia.email, PLAYGROUND)
    await ready(page, 'Playground')
    const began = performance.now()
    for (const [column, words] of [
      ['id', 'Allowed'],
      ['email', 'Would be refused'],
      ['name', 'Allowed'],
    ] as const) {
      await page.getByRole('textbox', { name: 'Query', exact: true }).click()
      await page.keyboard.press('Control+a')
      await page.keyboard.insertText(`SELECT ${column} FROM customers`)
      await verdict(page, words)
    }
    const { items }: { items: { query?: string }[] } = await mia.must('GET', '/users/me/activity?action=checkQuery')
    assert.deepEqual(
      items.flatMap(({ query }) => query ?? []),
      [],
    )
    const minutes = Math.ceil((performance.now() - began) / 60_000)
    assert.ok(items.length <= minutes + 1, 'one row a minute')
    browser.clean(REPLACED)
  })

  async function ask(page: Page, column: string, why: string): Promise<void> {
    const sql = `SELECT ${column} FROM customers LIMIT 5`
    await page.goto(`${PLAYGROUND}?q=${encodeURIComponent(sql)}`)
    await verdict(page, 'Would be refused')
    await button(page, 'Ask to expose it').click()
    const dialog = page.getByRole('dialog', { name: 'Ask to expose it', exact: true })
    assert.equal(await button(page, 'Send request').isDisabled(), true)
    await dialog.getByRole('textbox', { name: 'Why you need it', exact: true }).fill(why)
    await accessible(page, 'asking')
    await shot(page, 'ask')
    await button(page, 'Send request').click()
    await page.getByText('Requested. An admin decides.').waitFor()
  }

  test('a member sends two requests, and an admin declines the second and closes the first by exposing its column', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, mia.email, PLAYGROUND)
    await ask(page, 'email', 'For the <b>newsletter</b>')
    await page.goto(PLAYGROUND)
    await ask(page, 'email, name', 'Also for it')
    await page.goto('/app/t/shop/activity?outcome=DENIED')
    await button(page, 'Show call').first().click()
    await button(page, 'Ask to expose it').click()
    await page.getByRole('textbox', { name: 'Why you need it', exact: true }).fill('Again')
    await button(page, 'Send request').click()
    await page.getByRole('alert').filter({ hasText: 'You have already requested this.' }).waitFor()
    assert.equal((await requests()).length, 2)

    const admin = await browser.open(shop.app)
    await signIn(admin, shop.owner.email, '/app/t/shop')
    await admin
      .getByRole('region', { name: 'Waiting for you', exact: true })
      .getByRole('link', { name: /Mia asks for the column email/ })
      .first()
      .click()
    await ready(admin, 'Activity')
    const table = admin.getByRole('table', { name: 'Requests', exact: true })
    await eachLook(admin, '/app/t/shop/activity?tab=refusals', 'Activity', 'requests')
    await table
      .getByRole('row', { name: /Also for it/ })
      .getByRole('button', { name: 'Decline', exact: true })
      .click()
    const dialog = admin.getByRole('dialog', { name: 'Decline the request', exact: true })
    await dialog.getByRole('textbox', { name: 'Note', exact: true }).fill('One is enough.')
    await accessible(admin, 'declining')
    await button(admin, 'Decline request').click()
    await dialog.waitFor({ state: 'detached' })
    await table
      .getByRole('row', { name: /For the <b>newsletter<\/b>/ })
      .getByRole('link', { name: 'Expose from this', exact: true })
      .click()
    await ready(admin, 'Exposure')
    await admin.getByText('For the <b>newsletter</b>').waitFor()
    await button(admin, 'Review changes').click()
    await admin.getByRole('button', { name: /^Save version/ }).click()
    await admin.getByText('The request is closed.').waitFor()
    const closed: { resolution?: string; note?: string }[] = await requests()
    assert.deepEqual(closed.map(({ resolution, note }) => [resolution, note]).sort(), [
      ['DECLINED', 'One is enough.'],
      ['EXPOSED', undefined],
    ])
    browser.clean(/status of (403|409|422)/)
  })
})
