// Runs conformance.ts for BigQuery. The strict double of the REST API checks real tokens.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import type { Catalog, SettingsInput } from '../../src/drivers/driver.ts'
import { createBigQueryDriver } from '../../src/drivers/bigquery/driver.ts'
import { cut } from '../../src/exposure/cut-catalog.ts'
import { TestDoor } from '../support/bigquery-door.ts'
import { PROJECT, startShop } from '../support/bigquery-shop.ts'
import { conformance, type Ground } from './conformance.ts'

const EXPOSED = ['id', 'name', 'price']

async function open(): Promise<Ground> {
  const stack = new AsyncDisposableStack()
  const door = new TestDoor()
  const double = stack.use(await startShop([], { door, pageRows: 700 }))
  stack.defer(() => assert.deepEqual(double.violations, []))
  const driver = stack.use(await createBigQueryDriver({ connector: double.connector, allowEndpoint: true }))
  const settings: SettingsInput = {
    connectionMode: 'SERVICE_ACCOUNT',
    database: PROJECT,
    config: { location: 'EU' },
    secrets: { serviceAccountKey: door.keyFile() },
  }
  return {
    driver,
    settings,
    wrongPassword: { ...settings, secrets: { serviceAccountKey: new TestDoor({ hasOwnKeys: true }).keyFile() } },
    nobody: { ...settings, config: { apiEndpoint: 'http://127.0.0.1:1' }, secrets: {} },
    cut: exposedOnly,
    bodies: {
      small: { sql: 'SELECT id, name FROM shop.products ORDER BY id LIMIT 2' },
      rows: '[[1,"p1"],[2,"p2"]]',
      many: { sql: "SELECT id FROM shop.products WHERE name != 'many'" },
      wide: { sql: "SELECT REPEAT(name, 300) AS name FROM shop.products WHERE name != 'wide'" },
      slow: { sql: "SELECT COUNT(*) FROM shop.products AS a, shop.products AS b WHERE a.name != 'slow'" },
      failing: { sql: "SELECT 1 / (id - 1) FROM shop.products WHERE name != 'failing'" },
      hidden: { sql: 'SELECT token FROM shop.secrets' },
      writing: { sql: 'DELETE FROM shop.products WHERE TRUE' },
      malformed: { sql: 'SELECT FROM (' },
    },
    secret: /CANARY|PRIVATE KEY|secrets|token/,
    // The double runs in this process. immediate() lets it continue between two polls.
    working: () => immediate(double.working),
    alien: null,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

function exposedOnly(catalog: Catalog): Catalog {
  assert.deepEqual(
    catalog.tables.map(({ table }) => table),
    ['products', 'secrets'],
  )
  return cut(catalog, [{ schema: 'shop', table: 'products', columns: EXPOSED }])
}

conformance('BIGQUERY', open)

test('the BigQuery driver gives its words for its concepts', async () => {
  await using driver = await createBigQueryDriver()
  assert.deepEqual(driver.vocabulary, { schema: 'dataset', table: 'table', queryLanguage: 'GoogleSQL' })
})
