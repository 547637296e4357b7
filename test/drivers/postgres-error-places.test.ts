// The driver converts the position of a database error in the printed SQL to the position in the caller’s SQL, in
// UTF-16 units. This must also work if the guard has remembered the shape of the query.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AppError } from '../../src/errors.ts'
import type { Catalog, Connection, Driver, Limits } from '../../src/drivers/driver.ts'
import { createPostgresDriver } from '../../src/drivers/postgres/driver.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { settingsOf } from '../support/postgres-session.ts'

const LIMITS: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 5_000, maxCost: 1e9 }
const signal = new AbortController().signal
const SETUP = `
CREATE TABLE orders (id int PRIMARY KEY, note text, total numeric, t1 int, doc json, flag bool, due date);
INSERT INTO orders VALUES (1, 'x', 0, 1, '{}', true, '2026-01-01');
ANALYZE;`

let server: TestPostgres
let driver: Driver
let connection: Connection
let catalog: Catalog

before(async () => {
  server = await startPostgres()
  const database = await server.createDatabase('places', SETUP)
  driver = await createPostgresDriver()
  connection = await driver.connect(settingsOf(server, database), { allowPrivateHosts: true }, signal)
  catalog = await connection.introspect(signal)
})
after(async () => {
  await connection[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

async function failed(sql: string, more: Partial<Limits> = {}, params?: readonly unknown[]): Promise<AppError> {
  const limits = { ...LIMITS, ...more }
  const verdict = await driver.confine(driver.read({ sql, ...(params && { params }) }), catalog, limits, signal)
  assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
  if (verdict.kind !== 'confined') return assert.fail()
  try {
    await connection.run(verdict.query, limits, signal)
  } catch (error) {
    assert.ok(error instanceof AppError, String(error))
    assert.equal(error.code, 'QUERY_FAILED', error.message)
    return error
  }
  return assert.fail(`did not fail: ${sql}`)
}

/**
 * Queries that fail, and the expected error. The sign ‹ marks the expected position of the error, and is removed before
 * the query runs.
 */
const PLACED: readonly (readonly [string, RegExp])[] = [
  ['SELECT note ‹+ id FROM orders', /operator does not exist: text \+ integer/],
  ["SELECT 'ü😀', id, (id ‹- note) FROM orders o", /integer - text/],
  ['SELECT ‹note, count(*) FROM orders', /column "orders.note" must appear in the GROUP BY/],
  ['SELECT count(*), ‹* FROM orders GROUP BY total', /column "orders.id" must appear/],
  [
    'SELECT o.total FROM orders o GROUP BY o.total HAVING ‹max(o.flag) > 1',
    /function max\(boolean\) does not exist|max/,
  ],
  ['SELECT id FROM orders WHERE ‹note', /argument of WHERE must be type boolean, not type text/],
  ['SELECT ‹abs(note) FROM orders', /function abs\(text\) does not exist/],
  ['SELECT id FROM orders WHERE id = 1 AND ‹round(note, 2) = 1', /function round\(text, integer\)/],
  ['SELECT id FROM orders WHERE id = ‹$$abc$$', /not a valid value/],
  ["SELECT id FROM orders WHERE due > ‹'yesteryear'", /not a valid date/],
  ['SELECT CASE WHEN flag THEN ‹id ELSE flag END FROM orders', /CASE types/],
  ['SELECT id FROM orders UNION SELECT ‹note FROM orders', /UNION types integer and text cannot be matched/],
  ['SELECT id FROM orders UNION SELECT ‹id, note FROM orders', /each UNION query must have the same number/],
  ['SELECT DISTINCT id FROM orders ORDER BY ‹note', /ORDER BY expressions must appear in select list/],
  ['SELECT DISTINCT ‹doc FROM orders', /could not identify an equality operator for type json/],
  [
    'SELECT id, sum(total) FROM orders WHERE ‹sum(total) > 1 GROUP BY id',
    /aggregate functions are not allowed in WHERE/,
  ],
  ['SELECT x.n FROM (SELECT ‹note, count(*) AS n FROM orders) x', /"orders.note" must appear/],
  ['WITH w AS (SELECT note ‹+ 1 AS n FROM orders) SELECT n FROM w', /text \+ integer/],
  ["SELECT id FROM orders LIMIT ‹'a'", /not a valid value/],
  ['SELECT CAST(flag AS date) FROM orders', /cannot cast type boolean to date/],
]

describe('an error of the database has a position in the caller’s text', () => {
  for (const [marked, message] of PLACED) {
    test(marked, async () => {
      const sql = marked.replace('‹', '')
      const error = await failed(sql)
      assert.match(error.message, message)
      assert.doesNotMatch(error.message, /\b_*[tc]\d+\b(?<!orders\.t1)/)
      assert.match(String(error.extra['hint']), /\.$/)
      const at = marked.indexOf('‹')
      if (at >= 0) assert.equal(error.extra['position'], at, sql)
    })
  }
})

test('the position of an error is right for each query of one shape, with and without EXPLAIN', async () => {
  for (const maxCost of [1e9, 1e8]) {
    for (const n of [1, 22, 333, 4_444, 55_555]) {
      const sql = `SELECT id FROM orders WHERE id > ${n} AND total < ${n * 10} AND note = 5`
      const error = await failed(sql, { maxCost })
      assert.match(error.message, /text = integer/)
      assert.equal(error.extra['position'], sql.lastIndexOf('='))
    }
  }
})

test('the position of an error is right for a query with parameters', async () => {
  const sql = 'SELECT id FROM orders WHERE note = $2 AND total > $1 AND note = 5'
  for (const params of [
    [1, 'a'],
    [22_222, 'bcd'],
  ]) {
    assert.equal((await failed(sql, {}, params)).extra['position'], sql.lastIndexOf('='))
  }
})

test('an error at run time has a hint but no position', async () => {
  const error = await failed('SELECT 1 / total FROM orders')
  assert.deepEqual([error.message, error.extra], ['Division by zero.', { hint: 'Divide by NULLIF(x, 0).' }])
})

test('if a database error names a column, the refusal has the column in a separate field', async () => {
  const error = await failed('SELECT o.note, count(*) FROM orders o')
  assert.equal(error.extra['column'], 'o.note')
})

test('an error names the alias that the caller wrote, even if a column has the same name as a generated alias', async () => {
  const error = await failed(
    'WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 0.5 FROM r) SELECT r.n, t1 FROM r, orders',
  )
  assert.match(error.message, /recursive query "r" column 1 has type integer/)
})
