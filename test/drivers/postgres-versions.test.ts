// PostgreSQL 14 to 18 must give the same catalog and the same result of the connection test. Each version must answer
// or refuse each query like the others. If a server cannot be installed, its test is skipped with a message.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import type { Catalog, Connection, Driver, Limits } from '../../src/drivers/driver.ts'
import { createPostgresDriver } from '../../src/drivers/postgres/driver.ts'
import { FUNCTIONS } from '../../src/drivers/postgres/guard/allowed/allowed-functions.ts'
import { engineOrLack, NoSuchEngine } from '../support/no-such-engine.ts'
import { startPostgres, type PostgresVersion, type TestPostgres } from '../support/postgres.ts'

const attacks = join(import.meta.dirname, '../attacks/postgres')
const fixture = readFileSync(join(attacks, 'fixture.sql'), 'utf8')
const exposure = JSON.parse(readFileSync(join(attacks, 'exposure.json'), 'utf8')) as {
  tables: { schema: string; table: string; columns: string[] | null }[]
}
const limits: Limits = { rowCap: 2_000, maxResponseBytes: 5_000_000, timeoutMs: 20_000, maxCost: 1e9 }

const answered = [
  'SELECT * FROM customers ORDER BY id LIMIT 5',
  'SELECT * FROM typed_values ORDER BY id',
  'SELECT id, ia, na, x::text FROM typed_values ORDER BY id',
  'SELECT c.id, c.name, c.country, count(*) FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.id ORDER BY 4 DESC, 1 LIMIT 10',
  `SELECT status, sum(total), avg(total), min(ordered_at) FROM orders WHERE note ILIKE '%NOTE%' GROUP BY status ORDER BY status`,
  'SELECT country, percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders JOIN customers c ON c.id = customer_id GROUP BY 1 ORDER BY 1',
  'SELECT id, row_number() OVER (PARTITION BY category ORDER BY price DESC, id) AS rank FROM products ORDER BY category, rank',
  "SELECT coalesce(category, 'all') AS category, active, count(*) FROM products GROUP BY ROLLUP (category, active) ORDER BY 1, 2",
  'WITH RECURSIVE boss AS (SELECT id, name, 0 AS depth FROM employees WHERE manager_id IS NULL UNION ALL SELECT e.id, e.name, depth + 1 FROM employees e JOIN boss b ON e.manager_id = b.id) SELECT * FROM boss ORDER BY id',
  `SELECT o.id, t.tag FROM orders o, LATERAL jsonb_array_elements_text(o.meta -> 'tags') AS t(tag) WHERE o.id < 6 ORDER BY 1, 2`,
  `SELECT date_trunc('month', at) AS month, count(*), avg(value) FROM measurements GROUP BY 1 ORDER BY 1`,
  `SELECT extract(year FROM ordered_at) AS y, extract(epoch FROM ordered_at) AS e FROM orders ORDER BY id LIMIT 3`,
  'SELECT "Id", "Straße", "a.b" FROM "Weird Table" ORDER BY 1',
  'SELECT "Region Name", "Revenue (EUR)" FROM "Sales Ops"."Q1 Report" ORDER BY 1',
  'SELECT * FROM events ORDER BY id',
  'SELECT * FROM ONLY events ORDER BY id DESC LIMIT 3',
  'SELECT id FROM orders WHERE id IN (SELECT order_id FROM order_items GROUP BY order_id HAVING count(*) > 2) ORDER BY id LIMIT 5',
  `SELECT json_agg(json_build_object('id', id, 'tags', tags) ORDER BY id) FROM products WHERE id < 4`,
  `SELECT to_tsvector('english', name) @@ to_tsquery('english', 'product') FROM products LIMIT 1`,
  'SELECT unnest(tags) AS tag, count(*) FROM products GROUP BY 1 ORDER BY 2 DESC, 1 FETCH FIRST 2 ROWS WITH TIES',
  'SELECT r.label, s.id, s.area FROM stores s JOIN regions r ON (r.country, r.code) = (s.country, s.region_code) ORDER BY 2',
  `SELECT true AS yes, 1e400::numeric, '1 day'::interval, 'paid'::order_status, DATE '2024-02-29' + 1`,
  "VALUES (1, 'a'), (2, NULL) ORDER BY 1 DESC",
  'SELECT sum(n) FROM mv_daily_sales',
  "SELECT count(*) FROM v_customer_public WHERE country = 'DE'",
  'SELECT id FROM tenant_docs UNION SELECT id FROM stores ORDER BY 1',
]

const refused = [
  'SELECT ssn FROM customers',
  'SELECT token FROM api_keys',
  "SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) AS f",
  "SELECT lo_from_bytea(0, 'x')",
  'SELECT row_to_json(null::api_keys)',
  'SELECT relname FROM pg_catalog.pg_class',
  'SELECT 5::leaky_dom',
]

/**
 * Selects overloads of functions that a query may call, and that may be dangerous: volatile functions, SECURITY DEFINER
 * functions, and functions with an argument whose value is the name or id of a database object. Each overload must
 * match HARMLESS.
 */
const SUSPECT = `
  SELECT p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')'
  FROM pg_proc p
  WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY ('{${[...FUNCTIONS].join(',')}}')
    AND (p.provolatile = 'v' OR p.prosecdef OR EXISTS (
      SELECT FROM unnest(p.proargtypes) AS a(oid) JOIN pg_type t ON t.oid = a.oid
      WHERE t.typname ~ '^_?(reg|internal|cstring|refcursor|oid)'))
  ORDER BY 1`

/**
 * These overloads only read the clock, return random values, or use object ids as numbers. The guard checks the value
 * of a regconfig argument (text-search.ts).
 */
const HARMLESS =
  /^(?:(?:array_sample|array_shuffle|clock_timestamp|gen_random_uuid|random|random_normal|timeofday|timezone|uuidv4|uuidv7)\(|(?:int8|max|min)\(oid\)|\w+\(regconfig, )/

/** Returns the parts of a catalog that must be equal in all versions: without oids, sizes and versions. */
function shape(catalog: Catalog): unknown {
  return catalog.tables
    .filter((table) => !table.warnings.some((warning) => warning.includes('extension')))
    .map(({ schema, table, kind, description, estimatedRows, columns, warnings }) => ({
      name: `${schema}.${table}`,
      about: [kind, description, estimatedRows, warnings],
      columns: columns.map(({ detail: _, ...column }) => column),
    }))
}

function cut(catalog: Catalog): Catalog {
  const tables = exposure.tables.flatMap(({ schema, table, columns }) => {
    const found = catalog.tables.find((one) => one.schema === schema && one.table === table)
    assert.ok(found, table)
    return [{ ...found, columns: found.columns.filter((column) => columns?.includes(column.name) ?? true) }]
  })
  return { ...catalog, tables }
}

interface Look {
  readonly catalog: unknown
  readonly steps: unknown
  readonly answers: readonly unknown[]
  readonly suspect: readonly string[]
}

async function look(server: TestPostgres, driver: Driver): Promise<Look> {
  const database = await server.createDatabase('shop', fixture)
  const settings = driver.settings({
    connectionMode: 'DIRECT',
    host: server.host,
    port: server.port,
    database,
    username: server.superuser,
    sslMode: 'disable',
    config: {},
    secrets: { password: server.password },
  })
  const signal = AbortSignal.timeout(60_000)
  await using connection = await driver.connect(settings, { allowPrivateHosts: true }, signal)
  const catalog = await connection.introspect(signal)
  const exposed = cut(catalog)
  const answers: unknown[] = []
  for (const sql of [...answered, ...refused]) answers.push(await answer({ driver, connection, exposed, signal }, sql))
  const { steps } = await connection.test(exposed, signal)
  const suspect = (await server.query(database, SUSPECT)).map(([signature]) => signature ?? '')
  return { catalog: shape(catalog), steps: steps.map((step) => step.name), answers, suspect }
}

async function answer(
  at: {
    readonly driver: Driver
    readonly connection: Connection
    readonly exposed: Catalog
    readonly signal: AbortSignal
  },
  sql: string,
): Promise<unknown> {
  const verdict = await at.driver.confine(at.driver.read({ sql }), at.exposed, limits, at.signal)
  if (verdict.kind !== 'confined') return verdict
  try {
    const { columns, rows } = await at.connection.run(verdict.query, limits, at.signal)
    return { sql, columns, rows }
  } catch (error) {
    return { sql, failed: String(error) }
  }
}

async function lookAt(version: PostgresVersion): Promise<Look | NoSuchEngine> {
  return engineOrLack(async () => {
    await using server = await startPostgres({ version })
    await using driver = await createPostgresDriver()
    return await look(server, driver)
  })
}

function assertHarmless({ suspect }: Look): void {
  assert.ok(suspect.length > 0)
  assert.deepEqual(
    suspect.filter((signature) => !HARMLESS.test(signature)),
    [],
  )
}

describe('PostgreSQL 14 to 18', () => {
  let newest: Look | NoSuchEngine
  before(async () => {
    newest = await lookAt(18)
  })

  test('PostgreSQL 18 answers the allowed queries and refuses the others', (t) => {
    if (newest instanceof NoSuchEngine) return t.skip(newest.message)
    const failed = newest.answers.slice(0, answered.length).filter((one) => !(one as { rows?: string }).rows)
    assert.deepEqual(failed, [])
    const ran = newest.answers.slice(answered.length).filter((one) => (one as { kind?: string }).kind !== 'denied')
    assert.deepEqual(ran, [])
    assertHarmless(newest)
  })

  for (const version of [14, 15, 16, 17] as const) {
    test(`PostgreSQL ${version} has the same catalog, answers and refusals as PostgreSQL 18`, async (t) => {
      const seen = await lookAt(version)
      if (seen instanceof NoSuchEngine) return t.skip(seen.message)
      if (newest instanceof NoSuchEngine) return t.skip(newest.message)
      assert.deepEqual(seen.catalog, newest.catalog)
      assert.deepEqual(seen.steps, newest.steps)
      assertHarmless(seen)
      for (const [index, answer] of seen.answers.entries()) assert.deepEqual(answer, newest.answers[index])
    })
  }
})
