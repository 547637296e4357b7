// Tests on a real server that a sort with LIMIT does not keep many long rows in memory.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { shop } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, type Guard } from '../../../../../test/support/postgres-guard.ts'
import { startPostgres, type TestPostgres } from '../../../../../test/support/postgres.ts'

const ROWS = 'FROM generate_series(1, 5000) g'
/** PostgreSQL reads short rows first, decides to keep the first rows, and then reads long ones. */
const LONG = `(SELECT g, CASE WHEN g > 4500 THEN repeat(repeat('x', 9000), 10) || g ELSE '' END AS x ${ROWS} OFFSET 0) q`

/** The same with texts that are short enough to be sorted by. */
const SHORTER = LONG.replace('9000', '3000').replaceAll('4500', '2000')

/** Each query returns the numbers from 5000 down, or up. */
const KEPT: readonly (readonly [string, string])[] = [
  ['a long output', `SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT 900`],
  ['a long output, with the row cap as its LIMIT', `SELECT g, x FROM ${LONG} ORDER BY g DESC`],
  ['a long output behind OFFSET', `SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT 1 OFFSET 900`],
  ['a long sort key', `SELECT sum(g) FROM (SELECT g FROM ${SHORTER} ORDER BY x || g DESC LIMIT 2400) r`],
  [
    'a LIMIT that is no constant',
    `SELECT count(*) FROM (SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT (SELECT 100)) r`,
  ],
  [
    'long numbers',
    'SELECT g, x FROM (SELECT g, CASE WHEN g > 4990 THEN 1e131000 + g END AS x ' +
      `${ROWS} OFFSET 0) q ORDER BY g DESC LIMIT 1200`,
  ],
  ['a sub-query', `SELECT count(x) FROM (SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT 900) r`],
  ['a sub-query, with the LIMIT outside', `SELECT x FROM (SELECT g, x FROM ${LONG} ORDER BY g DESC) r LIMIT 900`],
  ['an arm of UNION ALL', `(SELECT x FROM ${LONG} ORDER BY g DESC OFFSET 0) UNION ALL (SELECT 'a') LIMIT 900`],
  ['a WITH that is read', `WITH r AS (SELECT x FROM ${LONG} ORDER BY g DESC) SELECT x FROM r LIMIT 900`],
  ['a UNION', `SELECT g, x FROM ${LONG} UNION ALL SELECT 1, 'y' ORDER BY 1 DESC`],
  ['WITH', `WITH w AS (SELECT 900 AS n) SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT (SELECT n FROM w)`],
]
const FREE: readonly (readonly [string, string])[] = [
  ['short values in a sub-query', `SELECT * FROM (SELECT g, g * 2 ${ROWS} ORDER BY g DESC) q LIMIT 10`],
  ['short values', `SELECT g, g * 2 ${ROWS} ORDER BY g DESC LIMIT 10`],
  ['few long values', `SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT 10`],
]

describe('a sort with LIMIT', () => {
  let guard: Guard
  let postgres: TestPostgres
  let client: Client
  before(async () => {
    guard = await openGuard()
    postgres = await startPostgres()
    client = new Client({ connectionString: postgres.url('postgres') })
    await client.connect()
  })
  after(async () => {
    await client.end()
    await postgres[Symbol.asyncDispose]()
    await guard[Symbol.asyncDispose]()
  })

  const topsIn = async (text: string): Promise<number> => {
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, COSTS OFF) ${text}`)
    return rows.filter((row) => row['QUERY PLAN'].includes('top-N heapsort')).length
  }

  for (const [name, sql] of KEPT) {
    test(`a sort with LIMIT sorts all rows, and the result is the same: ${name}`, async () => {
      const { text } = await guard.confined(sql, shop())
      assert.equal(await topsIn(text), 0, text)
      const printed = await client.query(text)
      const asked = await client.query(sql)
      assert.deepEqual(printed.rows, asked.rows.slice(0, printed.rows.length))
      assert.deepEqual(
        printed.fields.map((field) => field.name),
        asked.fields.map((field) => field.name),
      )
    })
  }

  for (const [name, sql] of FREE) {
    test(`a sort with LIMIT keeps only the first rows: ${name}`, async () => {
      assert.equal(await topsIn((await guard.confined(sql, shop())).text), 1)
    })
  }

  test('a condition of the outer query applies before the sort of a sub-query', async () => {
    const sql = `SELECT * FROM (SELECT g, g || repeat('x', 9000) AS x ${ROWS} ORDER BY g) r WHERE g = 7`
    const { text } = await guard.confined(sql, shop())
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, TIMING OFF) ${text}`)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    assert.match(plan, /Filter: \(g = 7\)\s+Rows Removed by Filter: 4999/)
  })

  test('a constant of an arm of UNION takes the type of the other arm', async () => {
    const sql = `(SELECT x, NULL AS n, '1' AS m FROM ${LONG} ORDER BY g LIMIT 900) UNION ALL (SELECT 'a', sum(g), 2 ${ROWS})`
    const { text } = await guard.confined(sql, shop())
    assert.equal(await topsIn(text), 0)
    assert.deepEqual((await client.query(text)).rows, (await client.query(sql)).rows)
  })

  test('all sorts with LIMIT of a query keep at most 64 MB together', async () => {
    // Each keeps 100 rows of 90 kB.
    const arms = Array<string>(9).fill(`(SELECT x FROM ${LONG} ORDER BY g DESC LIMIT 100)`)
    const { text } = await guard.confined(`SELECT count(x) FROM (${arms.join(' UNION ALL ')}) r`, shop())
    assert.equal(await topsIn(text), 7)
    assert.deepEqual((await client.query(text)).rows, [{ count: '900' }])
  })

  test('a sort with LIMIT returns whole rows that contain NULL', async () => {
    const sql = `SELECT r FROM (SELECT NULL::int AS a, x FROM ${SHORTER}) r ORDER BY x`
    const { text } = await guard.confined(sql, shop())
    assert.equal((await client.query(text)).rows.length > 0, true)
  })
})
