// People learn the addresses, headings, titles and accessible names of the console, and other programs rely on them.
// Each row is one address.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { browserOrSkip, consoleDir, eachLook, ready, signIn } from '../support/console.ts'
import { openShop, type Shop } from '../support/shop.ts'

type Role = Parameters<Page['getByRole']>[0]
type Names = readonly (readonly [Role, ...string[]])[]

const EVERYWHERE: Names = [
  ['link', 'Home', 'Datasources', 'Playground', 'Activity', 'Members', 'Settings', 'API keys', 'Skip to content'],
  ['button', 'Team: Shop', 'Search or jump to', 'Account'],
  ['navigation', 'Main'],
]

const FIELDS: Names = [
  ['textbox', 'Name', 'Connection string', 'Host', 'Port', 'Database', 'Username'],
  ['combobox', 'TLS'],
  ['button', 'Read'],
]

/** In a path, `:id` stands for the id of the datasource. */
const ROWS: readonly (readonly [path: string, heading: string, names: Names])[] = [
  ['/app/t/shop', 'Home', [['region', 'Budget', 'This week', 'Waiting for you']]],
  [
    '/app/t/shop/datasources',
    'Datasources',
    [
      ['link', 'Connect a datasource', 'shop'],
      ['table', 'Datasources'],
      ['button', 'Actions for shop'],
    ],
  ],
  [
    '/app/t/shop/datasources/new',
    'Connect a datasource',
    [
      ['radio', 'PostgreSQL', 'MongoDB', 'BigQuery', 'Everyone from', 'Only people on a list'],
      ['button', 'Check connection'],
      ...FIELDS,
    ],
  ],
  [
    '/app/t/shop/datasources/:id/exposure',
    'Exposure',
    [
      ['tablist', 'Datasource'],
      ['tab', 'Exposure', 'Documentation', 'Access', 'Health', 'Settings'],
      ['searchbox', 'Filter tables and columns'],
      ['group', 'Show'],
      ['button', 'All', 'Exposed', 'Hidden', 'New', 'Looks personal', 'Wanted'],
      ['button', 'Tick matching', 'As an agent sees it', 'Versions'],
      ['tree', 'Tables and columns'],
    ],
  ],
  [
    '/app/t/shop/datasources/:id/documentation',
    'Documentation',
    [
      ['button', 'Propose texts', 'Publish'],
      ['status', 'Coverage'],
    ],
  ],
  [
    '/app/t/shop/datasources/:id/access',
    'Access',
    [
      ['radiogroup', 'Who may reach it'],
      ['combobox', 'From role'],
      ['table', 'People'],
      ['button', 'Save access'],
    ],
  ],
  [
    '/app/t/shop/datasources/:id/health',
    'Health',
    [
      ['button', 'Check connection', 'Look again'],
      ['region', 'Changes in the database'],
    ],
  ],
  [
    '/app/t/shop/datasources/:id/settings',
    'Settings',
    [['button', 'Save connection', 'Disable datasource', 'Delete datasource'], ...FIELDS],
  ],
  [
    '/app/t/shop/playground',
    'Playground',
    [
      ['combobox', 'Datasource', 'Run as'],
      ['textbox', 'Query'],
      ['status', 'Verdict'],
      ['meter', 'Cost'],
      ['tablist', 'Answer'],
      ['tab', 'Result', 'What the database saw', 'Plan and cost', 'As curl'],
      ['button', 'Run query', 'Stop'],
    ],
  ],
  [
    '/app/t/shop/activity',
    'Activity',
    [
      ['tablist', 'Activity'],
      ['tab', 'Calls', 'Refusals', 'Usage'],
      ['combobox', 'Outcome', 'Datasource', 'Key', 'Person', 'Time'],
      ['switch', 'Live'],
      ['button', 'Export'],
      ['table', 'Calls'],
    ],
  ],
  ['/app/t/shop/activity?tab=refusals', 'Activity', [['combobox', 'Time']]],
  ['/app/t/shop/activity?tab=usage', 'Activity', [['table', 'Queries per day']]],
  [
    '/app/t/shop/members',
    'Members',
    [
      ['button', 'Invite a colleague'],
      ['table', 'Members'],
    ],
  ],
  ['/app/t/shop/keys', 'API keys of this team', [['table', 'API keys']]],
  [
    '/app/t/shop/settings',
    'Team',
    [
      ['textbox', 'Name', 'Slug'],
      ['spinbutton', 'Queries', 'Seconds', 'Row cap', 'Timeout in seconds', 'Keep audit for days'],
      ['checkbox', 'Redact literals'],
      ['button', 'Save settings', 'Delete team'],
    ],
  ],
  [
    '/app/settings/keys',
    'API keys',
    [
      ['button', 'Create key', 'Actions for test'],
      ['table', 'API keys'],
    ],
  ],
  [
    '/app/settings/profile',
    'Profile',
    [
      ['textbox', 'Name'],
      ['combobox', 'Theme'],
      ['checkbox', 'Single-key shortcuts'],
      ['button', 'Save', 'Delete account'],
    ],
  ],
  [
    '/app/settings/security',
    'Security',
    [
      ['form', 'Change password'],
      ['table', 'Sessions'],
      ['button', 'Turn on two-factor', 'End all other sessions', 'Add passkey'],
    ],
  ],
  ['/app/no/such/page', 'Nothing here', []],
]

describe('the names of the console', () => {
  let shop: Shop
  before(async () => {
    shop = await openShop({ consoleDir: await consoleDir() })
    await shop.query('SELECT email FROM customers')
  })
  after(() => shop[Symbol.asyncDispose]())

  test('each page of the console has its heading, title and accessible names', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, '/app/t/shop')
    const missing: string[] = []
    for (const [path, heading, names] of ROWS) {
      await page.goto(path.replace(':id', shop.datasourceId))
      await ready(page, heading)
      for (const [role, ...all] of [...names, ...EVERYWHERE]) {
        for (const name of all) {
          const found = page.getByRole(role, { name, exact: true }).first()
          await found.waitFor({ state: 'attached' }).catch(() => missing.push(`${path}: ${role} ${name}`))
        }
      }
      const title = await page.title()
      if (!title.startsWith(`${heading} · `) || !title.endsWith('Vitrine')) missing.push(`${path}: title ${title}`)
    }
    assert.deepEqual(missing, [])
    browser.clean(/status of 404 .*\/test\)/)
  })

  test('usage, welcome and the second factor are accessible in both themes and at both widths', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, '/app/t/shop')
    await eachLook(page, '/app/t/shop/activity?tab=usage', 'Activity', 'usage')
    await eachLook(page, '/app/welcome', 'Welcome', 'welcome')
    const outside = await browser.open(shop.app)
    await eachLook(outside, '/app/two-factor', 'Enter your code', 'two-factor')
    browser.clean()
  })

  test('at a width of 320 px, no page scrolls sideways', async (t) => {
    await using browser = await browserOrSkip(t)
    if (browser === null) return
    const page = await browser.open(shop.app)
    await signIn(page, shop.owner.email, '/app/t/shop')
    await page.setViewportSize({ width: 320, height: 640 })
    const wide: string[] = []
    for (const [path, heading] of ROWS) {
      await page.goto(path.replace(':id', shop.datasourceId))
      await ready(page, heading)
      const over = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      if (over > 0) wide.push(`${path}: ${over} px`)
    }
    assert.deepEqual(wide, [])
    browser.clean(/status of 404 .*\/test\)/)
  })
})
