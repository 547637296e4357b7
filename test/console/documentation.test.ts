// Tests the documentation of a datasource in a real browser: propose, accept, edit, reject, publish.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { accessible, browserOrSkip, consoleDir, eachLook, ready, said, shot, signIn } from '../support/console.ts'
import { openShop, type Shop } from '../support/shop.ts'

describe('documentation in the console', () => {
  let shop: Shop
  before(async () => {
    shop = await openShop({ consoleDir: await consoleDir() })
  })
  after(() => shop[Symbol.asyncDispose]())

  test('in the console, texts about a datasource are proposed, accepted, edited, rejected and published', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const path = `/app/t/shop/datasources/${shop.datasourceId}/documentation`
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, path)
    await ready(page, 'Documentation')
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    await button('Propose texts').click()
    await said(page, 'Texts are proposed')
    await page
      .getByRole('listbox', { name: 'Tables', exact: true })
      .getByRole('option', { name: /^orders/ })
      .click()
    const article = page.getByRole('article', { name: 'orders', exact: true })
    await eachLook(page, `${path}?table=public.orders`, 'Documentation', 'documentation')
    await article.getByRole('textbox', { name: 'Summary', exact: true }).fill('One row per order.')
    await article.getByRole('button', { name: 'Save summary', exact: true }).click()
    await said(page, 'Summary accepted')
    await page
      .getByRole('status', { name: 'Coverage', exact: true })
      .getByText(/1 of 3 tables described/)
      .waitFor()
    const texts = article.getByRole('group').filter({ hasText: 'Proposed' })
    const name = await texts.first().getAttribute('aria-label')
    const text = article.getByRole('group', { name: name ?? '', exact: true })
    await text.getByRole('button', { name: 'Reject', exact: true }).click()
    await text.getByText('Rejected', { exact: true }).waitFor()
    await text.getByRole('button', { name: 'Accept', exact: true }).click()
    await text.getByText('Accepted', { exact: true }).waitFor()
    await text.getByRole('button', { name: 'Edit', exact: true }).click()
    await text.getByRole('textbox').fill('Each order belongs to one customer.')
    await accessible(page, 'a text is edited')
    await text.getByRole('button', { name: 'Save text', exact: true }).click()
    await text.getByText('Each order belongs to one customer.').waitFor()
    await shot(page, 'documentation-accepted')
    await button('Accept many').click()
    const many = page.getByRole('dialog', { name: 'Accept proposed texts', exact: true })
    const accept = many.getByRole('button', { name: /^Accept/ })
    for (const kind of [/^Summaries/, /^Columns/, /^Statements/, /^Examples/])
      await many.getByRole('checkbox', { name: kind }).uncheck()
    assert.equal(await accept.isDisabled(), true)
    for (const kind of [/^Summaries/, /^Columns/, /^Statements/, /^Examples/])
      await many.getByRole('checkbox', { name: kind }).check()
    await accessible(page, 'accept many')
    await shot(page, 'documentation-accept-many')
    await accept.click()
    await said(page, /^Accepted \d+ texts?$/)
    await page
      .getByText(/to review/)
      .first()
      .waitFor({ state: 'detached' })
    await button('Publish').click()
    await said(page, 'Published')
    const { json } = await shop.app.ask('GET', `${shop.at}/schema`, { token: shop.key })
    const orders = json.tables.find((each: { readonly table: string }) => each.table === 'orders')
    assert.equal(orders.documentation.summary, 'One row per order.')
    await button('Publications').click()
    const publications = page.getByRole('table', { name: 'Publications', exact: true })
    await publications.getByRole('cell', { name: 'Olga', exact: true }).waitFor()
    await accessible(page, 'publications')
    await shot(page, 'documentation-publications')
    browser.clean()
  })
})
