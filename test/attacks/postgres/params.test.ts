// Tests parameters on a real server. A parameter means what its value would mean as a literal in the SQL. It is bound,
// never printed, and bypasses no rule of the guard.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { unseal } from '../../../src/drivers/confined.ts'
import type { Catalog, Connection, Driver, Limits } from '../../../src/drivers/driver.ts'
import { createPostgresDriver } from '../../../src/drivers/postgres/driver.ts'
import type { PostgresQuery } from '../../../src/drivers/postgres/confined-query.ts'
import { AppError } from '../../../src/errors.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { settingsOf } from '../../support/postgres-session.ts'

const LIMITS: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 10_000, maxCost: 1e9 }
const signal = new AbortController().signal

const SQL = `
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE DOMAIN small AS int CHECK (value < 10);
CREATE TABLE items (id int PRIMARY KEY, big int8, tiny int2, price numeric, ratio float8, name text, at timestamptz, day date,
  yes bool, ref uuid, doc jsonb, list int[], mood mood, secret text);
INSERT INTO items SELECT n, n * 10000000000, n, n + 0.5, n, 'name ' || n, timestamptz '2024-01-01Z' + n * interval '1 day',
  date '2024-01-01' + n, n % 2 = 0, md5(n::text)::uuid, jsonb_build_object('n', n), ARRAY[n, n + 1], 'glad', 'CANARY'
  FROM generate_series(1, 2000) n;
CREATE TEXT SEARCH CONFIGURATION hidden_cfg (COPY = simple);
ANALYZE`

let server: TestPostgres
let driver: Driver
let connection: Connection
let exposed: Catalog
before(async () => {
  server = await startPostgres()
  driver = await createPostgresDriver()
  const database = await server.createDatabase('params', SQL)
  connection = await driver.connect(settingsOf(server, database), { allowPrivateHosts: true }, signal)
  const catalog = await connection.introspect(signal)
  const tables = catalog.tables.map((table) => ({
    ...table,
    columns: table.columns.filter((column) => column.name !== 'secret'),
  }))
  exposed = { ...catalog, tables }
})
after(async () => {
  await connection[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

/**
 * Returns the rows. If the query fails, returns the kind and name of a refusal, the details of a bad request, or the
 * code of another error.
 */
async function ask(sql: string, params?: unknown): Promise<string> {
  try {
    const verdict = await driver.confine(driver.read({ sql, ...(params !== undefined && { params }) }), exposed, LIMITS, signal)
    if (verdict.kind === 'denied') return `${verdict.blocked.kind}: ${verdict.blocked.name}`
    if (verdict.kind !== 'confined') return verdict.kind
    return String((await connection.run(verdict.query, LIMITS, signal)).rows)
  } catch (error) {
    assert.ok(error instanceof AppError, String(error))
    const details = error.extra['details']
    return Array.isArray(details) ? details.join('; ') : error.code
  }
}

async function printed(sql: string, params: unknown): Promise<PostgresQuery> {
  const verdict = await driver.confine(driver.read({ sql, params }), exposed, LIMITS, signal)
  assert.ok(verdict.kind === 'confined', JSON.stringify(verdict))
  return unseal<PostgresQuery>(verdict.query, 'POSTGRES')
}

const typed = (type: string, value: unknown) => ({ type, value })

describe('a parameter means what its value would mean in the query', () => {
  const rows: readonly (readonly [string, readonly unknown[], string])[] = [
    ['SELECT id FROM items WHERE id = $1', [7], '[[7]]'],
    ['SELECT id FROM items WHERE big = $1', [70_000_000_000], '[[7]]'],
    ['SELECT id FROM items WHERE big = $1', ['70000000000'], '[[7]]'],
    ['SELECT id FROM items WHERE tiny = $1', [7], '[[7]]'],
    ['SELECT id FROM items WHERE tiny = $1', [70_000], '[]'],
    ['SELECT id FROM items WHERE price = $1', [7.5], '[[7]]'],
    ['SELECT id FROM items WHERE id < $1 AND ratio > $2', [9, 7.5], '[[8]]'],
    ['SELECT id FROM items WHERE name = $1', ['name 7'], '[[7]]'],
    ['SELECT id FROM items WHERE at > $1 AND at <= $2 ORDER BY 1', ['2024-01-07', '2024-01-09T00:00:00Z'], '[[7],[8]]'],
    ['SELECT id FROM items WHERE day = $1::date', ['2024-01-08'], '[[7]]'],
    ['SELECT id FROM items WHERE day = $1', [typed('date', '2024-01-08')], '[[7]]'],
    ['SELECT id FROM items WHERE at < now() - $1::interval ORDER BY id LIMIT $2', ['1 day', 2], '[[1],[2]]'],
    ['SELECT count(*) FROM items WHERE yes = $1', [true], '[[1000]]'],
    ['SELECT count(*) FROM items WHERE $1', [false], '[[0]]'],
    ['SELECT id FROM items WHERE ref = $1', ['8f14e45fceea167a5a36dedd4bea2543'], '[[7]]'],
    ['SELECT id FROM items WHERE doc @> $1', ['{"n":7}'], '[[7]]'],
    ['SELECT id FROM items WHERE id = ANY($1) ORDER BY 1', [typed('int4[]', '{7,9}')], '[[7],[9]]'],
    ['SELECT id FROM items WHERE id = ANY($1) ORDER BY 1', ['{7,9}'], '[[7],[9]]'],
    ['SELECT id FROM items WHERE id IN ($1, $2, $1) ORDER BY 1', [7, 9], '[[7],[9]]'],
    ['SELECT id FROM items WHERE list @> ARRAY[$1, $2]', [7, 8], '[[7]]'],
    ['SELECT count(*) FROM items WHERE mood = $1', ['sad'], '[[0]]'],
    ['SELECT count(*) FROM items WHERE mood = $1', [typed('mood', 'glad')], '[[2000]]'],
    ['SELECT id FROM items WHERE name ~ $1 ORDER BY id LIMIT 1', ['7$'], '[[7]]'],
    ['SELECT id FROM items ORDER BY id LIMIT $1 OFFSET $2', [2, 5], '[[6],[7]]'],
    ['SELECT id FROM items WHERE ($1 IS NULL OR name = $1) AND ($2 IS NULL OR at > $2) AND id < 3 ORDER BY 1', [null, null], '[[1],[2]]'],
    ['SELECT id FROM items WHERE ($1 IS NULL OR name = $1) AND ($2 IS NULL OR at > $2) AND id < 9', ['name 7', '2024-01-02'], '[[7]]'],
    ['SELECT date_trunc($1, at) AS m, count(*) FROM items WHERE id < 40 GROUP BY date_trunc($1, at) ORDER BY 1', ['month'], '[["2024-01-01T00:00:00Z",30],["2024-02-01T00:00:00Z",9]]'],
    ['SELECT date_trunc($1, at), count(*) FROM items WHERE id < 3 GROUP BY 1', ['year'], '[["2024-01-01T00:00:00Z",2]]'],
    ['SELECT id % $1 AS k, count(*) FROM items GROUP BY id % $1 HAVING count(*) > $2 ORDER BY 1', [2, 10], '[[0,1000],[1,1000]]'],
    ['SELECT $1, $2, $3, $4, $5', ['a', 1, 1.5, true, null], '[["a",1,1.5,true,null]]'],
    ['SELECT $1 + $2, $1 || $3', [1, 2, 'x'], '[[3,"1x"]]'],
    ["SELECT concat($1, '-', $2), jsonb_build_object('k', $1), coalesce($3, $1)", ['a', 2, null], '[["a-2",{"k": "a"},"a"]]'],
    ['SELECT x FROM (SELECT $1 AS x) s', ['a'], '[["a"]]'],
    ['SELECT $1 UNION ALL SELECT $2', ['a', 'b'], '[["a"],["b"]]'],
    ['SELECT CASE WHEN id = $1 THEN $2 ELSE $3 END FROM items WHERE id = 7', [7, 'yes', 'no'], '[["yes"]]'],
    ['WITH w AS (SELECT * FROM items WHERE id = $1) SELECT id FROM w WHERE id = $1', [7], '[[7]]'],
    ['SELECT generate_series($1, $2)', [1, 2], '[[1],[2]]'],
    ['SELECT $1::numeric(4,1)', ['1.25'], '[[1.3]]'],
    ['SELECT $1::int + $2', ['1', 2], '[[3]]'],
    ['SELECT upper($1), $2::text', ['é"\\\'', '$1'], '[["É\\"\\\\\'","$1"]]'],
    ["SELECT to_tsvector('english', $1) @@ websearch_to_tsquery('english', $2)", ['running dogs', 'dog'], '[[true]]'],
    ['SELECT $1', [typed('jsonb', '{"a": [1]}')], '[[{"a": [1]}]]'],
    ['SELECT $1', [typed('BIGINT', '9007199254740993')], '[["9007199254740993"]]'],
    ['SELECT $1', [typed('timestamp with time zone', '2024-02-29 01:00+01')], '[["2024-02-29T00:00:00Z"]]'],
    ['SELECT $1', [typed('pg_catalog."int4"[]', '{1,NULL}')], '[[[1,null]]]'],
    ['SELECT $1', [typed('numeric', null)], '[[null]]'],
  ]
  for (const [sql, params, expected] of rows) {
    test(`a parameter means what its value would mean: ${sql} ${JSON.stringify(params)}`, async () => {
      // In the first turn the guard judges the query, in the second it remembers the shape, and in the third it uses
      // the shape.
      for (let turn = 0; turn < 3; turn++) assert.equal(await ask(sql, params), expected)
      const query = await printed(sql, params)
      for (const value of params) {
        const text = typeof value === 'object' && value !== null ? (value as { value: unknown }).value : value
        if (typeof text === 'string' && text.length > 3) assert.ok(!query.text.includes(text), query.text)
      }
      assert.match(query.text, /\$1/)
    })
  }
})

describe('parameters that do not fit are refused', () => {
  const rows: readonly (readonly [string, unknown, string | RegExp])[] = [
    ['SELECT $1', undefined, 'params: has no value for $1'],
    ['SELECT $1, $2', [1], 'params: has no value for $2'],
    ['SELECT 1', [1], 'params.0: the query does not use $1'],
    ['SELECT $2', [1, 2], 'params.0: the query does not use $1'],
    ['SELECT $1', [1, 2], 'params.1: the query does not use $2'],
    ['SELECT $1', { a: 1 }, 'params: must be an array'],
    ['SELECT $1', [[1]], /params\.0: must be null, a boolean/],
    ['SELECT $1', [9007199254740993], /params\.0: is a whole number beyond/],
    ['SELECT $1', [typed('int4', 2_147_483_648)], /params\.0: is not a value of the type int4: it is not between/],
    ['SELECT $1', [typed('int2', '40000')], /not between/],
    ['SELECT $1', [typed('int8', 1.5)], /it is not a whole number/],
    ['SELECT $1', [typed('int8', true)], /it is not a whole number/],
    ['SELECT $1', [typed('bool', 'maybe')], /it is not a boolean/],
    ['SELECT $1', [typed('bool', 1)], /it is not a boolean/],
    ['SELECT $1', [typed('uuid', 'x')], /it is not a UUID/],
    ['SELECT $1', [typed('date', '2023-02-29')], /the day does not exist/],
    ['SELECT $1', [typed('timestamptz', 5)], /write it as a string/],
    ['SELECT $1', [typed('numeric', 'one')], /it is not a number/],
    ['SELECT $1', [typed('jsonb', '{')], /it is not valid JSON/],
    ['SELECT $1', [typed('text', 5)], /write it as a string/],
    ['SELECT $1', [typed('int4[]', '1,2')], /write an array as a string/],
    ...['regclass', 'pg_catalog.regconfig', 'items', 'public.nothing', 'small', 'unknown', 'record', 'cstring', 'xid'].map(
      (type): [string, unknown, RegExp] => ['SELECT $1', [typed(type, '1')], /does not exist or may not be named/],
    ),
    ...['int4); DROP TABLE items', 'numeric(4,1)', 'a b', '"', 'int4--', "'x'"].map(
      (type): [string, unknown, RegExp] => ['SELECT $1', [typed(type, '1')], /not the plain name|may not be named/],
    ),
    [`SELECT 1 WHERE 'a' IN (${'$1,'.repeat(99)}$1)`, ['x'.repeat(60_000)], /bytes, counted once for each use/],
    [`SELECT 1 WHERE 'a' IN (${'$1,'.repeat(1_001)}$1)`, ['x'], 'limit: parameters'],
  ]
  for (const [sql, params, expected] of rows) {
    test(`parameters that do not fit are refused: ${sql.slice(0, 40)} ${JSON.stringify(params)?.slice(0, 80) ?? ''}`, async () => {
      const outcome = await ask(sql, params)
      if (typeof expected === 'string') assert.ok(outcome.startsWith(expected) || outcome.includes(expected), outcome.slice(0, 200))
      else assert.match(outcome, expected)
    })
  }
})

describe('no parameter bypasses a rule of the guard', () => {
  const rows: readonly (readonly [string, readonly unknown[], RegExp])[] = [
    ['SELECT $1::regclass', ['items'], /^type: regclass/],
    ['SELECT $1::regconfig', ['public.hidden_cfg'], /^type: regconfig/],
    ['SELECT to_tsvector($1, name) FROM items', ['public.hidden_cfg'], /^function: to_tsvector/],
    ['SELECT to_tsquery($1::text, name) FROM items', ['public.hidden_cfg'], /^function: to_tsquery/],
    ['SELECT ts_headline($1, $2, $3)', ['public.hidden_cfg', 'a', 'b'], /^limit: ts_headline/],
    ["SELECT ts_headline($1, name, to_tsquery('english', 'a')) FROM items", ['public.hidden_cfg'], /^limit: ts_headline/],
    ["SELECT ts_headline($1, name, to_tsquery('english', 'a')) FROM items", ['public.nothing_cfg'], /^limit: ts_headline/],
    ["SELECT ts_headline(COALESCE($1, $1), name, to_tsquery('english', 'a')) FROM items", ['public.hidden_cfg'], /^limit: ts_headline/],
    ["SELECT repeat('x', $1)", [1_000_000_000], /^QUERY_FAILED/],
    ["SELECT repeat('x', $1::int)", ['1000000000'], /^QUERY_FAILED/],
    ["SELECT lpad('x', $1)", [1_000_000_000], /^QUERY_FAILED/],
    ['SELECT length(normalize($1))', ['\u0301\u0316'.repeat(5_000)], /^params\.0: has more than 1000/],
    ['SELECT length(normalize($1))', [`a${'\u0301\u0316'.repeat(400)}`.repeat(10)], /^QUERY_FAILED/],
    ['SELECT length(normalize($1))', ['e\u0301'], /^\[\[1\]\]$/],
    ['SELECT strpos($1, $2)', ['a'.repeat(30_000), `b${'a'.repeat(29_000)}`], /^QUERY_FAILED/],
    ['SELECT strpos($1, $2)', ['abc', 'c'], /^\[\[3\]\]$/],
    ['SELECT strpos($1, name) FROM items LIMIT 1', ['abc'], /^\[\[\d+\]\]$/],
    ['SELECT array_fill(1, ARRAY[$1])', [1_000_000_000], /^limit: array_fill/],
    ["SELECT format($1, 'x')", ['%1000000000s'], /^limit: format/],
    ["SELECT format($1::text, 'x')", ['%1000000000s'], /^limit: format/],
    ["SELECT format('%*s', $1, 'x')", [1_000_000_000], /^limit: format/],
    ['SELECT secret FROM items WHERE id = $1', [1], /^column: secret/],
    ['SELECT id FROM items WHERE secret = $1', ['CANARY'], /^column: secret/],
    ['SELECT $1 FROM items LIMIT 1', ['secret'], /^\[\["secret"\]\]$/],
    ['SELECT id FROM items ORDER BY $1 LIMIT 1', ['secret'], /^\[\[\d+\]\]$/],
    ['SELECT id FROM items WHERE name = $1', [`' OR '1'='1`], /^\[\]$/],
    ['SELECT id FROM items WHERE name = $1', [`'; DROP TABLE items; --`], /^\[\]$/],
    ['SELECT id FROM items WHERE name = $1', ['$1'], /^\[\]$/],
    ['SELECT id FROM items WHERE id = $1', ['1 OR 1=1'], /^QUERY_FAILED$/],
    ['SELECT $1::small', [5], /^type: small/],
    ['SELECT pg_typeof($1)', [typed('int2', 5)], /^\[\["smallint"\]\]$/],
    ['SELECT $1($2)', ['pg_read_file', 'x'], /^malformed$/],
    ['SELECT * FROM $1', ['items'], /^malformed$/],
    ['SELECT $0', [], /^statement: parameter \$0/],
    ['SELECT $99999', [], /has no value for \$99999/],
    ['SELECT 1 LIMIT $1', [typed('int8', '9223372036854775807')], /^\[\[1\]\]$/],
    ['SELECT generate_series(1, 1000) LIMIT $1', ['500'], /^\[\[1\]/],
  ]
  for (const [sql, params, expected] of rows) {
    test(`a parameter bypasses no rule of the guard: ${sql} ${JSON.stringify(params)}`, async () => {
      const outcome = await ask(sql, params)
      assert.match(outcome, expected)
      assert.ok(!outcome.includes('CANARY'))
    })
  }

  test('a parameter of unknown type is refused with QUERY_FAILED', async () => {
    const sql = 'SELECT name FROM items WHERE ($1, $1) IS NULL'
    const verdict = await driver.confine(driver.read({ sql, params: ['x'] }), exposed, LIMITS, signal)
    assert.ok(verdict.kind === 'confined')
    await assert.rejects(connection.run(verdict.query, LIMITS, signal), { code: 'QUERY_FAILED' })
  })

  test('the row cap limits a LIMIT that is a parameter', async () => {
    for (const limit of [5_000, '5000', null, typed('int8', '5000')]) {
      const rows: unknown = JSON.parse(await ask('SELECT id FROM items LIMIT $1', [limit]))
      assert.ok(Array.isArray(rows) && rows.length === LIMITS.rowCap)
    }
  })

  test('the cost estimate uses the values of parameters', async () => {
    const sql = 'SELECT count(*) FROM items a, items b WHERE a.id < $1 AND b.id < $1'
    const cost = async (value: number): Promise<number> => {
      const verdict = await driver.confine(driver.read({ sql, params: [value] }), exposed, LIMITS, signal)
      assert.ok(verdict.kind === 'confined')
      return (await connection.estimate(verdict.query, LIMITS, signal)).cost
    }
    assert.ok((await cost(3)) * 20 < (await cost(2_000)))
  })

  test('a comparison with a parameter uses an index, like a comparison with a literal', async () => {
    const verdict = await driver.confine(driver.read({ sql: 'SELECT name FROM items WHERE id = $1', params: [7] }), exposed, LIMITS, signal)
    assert.ok(verdict.kind === 'confined')
    assert.ok((await connection.estimate(verdict.query, LIMITS, signal)).cost < 10)
  })

  test('a query with parameters has the same shape for all values, and another shape for other types', async () => {
    const first = await printed('SELECT id AS shaped FROM items WHERE id = $1 AND id < 10', [1])
    const again = [await printed('SELECT id AS shaped FROM items WHERE id = $1 AND id < 20', [2]), await printed('SELECT id AS shaped FROM items WHERE id = $1 AND id < 30', [3])]
    assert.deepEqual(again.map((query) => query.params), [['2'], ['3']])
    // The objects are identical, so they came from the cache of shapes.
    assert.equal(again[1]?.names, (await printed('SELECT id AS shaped FROM items WHERE id = $1 AND id < 40', [4])).names)
    assert.notEqual(first.names, again[1]?.names)
    const other = await printed('SELECT id AS shaped FROM items WHERE id = $1 AND id < 40', ['4'])
    assert.ok(!other.text.includes('CAST'), other.text)
  })
})
