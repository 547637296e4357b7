// PostgreSQL's planner works for minutes on some queries, and no cancel ends its work. Each of these queries must end
// soon after its timeout.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { openShop, type Shop } from '../../support/shop.ts'

const TIMEOUT_MS = 3_000
/** How long after its timeout a query may end on a busy machine. */
const LATE_MS = 60_000

const SCHEMA = `
CREATE EXTENSION IF NOT EXISTS pg_trgm;
SET default_statistics_target = 2000;
CREATE TABLE notes (id int PRIMARY KEY, note text, t0 text, t1 text);
INSERT INTO notes SELECT g, (SELECT string_agg(md5((x * g)::text), ' ') FROM generate_series(1, 30) x), 'abc' || g % 2500, 'xyz' || g % 2500 FROM generate_series(1, 10000) g;
ANALYZE notes;`

const or = (count: number, arm: (n: number) => string): string => Array.from({ length: count }, (_, n) => arm(n)).join(' OR ')

const ATTACKS: readonly (readonly [string, string])[] = [
  ['operators of pg_trgm', `SELECT count(*) FROM notes WHERE id = 1 AND (${or(400, (n) => `note % 'zebra${n}'`)})`],
  ['comparisons of two tables', `SELECT count(*) FROM notes a, notes b WHERE a.id = 1 AND b.id = 1 AND (${or(500, (n) => (n % 2 ? 'a.t0 = b.t1' : 'a.t1 = b.t0'))})`],
]

describe('queries that are planned for long', () => {
  let shop: Shop
  let watch: Client
  let at: string
  before(async () => {
    shop = await openShop()
    const database = await shop.postgres.createDatabase('planning', SCHEMA)
    watch = new Client({ connectionString: shop.postgres.url(database) })
    await watch.connect()
    const tables = ['notes'].map((table) => ({ schema: 'public', table, columns: null }))
    const id = await shop.app.datasource(shop.owner, shop.teamId, { ...shop.spec, name: 'planning', database }, tables)
    at = `/teams/${shop.teamId}/datasources/${id}`
    await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { statementTimeoutMs: TIMEOUT_MS } })
  })
  after(async () => {
    await watch.end()
    await shop[Symbol.asyncDispose]()
  })

  async function isActive(): Promise<boolean> {
    const { rows } = await watch.query(
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()",
    )
    return rows.length > 0
  }

  for (const [name, sql] of ATTACKS) {
    test(`a query that takes long to plan ends in time: ${name}`, async () => {
      const began = performance.now()
      const { status, json } = await shop.app.ask('POST', `${at}/query`, { token: shop.key, body: { sql } })
      // On a busy machine, checking a long query may exceed the short timeout (503), or the connection may fail (502).
      assert.ok([200, 502, 503, 504].includes(status), `${status} ${json.error}`)
      while (await isActive()) {
        const took = performance.now() - began
        assert.ok(took < TIMEOUT_MS + LATE_MS, `still active after ${Math.round(took)} ms`)
        await pause(20)
      }
    })
  }
})
