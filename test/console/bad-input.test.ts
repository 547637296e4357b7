// Tests what can go wrong for a person in the console: a session ends or the service fails during an edit, storage is
// disabled, a page is forbidden, names are hostile, answers are very wide, values are very large. No typed text is
// lost, and text from a database is never rendered as markup.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Page, Request } from 'playwright-core'
import { PASSWORD, type Person, type TestApp } from '../support/app.ts'
import {
  accessible,
  browserOrSkip,
  button,
  consoleDir,
  eachLook,
  endSessionAt,
  ready,
  REPLACED,
  said,
  shot,
  signIn,
  signInOnPage,
} from '../support/console.ts'
import { openShop, type Shop } from '../support/shop.ts'

/** This name is markup, and contains a character that reverses the direction of the text after it. */
const ODD = '<img src=x onerror=alert(1)>\u202egnp'
const WIDE_COLUMNS = 1_600
const LONG = 1_000_000

describe('a person in the console', () => {
  let shop: Shop
  let app: TestApp
  let owner: Person
  let exposure: string
  let tables: object[]
  before(async () => {
    shop = await openShop({ consoleDir: await consoleDir() })
    ;({ app, owner } = shop)
    const columns = Array.from({ length: WIDE_COLUMNS }, (_, n) => `"c${n}" bool`).join(', ')
    await shop.postgres.query(
      shop.database,
      `CREATE TABLE "${ODD}" (id int, "${ODD}" text); COMMENT ON TABLE "${ODD}" IS '${ODD}';
      INSERT INTO "${ODD}" VALUES (1, '${ODD}'), (2, repeat('long ', ${LONG / 5}));
      CREATE TABLE wide (${columns}); INSERT INTO wide (c0, c${WIDE_COLUMNS - 1}) VALUES (true, false); ANALYZE`,
    )
    await owner.must('POST', `${shop.at}/introspect`)
    await owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { maxResponseBytes: 20_000_000 } })
    exposure = `/app/t/shop/datasources/${shop.datasourceId}/exposure`
    ;({ tables } = await saved())
  })
  after(() => shop[Symbol.asyncDispose]())
  // Each test starts with the same exposure, so that no test depends on an earlier one.
  beforeEach(() => expose())

  const saved = () => owner.must('GET', `${shop.at}/exposure`)
  const expose = async (...more: string[]) => {
    const whole = more.map((table) => ({ schema: 'public', table, columns: null }))
    await owner.must('PUT', `${shop.at}/exposure`, { tables: [...tables, ...whole] })
  }
  const tick = async (page: Page, name: string) => {
    await page.getByRole('searchbox', { name: 'Filter tables and columns', exact: true }).fill(name)
    const row = page.getByRole('treeitem', { name: new RegExp(`^${name}`) })
    await row.click()
    await row.and(page.locator('[aria-checked=true]')).waitFor()
  }
  const save = async (page: Page) => {
    await button(page, 'Review changes').click()
    await page.getByRole('button', { name: /^Save version/ }).click()
  }
  const playground = (sql: string) => `/app/t/shop/playground?ds=${shop.datasourceId}&q=${encodeURIComponent(sql)}`

  for (const [what, isEnd] of [
    ['while the changes are reviewed', (request: Request) => request.url().endsWith('/exposure/preview')],
    ['just before the save', (request: Request) => request.method() === 'PUT'],
  ] as const) {
    test(`if the session ends ${what}, a person’s edit of an exposure is kept`, async (t) => {
      await using browser = await browserOrSkip(t)
      if (browser === null) return
      const ann = await app.person('Ann')
      await app.join(owner, shop.teamId, ann, 'ADMIN')
      const page = await browser.open(app)
      await signIn(page, ann.email, exposure)
      await ready(page, 'Exposure')
      const isReviewed = Promise.withResolvers<void>()
      await endSessionAt(page, app, isEnd, isReviewed.promise)
      await tick(page, 'salary')
      await button(page, 'Review changes').click()
      const review = page.getByRole('dialog', { name: 'Review changes', exact: true })
      const note = page.getByRole('textbox', { name: 'Note', exact: true })
      await note.fill('who earns what')
      const ask = page.getByRole('alertdialog', { name: 'Sign in again', exact: true })
      const saveIt = () => page.getByRole('button', { name: /^Save version/ }).click()
      const isSave = what === 'just before the save'
      if (isSave) await saveIt()
      isReviewed.resolve()
      await ask.waitFor()
      await shot(page, `sign-in-again-${isSave ? 'save' : 'review'}`)
      await accessible(page, `the session ended ${what}`)
      // Neither Escape nor a click outside the dialog discards the typed text.
      await page.keyboard.press('Escape')
      await page.mouse.click(5, 5)
      await ask.getByLabel('Password', { exact: true }).fill(PASSWORD)
      await ask.getByRole('button', { name: 'Sign in', exact: true }).click()
      await ask.waitFor({ state: 'detached' })
      if (!isSave) {
        await review.waitFor()
        assert.equal(await note.inputValue(), 'who earns what')
        await page.locator(':focus').and(note).waitFor()
        await saveIt()
      }
      await said(page, /^Saved as version/)
      await review.waitFor({ state: 'detached' })
      const { tables: kept }: { tables: { table: string; columns: string[] }[] } = await saved()
      assert.deepEqual(kept.find(({ table }) => table === 'payroll')?.columns, ['salary'])
      const [newest] = (await owner.must('GET', `${shop.at}/exposure/versions`)).items
      assert.equal(newest.note, 'who earns what')
      browser.clean(/status of 401/)
    })
  }

  test('a failed save shows a message in its dialog, keeps the selection, and works once the service is back', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await tick(page, 'note')
    const at = /\/datasources\/[\w-]+\/exposure$/
    const body = JSON.stringify({ error: 'The store does not answer.', code: 'OVERLOADED', requestId: 'r-1' })
    await page.route(at, (route) =>
      route.request().method() === 'PUT'
        ? route.fulfill({ status: 503, contentType: 'application/json', body })
        : route.continue(),
    )
    await save(page)
    const review = page.getByRole('dialog', { name: 'Review changes', exact: true })
    await review.getByRole('alert').filter({ hasText: 'The store does not answer.' }).waitFor()
    await review.getByText('Request r-1').waitFor()
    await accessible(page, 'a save that failed')
    await page.unroute(at)
    await page.route(at, (route) => (route.request().method() === 'PUT' ? route.abort() : route.continue()))
    await review.getByRole('button', { name: /^Save version/ }).click()
    await review.getByRole('alert').filter({ hasText: 'The service does not answer. Your input is kept.' }).waitFor()
    await page.unroute(at)
    await review.getByRole('button', { name: /^Save version/ }).click()
    await said(page, /^Saved as version/)
    browser.clean(/status of 503|ERR_FAILED/)
  })

  test('an introspection that fails while a person connects a database shows its reason', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, '/app/t/shop/datasources/new')
    await ready(page, 'Connect a datasource')
    const { superuser, password } = shop.postgres
    await page
      .getByRole('textbox', { name: 'Connection string', exact: true })
      .fill(shop.postgres.url(shop.database, superuser, password))
    await button(page, 'Read').click()
    await button(page, 'Check connection').click()
    const answers = [
      [/\/introspect$/, { jobId: 'j-1' }],
      [/\/jobs\/j-1$/, { state: 'FAILED', error: 'The introspection took too long.', done: 0, total: 0, step: null }],
    ] as const
    for (const [address, answer] of answers)
      await page.route(address, (route) =>
        route.fulfill({ contentType: 'application/json', body: JSON.stringify(answer) }),
      )
    await button(page, 'Continue').click()
    await page.getByRole('alert').filter({ hasText: 'The introspection took too long.' }).waitFor()
    for (const { id } of await owner.must('GET', `/teams/${shop.teamId}/datasources`))
      if (id !== shop.datasourceId) await owner.must('DELETE', `/teams/${shop.teamId}/datasources/${id}`)
    browser.clean()
  })

  test('after a sign-out in another tab, unsaved changes can be restored at the next sign-in', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await tick(page, 'email')
    const other = await browser.watch(page.context(), app)
    await other.goto('/app/t/shop/members')
    await ready(other, 'Members')
    await button(other, 'Account').click()
    await other.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
    await ready(page, 'Sign in to Vitrine')
    assert.equal(await page.getByText('salary').count(), 0, 'nothing of the team stays on the page')
    await signInOnPage(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await button(page, 'Restore changes').click()
    await page
      .getByRole('region', { name: 'Unsaved changes', exact: true })
      .getByText(/1 column added/)
      .waitFor()
    await button(page, 'Discard').click()
    browser.clean(/status of 401/)
  })

  test('if the browser disables storage, a sign-in, an edit and a change of the theme still work', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await page.context().addInitScript(`for (const name of ['localStorage', 'sessionStorage'])
      Object.defineProperty(window, name, { get() { throw new DOMException('The operation is insecure.', 'SecurityError') } })`)
    await signInOnPage(page, owner.email, exposure)
    await ready(page, 'Exposure')
    await tick(page, 'email')
    await button(page, 'Discard').click()
    await page.goto('/app/t/shop/datasources/new')
    await page.getByRole('textbox', { name: 'Host', exact: true }).fill('db.example')
    await page.goto('/app/settings/profile')
    await page.getByRole('combobox', { name: 'Theme', exact: true }).click()
    await page.getByRole('option', { name: 'Dark', exact: true }).click()
    await page.locator('html[data-theme=dark]').waitFor()
    browser.clean()
  })

  test('a page that needs a higher role says so, and a page of another team looks like a page that does not exist', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const mia = await app.person('Mia')
    await app.join(owner, shop.teamId, mia)
    const stranger = await app.person('Sid')
    await app.team(stranger, 'Elsewhere')
    const page = await browser.open(app)
    await signIn(page, mia.email, exposure)
    await ready(page, 'Exposure')
    for (const [path, heading] of [
      [exposure, 'Exposure'],
      [exposure.replace(/exposure$/, 'documentation'), 'Documentation'],
      [exposure.replace(/exposure$/, 'access'), 'Access'],
      [exposure.replace(/exposure$/, 'health'), 'Health'],
      [exposure.replace(/exposure$/, 'settings'), 'Settings'],
      ['/app/t/shop/datasources/new', 'Connect a datasource'],
      ['/app/t/shop/keys', 'API keys of this team'],
    ] as const) {
      await page.goto(path)
      await ready(page, heading)
      await page.getByRole('note').filter({ hasText: 'You need the role admin for this.' }).waitFor()
      assert.equal(await page.getByRole('main').getByRole('textbox').count(), 0, `${path} has a control`)
      await accessible(page, `${path} of a member`)
    }
    await shot(page, 'forbidden')
    const texts: string[] = []
    for (const path of ['/app/t/elsewhere', '/app/t/elsewhere/members', '/app/t/nobody/members', '/app/no/such/page']) {
      await page.goto(path)
      await ready(page, 'Nothing here')
      texts.push(await page.getByRole('main').innerText())
    }
    assert.equal(new Set(texts).size, 1, 'the same page whether it exists or not')
    const admin = await browser.open(app)
    await signIn(admin, owner.email, exposure.replace(shop.datasourceId, 'no-such-datasource'))
    await ready(admin, 'Nothing here')
    browser.clean(/status of (403|404)/)
  })

  test('hostile names and values are shown as text', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    await expose(ODD)
    const sql = `SELECT * FROM "${ODD}" ORDER BY id`
    await shop.postgres.query(shop.database, `CREATE TABLE "${ODD}2" (id int)`)
    await owner.must('POST', `${shop.at}/introspect`)
    assert.equal((await shop.query(`SELECT * FROM "${ODD}2"`)).status, 403)
    const { jobId } = await owner.must('POST', `${shop.at}/documentation/generate`)
    while ((await owner.must('GET', `${shop.at}/jobs/${jobId}`)).state !== 'DONE');
    const page = await browser.open(app)
    await signIn(page, owner.email, playground(sql))
    await page.getByRole('status', { name: 'Verdict', exact: true }).filter({ hasText: 'Allowed' }).waitFor()
    await page.getByRole('button', { name: /^Run query/ }).click()
    const grid = page.getByRole('grid', { name: 'Result', exact: true })
    await grid.getByRole('columnheader', { name: ODD }).waitFor()
    await grid.getByRole('gridcell', { name: ODD, exact: true }).waitFor()
    await accessible(page, 'hostile rows')
    await shot(page, 'bad-names-grid')
    for (const path of [
      exposure,
      exposure.replace(/exposure$/, 'documentation'),
      exposure.replace(/exposure$/, 'health'),
      '/app/t/shop/activity',
      '/app/t/shop/activity?tab=refusals',
    ]) {
      await page.goto(path)
      await page.getByText('<img src=x', { exact: false }).first().waitFor()
      assert.equal(await page.locator('main img').count(), 0, `${path} has an image`)
      const loose = await page.evaluate<string[]>(`(() => {
        const found = [], walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
        for (let node = walk.nextNode(); node !== null; node = walk.nextNode())
          if (node.data.includes('\\u202e') && node.parentElement.closest('bdi, pre, code, textarea') === null)
            found.push(node.parentElement.outerHTML.slice(0, 200))
        return found
      })()`)
      assert.deepEqual(loose, [], `${path} lets a name reverse the text beside it`)
    }
    browser.clean(/status of 404 .*\/test\)/)
  })

  test('a team, a datasource, a key and a person may have any name', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const odd = '<b>x</b>\u202egnp'
    const eve = await app.person('Eve')
    await eve.must('PATCH', '/users/me', { name: odd })
    const teamId = await app.team(eve, odd)
    const { slug } = await eve.must('GET', `/teams/${teamId}`)
    await app.datasource(eve, teamId, { ...shop.spec, name: odd })
    await app.key(eve, { name: odd })
    const page = await browser.open(app)
    await signIn(page, eve.email, `/app/t/${slug}/datasources`)
    for (const [path, heading] of [
      [`/app/t/${slug}`, 'Home'],
      [`/app/t/${slug}/datasources`, 'Datasources'],
      [`/app/t/${slug}/members`, 'Members'],
      [`/app/t/${slug}/activity`, 'Activity'],
      [`/app/t/${slug}/playground`, 'Playground'],
      ['/app/settings/keys', 'API keys'],
    ] as const) {
      await page.goto(path)
      await ready(page, heading)
      assert.equal(await page.locator('main b, header b').count(), 0, `${path} renders a name as markup`)
      await accessible(page, path)
    }
    await shot(page, 'bad-names')
    browser.clean()
  })

  test('1,600 columns and a value of 1 MB stay usable', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    await expose('wide')
    const page = await browser.open(app)
    await signIn(page, owner.email, playground('SELECT * FROM wide'))
    const grid = page.getByRole('grid', { name: 'Result', exact: true })
    await page.getByRole('button', { name: /^Run query/ }).click()
    await grid.waitFor()
    assert.equal(await grid.getAttribute('aria-colcount'), String(WIDE_COLUMNS))
    await grid.focus()
    await page.keyboard.press('End')
    await grid.getByRole('columnheader', { name: `c${WIDE_COLUMNS - 1}` }).waitFor()
    await page.keyboard.press('Enter')
    await page
      .getByRole('dialog', { name: `c${WIDE_COLUMNS - 1}`, exact: true })
      .getByText('false')
      .waitFor()
    await page.keyboard.press('Escape')
    const bound = 3_000
    const nodes = () => page.locator('*').count()
    assert.ok((await nodes()) < bound, 'only the visible part is in the document')
    await page.goto(exposure)
    await page.getByRole('searchbox').fill('wide')
    await page.getByRole('treeitem', { name: /^wide/ }).press('ArrowRight')
    await page.getByRole('tree').focus()
    await page.keyboard.press('End')
    assert.ok((await nodes()) < bound, 'a table of 1,600 columns is cut to the visible part')

    await expose(ODD)
    await page.goto(playground(`SELECT * FROM "${ODD}" WHERE id = 2`))
    await page.getByRole('button', { name: /^Run query/ }).click()
    await grid.waitFor()
    await grid.focus()
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    const cell = page.getByRole('dialog', { name: ODD })
    const value = cell.getByRole('group', { name: 'Value', exact: true })
    await value.waitFor()
    assert.ok(((await value.textContent()) ?? '').length < 100_000, 'the page shows a part')
    await accessible(page, 'a large value')
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      cell.getByRole('button', { name: 'Download value', exact: true }).click(),
    ])
    assert.equal(file.suggestedFilename().endsWith('.txt'), true)
    browser.clean(REPLACED)
  })

  test('if a part of a page could not be loaded, the page says so, and a retry loads it', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(app)
    await signIn(page, owner.email)
    await ready(page, 'Home')
    const at = `/app/t/shop/datasources/${shop.datasourceId}`
    const body = JSON.stringify({ error: 'The service failed.', code: 'INTERNAL', requestId: 'r-2' })
    for (const [path, broken] of [
      ['/app/t/shop', /\/usage\?/],
      ['/app/t/shop/datasources', /\/datasources$/],
      [`${at}/exposure`, /\/catalog$/],
      [`${at}/documentation`, /\/documentation$/],
      [`${at}/access`, /\/members$/],
      [`${at}/health`, /\/drift$/],
      ['/app/t/shop/activity', /\/audit\?/],
      ['/app/t/shop/activity?tab=refusals', /\/refusals\?/],
      ['/app/t/shop/activity?tab=usage', /\/usage\?/],
      ['/app/t/shop/members', /\/members$/],
      ['/app/t/shop/keys', /\/keys$/],
      ['/app/settings/keys', /users\/me\/keys$/],
    ] as const) {
      const address = new RegExp(`^${app.url}/(?!app/).*${broken.source}`)
      await page.route(address, (route) => route.fulfill({ status: 500, contentType: 'application/json', body }))
      await page.goto(path)
      const alert = page.getByRole('alert').filter({ hasText: 'could not be loaded. The service failed.' })
      await alert.first().waitFor()
      await alert.first().getByText('Request r-2').waitFor()
      await accessible(page, `${path} failed`)
      await page.unroute(address)
      await button(page, 'Try again').first().click()
      await alert.first().waitFor({ state: 'detached' })
    }
    await eachLook(page, '/app/no/such/page', 'Nothing here', 'nothing-here')
    browser.clean(/status of 500|status of 404 .*\/test\)/)
  })
})
