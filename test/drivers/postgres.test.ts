// Runs the tests of conformance.ts for PostgreSQL, with the least-privilege login that the connection test recommends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog, SettingsInput } from '../../src/drivers/driver.ts'
import { createPostgresDriver } from '../../src/drivers/postgres/driver.ts'
import { startPostgres } from '../support/postgres.ts'
import { conformance, type Ground } from './conformance.ts'

const shop = `
CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL, price numeric(10,2), supplier_secret text NOT NULL);
INSERT INTO products SELECT i, 'p' || i, i / 4.0, 'CANARY_' || i FROM generate_series(1, 2000) i;
CREATE TABLE secrets (token text); INSERT INTO secrets VALUES ('CANARY_token'); ANALYZE;
CREATE ROLE reader LOGIN PASSWORD 'reader-pw'; GRANT SELECT (id, name, price) ON products TO reader`

async function open(): Promise<Ground> {
  const stack = new AsyncDisposableStack()
  const server = stack.use(await startPostgres({ settings: {} }))
  const database = await server.createDatabase('shop', shop)
  const driver = stack.use(await createPostgresDriver())
  const settings: SettingsInput = {
    connectionMode: 'DIRECT',
    host: server.host,
    port: server.port,
    database,
    username: 'reader',
    sslMode: 'disable',
    config: {},
    secrets: { password: 'reader-pw' },
  }
  return {
    driver,
    settings,
    wrongPassword: { ...settings, secrets: { password: 'wrong' } },
    nobody: { ...settings, port: 1 },
    cut: exposedOnly,
    bodies: {
      small: { sql: 'SELECT id, name, price FROM products ORDER BY id LIMIT 2' },
      rows: '[[1,"p1",0.25],[2,"p2",0.50]]',
      many: { sql: 'SELECT id FROM products' },
      wide: { sql: `SELECT string_agg(name, ',' ORDER BY id) FROM products, generate_series(1, 60) GROUP BY id % 20` },
      slow: { sql: 'SELECT count(*) FROM products a, products b, products c WHERE a.price + b.price < c.price' },
      failing: { sql: 'SELECT 1 / (id - 1) FROM products' },
      hidden: { sql: 'SELECT supplier_secret FROM products' },
      writing: { sql: 'DELETE FROM products' },
      malformed: { sql: 'SELEC 1' },
    },
    secret: /CANARY|reader-pw|secrets|token/,
    async working() {
      const sql = `SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active' AND query LIKE '%count%'`
      return Number((await server.query('postgres', sql))[0]?.[0])
    },
    alien: null,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

function exposedOnly(catalog: Catalog): Catalog {
  const tables = catalog.tables
    .filter((table) => table.table === 'products')
    .map((table) => ({ ...table, columns: table.columns.filter((column) => column.unexposable === null) }))
  assert.deepEqual(
    tables.map((table) => table.columns.map((column) => column.name)),
    [['id', 'name', 'price']],
  )
  return { ...catalog, tables }
}

conformance('POSTGRES', open)

test('the PostgreSQL driver gives its words for schema, table and query language', async () => {
  await using driver = await createPostgresDriver()
  assert.deepEqual(driver.vocabulary, { schema: 'schema', table: 'table', queryLanguage: 'PostgreSQL SQL' })
})
