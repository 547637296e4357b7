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

/** Each query returns the numbers from 5000 down, or up. */
const KEPT: readonly (readonly [string, string])[] = [
  ['a long output', `SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT 900`],
  ['a long output, with the row cap as its LIMIT', `SELECT g, x FROM ${LONG} ORDER BY g DESC`],
  ['a long output behind OFFSET', `SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT 1 OFFSET 900`],
  ['a long sort key', `SELECT g FROM ${LONG} ORDER BY x || g DESC LIMIT 900`],
  [
    'a LIMIT that is no constant',
    `SELECT count(*) FROM (SELECT g, x FROM ${LONG} ORDER BY g DESC LIMIT (SELECT 100)) r`,
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

  const isTop = async (text: string): Promise<boolean> => {
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, COSTS OFF) ${text}`)
    return rows.some((row) => row['QUERY PLAN'].includes('top-N heapsort'))
  }

  for (const [name, sql] of KEPT) {
    test(`a sort with LIMIT sorts all rows, and the result is the same: ${name}`, async () => {
      const { text } = await guard.confined(sql, shop())
      assert.equal(await isTop(text), false, text)
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
      assert.equal(await isTop((await guard.confined(sql, shop())).text), true)
    })
  }

  test('a sort with LIMIT returns whole rows that contain NULL', async () => {
    const sql = `SELECT r FROM (SELECT NULL::int AS a, x FROM ${LONG}) r ORDER BY x`
    const { text } = await guard.confined(sql, shop())
    assert.equal((await client.query(text)).rows.length > 0, true)
  })
})
