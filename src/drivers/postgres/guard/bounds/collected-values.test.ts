// Tests for which collected values the printed text checks their length.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const printed = async (sql: string): Promise<string> => (await guard.confined(sql, shop())).text

const X = "(SELECT string_agg(name, '') AS x FROM customers) q"
/** string_to_array() makes an array of each letter, so its argument must be checked. */
const split = (value: string, from: string): string => `SELECT string_to_array(${value}, NULL) FROM ${from}`

const MEASURED: readonly (readonly [string, string])[] = [
  ['a column of a sub-select', split('q.x', X)],
  ['an aggregate of the same query', split("string_agg(name, '')", 'customers')],
  ['an aggregate of a constant', split("string_agg('x', '')", 'customers')],
  ['an aggregate as a window', split("string_agg(name, '') OVER ()", 'customers')],
  ['ARRAY(SELECT …)', 'SELECT ARRAY(SELECT name FROM customers)::tsvector'],
  ['a sub-query', split("(SELECT string_agg(name, '') FROM customers)", 'orders')],
  ['WITH', `WITH w AS MATERIALIZED (SELECT q.x FROM ${X}) ${split('x', 'w')}`],
  [
    'WITH RECURSIVE',
    `WITH RECURSIVE r AS (SELECT 'a' AS x UNION ALL SELECT r.x || q.x FROM r, ${X}) ${split('x', 'r')}`,
  ],
  [
    'a text that a recursion makes',
    `WITH RECURSIVE r AS (SELECT 1 AS n, '' AS x UNION ALL SELECT n + 1, x || 'a' FROM r) ${split('x', 'r')}`,
  ],
  ['UNION', split('u.x', `(SELECT 'a' AS x UNION ALL SELECT q.x FROM ${X}) u`)],
  ['VALUES', split('v.x', `${X}, LATERAL (VALUES ('a'), (q.x)) v(x)`)],
  ['USING', split('x', `${X} JOIN ${X.replace(/q$/, 'r')} USING (x)`)],
  ['the alias of a join', split('j.x', `(${X} CROSS JOIN orders o) AS j(x)`)],
  ['a function in FROM', split('u', `${X}, upper(q.x) u`)],
  ['CASE', split("CASE WHEN q.x <> '' THEN q.x END", X)],
  ['COALESCE', split("coalesce(NULL, q.x, 'a')", X)],
  ['NULLIF', split("nullif(q.x, '')", X)],
  ['GREATEST', split("greatest(q.x, '')", X)],
  ['max', split('max(q.x)', X)],
  ['lag', split('lag(q.x) OVER ()', X)],
  ['a field of a row', split('(q).x', X)],
  ['a row', `SELECT to_jsonb(q) FROM ${X}`],
  ['an element', split('(array_agg(name))[1]', 'customers')],
  ['a slice', 'SELECT (array_agg(name))[1:2] FROM customers'],
  ['a part of a document', "SELECT (jsonb_agg(name))['a'] FROM customers"],
  ['a collation', split('q.x COLLATE "C"', X)],
  ['a named argument', "SELECT jsonb_path_query_array(target => jsonb_agg(name), path => '$[*]') FROM customers"],
  ['a cast', `SELECT q.x::jsonb FROM ${X}`],
  ['||', `SELECT q.x || '0' FROM ${X}`],
  ['LIKE', `SELECT q.x LIKE '%a%' FROM ${X}`],
  ['LIKE ANY', "SELECT 'a' LIKE ANY (ARRAY(SELECT name FROM customers))"],
  ['an order', `SELECT q.x < 'a', q.x BETWEEN 'a' AND 'b' FROM ${X}`],
  ['a row', `SELECT (q.x, 1) < ('a', 2) FROM ${X}`],
  ['the rows of ANY', `SELECT 'a' < ANY (SELECT q.x FROM ${X})`],
  [
    'a text of JSON',
    "SELECT string_to_array(JSON_OBJECT('a': string_agg(name, '') RETURNING text), NULL) FROM customers",
  ],
  ['GROUP BY', `SELECT string_to_array(upper(q.x), NULL) FROM ${X} GROUP BY upper(q.x)`],
]

for (const [name, sql] of MEASURED) {
  test(`the printed text checks the length of a collected value that a query computes with: ${name}`, async () => {
    assert.match(await printed(sql), /vitrine bound: \d+ collected_value /)
  })
}

const UNMEASURED: readonly (readonly [string, string])[] = [
  ['a collected column that is returned', `SELECT q.x FROM ${X}`],
  ['its length', `SELECT length(q.x), octet_length(q.x), q.x IS NULL, count(q.x), q.x = 'a' FROM ${X}`],
  ['aggregates that are returned', "SELECT string_agg(name, ','), array_agg(id), json_agg(name)::text FROM customers"],
  ['an element', 'SELECT (array_agg(id ORDER BY id))[1], cardinality(array_agg(id)) FROM customers'],
  ['a search in an array', 'SELECT 1 FROM customers WHERE id = ANY (ARRAY(SELECT id FROM orders))'],
  ['other columns', `SELECT upper(c.name), q.x FROM customers c, ${X}`],
  [
    'numbers of a recursion',
    'WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT array_agg(n) FROM r',
  ],
  [
    'a tree',
    "WITH RECURSIVE t AS (SELECT id, 0 AS n, '' AS p FROM customers UNION ALL SELECT c.id, n + 1, p FROM t JOIN customers c ON c.id = t.id + 1) SELECT id, n + 1, p FROM t WHERE id < 9 AND p = ''",
  ],
  ['a query that collects nothing', "SELECT upper(name) || 'x', string_to_array(name, ',') FROM customers"],
]

for (const [name, sql] of UNMEASURED) {
  test(`the printed text checks the length of no collected value: ${name}`, async () => {
    assert.doesNotMatch(await printed(sql), /collected_value/)
  })
}

test('the printed text contains a collected value once, even if calls are nested', async () => {
  const nested = (depth: number): string =>
    `SELECT ${'regexp_replace('.repeat(depth)}string_agg(name, '')${", 'a', 'b')".repeat(depth)} FROM customers`
  const [three, six] = [await printed(nested(3)), await printed(nested(6))]
  assert.equal(six.match(/"string_agg"\(/g)?.length, 1)
  assert.ok(six.length < 2.2 * three.length)
})

test('the check of a collected column adds no sub-select', async () => {
  const text = await printed(split('q.x', X))
  assert.match(text, /collected_value/)
  assert.doesNotMatch(text, /OFFSET/)
})

test('the length of a value is checked again after a function that may make it longer', async () => {
  const text = await printed(`SELECT md5(replace(upper(q.x), 'a', 'bb')) FROM ${X}`)
  assert.equal(text.match(/vitrine bound: \d+ collected_value /g)?.length, 2)
})

test('a set of collected values is refused where its length cannot be checked', async () => {
  const said = say(await guard.judge(split('unnest(array_agg(name))', 'customers'), shop()))
  assert.match(said, /limit: collected_value/)
})
