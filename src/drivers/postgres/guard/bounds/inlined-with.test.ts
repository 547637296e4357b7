// Tests on a real server which WITH queries are inlined, so that conditions apply before they collect rows.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { shop, table } from '../../../../../test/support/postgres-catalog.ts'
import { assertSameAnswer, openGuard, type Guard } from '../../../../../test/support/postgres-guard.ts'
import { startPostgres, type TestPostgres } from '../../../../../test/support/postgres.ts'

const SCHEMA = `
CREATE TABLE lines (id int PRIMARY KEY, buyer int, word text);
INSERT INTO lines SELECT g, g % 2000, 'w' || g % 3 FROM generate_series(1, 20000) g;
CREATE INDEX ON lines (buyer);
ANALYZE lines`
const EXPOSED = shop({}, [table('lines', ['id int4', 'buyer int4', 'word text'], { key: ['id'] })])

/** Collects the rows of each buyer. */
const EACH = 'SELECT buyer, array_agg(id ORDER BY id) AS ids FROM lines GROUP BY 1'

/** The guard inlines these, so PostgreSQL can find the rows of buyer 9 by the index. */
const MOVED: readonly (readonly [string, string])[] = [
  ['a condition', `WITH v AS (${EACH}) SELECT * FROM v WHERE buyer = 9`],
  ['NOT MATERIALIZED', `WITH v AS NOT MATERIALIZED (${EACH}) SELECT * FROM v WHERE buyer = 9`],
  ['other names', `WITH v(a, b) AS (${EACH}) SELECT w, to_json(w), w.c FROM v AS w(c) WHERE c = 9`],
  [
    'a WITH query that another WITH query reads',
    `WITH v AS (${EACH}), w AS (SELECT * FROM v WHERE buyer < 99) SELECT * FROM w WHERE buyer = 9`,
  ],
  ['a WITH in a WITH', `WITH w AS (WITH v AS (${EACH}) SELECT * FROM v) SELECT * FROM w WHERE buyer = 9`],
  ['a WITH that is read twice', `WITH v AS (${EACH}), w AS (SELECT * FROM v WHERE buyer = 9) SELECT * FROM w a, w b`],
  ['a join', `WITH v AS (${EACH}) SELECT v.* FROM lines l JOIN v ON v.buyer = l.id WHERE l.id = 9`],
  [
    'a WITH query inside a sub-query for each row',
    `WITH v AS (${EACH}) SELECT (SELECT ids FROM v WHERE buyer = l.id) FROM lines l WHERE id = 9`,
  ],
  ['an arm', `WITH v AS (${EACH}) SELECT 1 AS buyer, '{}'::int[] AS ids UNION ALL (SELECT * FROM v WHERE buyer = 9)`],
  [
    'a WITH of the outer row',
    `SELECT (WITH v AS (SELECT word, array_agg(id ORDER BY id) AS ids FROM lines WHERE buyer = l.id GROUP BY 1) SELECT ids FROM v WHERE word = 'w0') FROM lines l WHERE id = 9`,
  ],
  [
    'WITH RECURSIVE beside it',
    `WITH RECURSIVE r AS (SELECT 8 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9), v AS (${EACH}) SELECT n, ids FROM r, v WHERE buyer = 9`,
  ],
  [
    'ARRAY (SELECT …)',
    'WITH v AS (SELECT id, buyer, ARRAY(SELECT k.id FROM lines k WHERE k.id = l.id) AS ids FROM lines l) SELECT * FROM v WHERE buyer = 9 ORDER BY id',
  ],
  [
    'NOT IN',
    `WITH v AS (SELECT * FROM lines WHERE id NOT IN (SELECT id FROM lines WHERE word = 'w2')), w AS (SELECT * FROM v) SELECT * FROM w WHERE buyer = 9 ORDER BY id`,
  ],
]

/** PostgreSQL would not inline these, even without a counter, or could move no condition into them. */
const KEPT: readonly (readonly [string, string])[] = [
  ['MATERIALIZED', `WITH v AS MATERIALIZED (${EACH}) SELECT * FROM v WHERE buyer = 9`],
  ['two reads', `WITH v AS (${EACH}) SELECT * FROM v a JOIN v b USING (buyer) WHERE buyer = 9`],
  ['no read', `WITH v AS (${EACH}) SELECT 1 AS one`],
  ['a total', 'WITH v AS (SELECT array_agg(id ORDER BY id) AS ids FROM lines) SELECT cardinality(ids) AS n FROM v'],
  ['LIMIT', `WITH v AS (${EACH} ORDER BY 1 LIMIT 10) SELECT * FROM v WHERE buyer = 9`],
  [
    'a step of a recursion',
    `WITH RECURSIVE v AS (${EACH}), r AS (SELECT 1 AS n UNION ALL SELECT n + cardinality(ids) FROM r JOIN v ON buyer = n WHERE n < 20) SELECT * FROM r`,
  ],
  [
    'a WITH that is copied',
    `WITH v AS (${EACH}), w AS NOT MATERIALIZED (SELECT * FROM v) SELECT * FROM w WHERE buyer = 8 UNION ALL SELECT * FROM w WHERE buyer = 9`,
  ],
  [
    'nothing is collected',
    'WITH v AS (SELECT buyer, count(*) AS n FROM lines GROUP BY 1) SELECT * FROM v WHERE buyer = 9',
  ],
]

describe('a WITH that collects', () => {
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

  for (const [name, sql] of MOVED) {
    test(`conditions apply before a WITH query collects its rows: ${name}`, async () => {
      const { text } = await guard.confined(sql, EXPOSED)
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (COSTS OFF) ${text}`)
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      assert.match(plan, /Index Cond: \(.*buyer = /, plan)
      await assertSameAnswer(client, sql, text)
    })
  }

  for (const [name, sql] of KEPT) {
    test(`a WITH query is not inlined: ${name}`, async () => {
      const { text } = await guard.confined(sql, EXPOSED)
      assert.match(text, /WITH .* AS (?:(?:NOT )?MATERIALIZED )?\(/)
      await assertSameAnswer(client, sql, text)
    })
  }

  test('of several WITH queries, only those that collect are inlined', async () => {
    const sql = `WITH v AS (${EACH}), w AS (SELECT 9 AS n), u AS (${EACH}) SELECT v.* FROM v, w WHERE buyer = n`
    const { text } = await guard.confined(sql, EXPOSED)
    assert.equal(text.match(/ AS \((?=SELECT)/g)?.length, 2, text)
    await assertSameAnswer(client, sql, text)
  })
})
