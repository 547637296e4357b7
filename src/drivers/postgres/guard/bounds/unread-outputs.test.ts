// Tests on a real server that a value which collects is not computed if nothing reads it, and which outputs stay.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { shop, table } from '../../../../../test/support/postgres-catalog.ts'
import { assertSameAnswer, openGuard, type Guard } from '../../../../../test/support/postgres-guard.ts'
import { startPostgres, type TestPostgres } from '../../../../../test/support/postgres.ts'

const SCHEMA = `
CREATE TABLE buyers (id int PRIMARY KEY, name text);
INSERT INTO buyers SELECT g, 'n' || g FROM generate_series(1, 2000) g;
CREATE TABLE lines (id int PRIMARY KEY, buyer int, word text);
INSERT INTO lines SELECT g, g % 2000, 'w' || g % 3 FROM generate_series(1, 6000) g;
CREATE INDEX ON lines (buyer);
ANALYZE buyers, lines`
const EXPOSED = shop({}, [
  table('buyers', ['id int4', 'name text'], { key: ['id'] }),
  table('lines', ['id int4', 'buyer int4', 'word text'], { key: ['id'] }),
])

const IDS = 'ARRAY(SELECT l.id FROM lines l WHERE l.buyer = b.id ORDER BY 1)'
/** A row for each buyer, with the lines. */
const EACH = `SELECT b.id, b.name, ${IDS} AS ids FROM buyers b`

const LEFT_OUT: readonly (readonly [string, string])[] = [
  ['a count', `SELECT count(*) FROM (${EACH}) x`],
  ['the first rows', `SELECT x.id FROM (${EACH}) x ORDER BY x.id LIMIT 5`],
  ['a join', `SELECT l.id, x.name FROM lines l JOIN (${EACH}) x ON x.id = l.buyer WHERE l.id = 9`],
  ['a join by USING', `SELECT id, x.name FROM lines JOIN (${EACH}) x USING (id) WHERE id = 9`],
  ['an outer join', `SELECT l.id, x.name FROM lines l LEFT JOIN (${EACH}) x ON x.id = l.buyer ORDER BY 1 LIMIT 9`],
  ['a condition', `SELECT id FROM (${EACH}) x WHERE name = 'n7'`],
  [
    'an aggregate of a sub-query',
    `SELECT count(*) FROM (SELECT (SELECT string_agg(l.word, ',') FROM lines l WHERE l.buyer = b.id) AS w FROM buyers b) x`,
  ],
  [
    'an aggregate of groups',
    'SELECT sum(n) FROM (SELECT buyer, count(*) AS n, array_agg(id) AS ids FROM lines GROUP BY 1) x',
  ],
  ['HAVING', 'SELECT n FROM (SELECT count(*) AS n, array_agg(id) AS ids FROM lines HAVING count(*) > 0) x'],
  ['a window', 'SELECT count(*) FROM (SELECT array_agg(id) OVER (PARTITION BY buyer) AS ids FROM lines) x'],
  ['LIMIT and OFFSET', `SELECT sum(id) FROM (${EACH} ORDER BY b.id LIMIT 10 OFFSET 5) x`],
  ['another order', `SELECT id FROM (${EACH} ORDER BY 2 LIMIT 10) x`],
  [
    'an expression that reads it',
    `SELECT y.id FROM (SELECT x.id, x.ids || 1 AS more FROM (${EACH}) x) y ORDER BY 1 LIMIT 9`,
  ],
  ['a column that passes it on', `SELECT count(y.name) FROM (SELECT * FROM (${EACH}) x) y`],
  ['a WITH of another', `WITH v AS (${EACH}), w AS (SELECT * FROM v) SELECT name FROM w WHERE id = 7`],
  ['NOT IN', 'SELECT count(*) FROM (SELECT id NOT IN (SELECT buyer FROM lines) AS without FROM buyers) x'],
  ['LATERAL', `SELECT b.id FROM buyers b, LATERAL (SELECT ${IDS} AS ids) x ORDER BY 1 LIMIT 9`],
  [
    'a sub-query of each row',
    `SELECT (SELECT x.name FROM (${EACH}) x WHERE x.id = l.buyer) FROM lines l WHERE l.id = 9`,
  ],
  ['an arm', `SELECT 1 AS id UNION ALL SELECT x.id FROM (${EACH}) x WHERE x.id < 4`],
  ['other names', `SELECT a FROM (${EACH}) x(a, b, c) WHERE b = 'n7'`],
  [
    'the same alias elsewhere',
    `SELECT x.id FROM (${EACH}) x WHERE x.id IN (SELECT cardinality(x.ids) FROM (SELECT '{}'::int[] AS ids) x)`,
  ],
]

const KEPT: readonly (readonly [string, string])[] = [
  ['a column', `SELECT cardinality(x.ids) FROM (${EACH}) x WHERE id = 7`],
  ['the whole row', `SELECT to_json(x) FROM (${EACH}) x WHERE id = 7`],
  ['a count of rows', `SELECT count(x) FROM (${EACH}) x WHERE id < 7`],
  ['*', `SELECT * FROM (${EACH}) x WHERE id = 7`],
  ['a condition', `SELECT id FROM (${EACH}) x WHERE ids = '{}'`],
  ['ORDER BY outside', `SELECT id FROM (${EACH}) x ORDER BY ids, id LIMIT 3`],
  ['ORDER BY', `SELECT id FROM (${EACH} ORDER BY ids, id LIMIT 3) x`],
  ['ORDER BY a position', `SELECT id FROM (${EACH} ORDER BY 3, 1 LIMIT 3) x`],
  ['GROUP BY a position', `SELECT count(*) FROM (SELECT ${IDS} AS ids FROM buyers b GROUP BY 1) x`],
  ['GROUP BY a name', `SELECT count(*) FROM (SELECT ${IDS} AS ids FROM buyers b GROUP BY ROLLUP (ids)) x`],
  ['DISTINCT', `SELECT count(*) FROM (SELECT DISTINCT ${IDS} AS ids FROM buyers b) x`],
  ['UNION', `SELECT count(*) FROM (SELECT ${IDS} AS ids FROM buyers b UNION SELECT '{}') x`],
  ['EXCEPT', `SELECT count(*) FROM (SELECT id FROM buyers EXCEPT SELECT buyer FROM lines) x`],
  ['a join by USING', `SELECT count(*) FROM (${EACH}) x JOIN (SELECT '{3}'::int[] AS ids) y USING (ids)`],
  ['a NATURAL join', `SELECT count(*) FROM (${EACH}) x NATURAL JOIN (SELECT 1 AS id, '{1,2001,4001}'::int[] AS ids) y`],
  [
    'an alias of a join',
    `SELECT j.c FROM ((${EACH}) x JOIN (SELECT 7 AS id) y ON x.id = y.id) AS j(a, b, c) WHERE j.a = 7`,
  ],
  ['a total', 'SELECT count(*) FROM (SELECT array_agg(id) AS ids FROM lines) x'],
  ['a total of an outer query', 'SELECT count(*) FROM (SELECT (SELECT array_agg(b.id)) AS ids FROM buyers b) x'],
  [
    'a total of a query around it',
    'SELECT (SELECT count(*) FROM (SELECT l.buyer, (SELECT array_agg(b.id)) AS ids FROM lines l GROUP BY 1) x) FROM buyers b',
  ],
  ['a function that returns rows', 'SELECT count(*) FROM (SELECT unnest(ARRAY(SELECT id FROM lines)) FROM buyers) x'],
  ['a WITH that is read twice', `WITH v AS (${EACH}) SELECT a.id FROM v a JOIN v b USING (id) WHERE a.id = 7`],
  ['a sub-query', `SELECT x.id, (SELECT x.ids[1]) FROM (${EACH}) x WHERE id = 7`],
  ['LATERAL', `SELECT u FROM (${EACH}) x, unnest(x.ids) u WHERE x.id = 7`],
]

describe('an output that collects and that nothing reads', () => {
  let guard: Guard
  let postgres: TestPostgres
  let client: Client
  before(async () => {
    guard = await openGuard()
    postgres = await startPostgres()
    client = new Client({ connectionString: postgres.url('postgres') })
    await client.connect()
    await client.query(SCHEMA)
  })
  after(async () => {
    await client.end()
    await postgres[Symbol.asyncDispose]()
    await guard[Symbol.asyncDispose]()
  })

  for (const [name, sql] of LEFT_OUT) {
    test(`is left out: ${name}`, async () => {
      const { text } = await guard.confined(sql, EXPOSED)
      assert.doesNotMatch(text, /vitrine\.collected/)
      await assertSameAnswer(client, sql, text)
    })
  }

  for (const [name, sql] of KEPT) {
    test(`stays if it is read: ${name}`, async () => {
      const { text } = await guard.confined(sql, EXPOSED)
      assert.match(text, /vitrine\.collected/)
      await assertSameAnswer(client, sql, text)
    })
  }

  test('stays if it has a parameter', async () => {
    const sql =
      'SELECT x.id FROM (SELECT b.id, ARRAY(SELECT l.id FROM lines l WHERE l.word = $1) AS ids FROM buyers b) x'
    const { text } = await guard.confined(`${sql} WHERE x.id = $2`, EXPOSED, { params: ['w1', 7] })
    assert.match(text, /vitrine\.collected/)
    assert.deepEqual((await client.query(text, ['w1', 7])).rows, [{ id: 7 }])
  })

  test('stays where another is left out', async () => {
    const sql = `SELECT x.one FROM (SELECT b.id, ${IDS} AS one, ${IDS} AS two FROM buyers b) x WHERE x.id = 7`
    const { text } = await guard.confined(sql, EXPOSED)
    assert.equal(text.match(/ARRAY\(/g)?.length, 1, text)
    await assertSameAnswer(client, sql, text)
  })

  test('is kept with all others if it is computed without a counter', async () => {
    const sql = `SELECT x.id FROM (SELECT b.id, upper(b.name) AS name FROM buyers b) x WHERE x.id = 7`
    const { text } = await guard.confined(sql, EXPOSED)
    assert.match(text, /upper/)
  })
})
