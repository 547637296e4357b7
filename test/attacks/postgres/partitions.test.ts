// Sends queries on a table with 365 partitions through the service to a real server. PostgreSQL copies conditions for
// each partition, so a query that it would copy too often is refused. For the answered queries, the backend stays
// small.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { openShop, type Shop } from '../../support/shop.ts'

const MEMORY_MB = 512

const SCHEMA = `
CREATE TABLE days (id int, w int, x text, day date) PARTITION BY RANGE (day);
CREATE TABLE old (id int, w int, x text, day date);
DO $$ BEGIN FOR i IN 0..364 LOOP
  EXECUTE format('CREATE TABLE days_%s PARTITION OF days FOR VALUES FROM (%L) TO (%L)', i, date '2024-01-01' + i, date '2024-01-02' + i);
  EXECUTE format('CREATE TABLE old_%s () INHERITS (old)', i);
END LOOP; END $$;
CREATE INDEX ON days (id);
CREATE TABLE notes (id int, note text);
CREATE INDEX ON notes (id);
INSERT INTO days SELECT g, g % 100, 'x' || g, date '2024-01-01' + g % 365 FROM generate_series(1, 3650) g;
INSERT INTO old_1 SELECT * FROM days;
INSERT INTO notes SELECT g, md5(g::text) FROM generate_series(1, 50000) g;
CREATE VIEW lately AS SELECT * FROM days WHERE w < 50;
ANALYZE;`

const list = (count: number, item: (n: number) => string | number, by = ', '): string =>
  Array.from({ length: count }, (_, n) => item(n)).join(by)

const REFUSED: readonly (readonly [string, string])[] = [
  ['conditions', `SELECT count(*) FROM days WHERE ${list(1_000, (n) => `w + ${n} = 0`, ' OR ')}`],
  ['conditions on children', `SELECT count(*) FROM old WHERE ${list(1_000, (n) => `w + ${n} = 0`, ' OR ')}`],
  ['conditions on a view', `SELECT count(*) FROM lately WHERE ${list(1_000, (n) => `w + ${n} = 0`, ' OR ')}`],
  ['a list', `SELECT count(*) FROM days WHERE w IN (${list(5_000, String)})`],
  ['a copied sub-select', `SELECT ${list(200, (n) => `m + ${n}`)} FROM (SELECT (SELECT max(w) FROM days) AS m FROM notes) q`],
]

/** Queries just below the limit. */
const ANSWERED: readonly (readonly [string, string])[] = [
  ['conditions', `SELECT count(*) FROM days WHERE ${list(130, (n) => `w + ${n} = 0`, ' OR ')}`],
  ['a list', `SELECT count(*) FROM days WHERE w IN (${list(2_000, String)})`],
  ['outputs', `SELECT ${list(600, (n) => `w + ${n}`)} FROM days LIMIT 5`],
  ['groups', `SELECT ${list(200, (n) => `w + ${n}`)}, count(*) FROM days GROUP BY ${list(200, (n) => n + 1)} LIMIT 5`],
  ['EXISTS', 'SELECT count(*) FROM days d WHERE d.id < 5 AND (EXISTS (SELECT FROM notes n WHERE n.id = d.id) OR d.w = -1)'],
  ['sub-selects', `SELECT ${list(20, (n) => `(SELECT count(*) FROM days WHERE w = ${n})`)}`],
]

describe('queries on 365 partitions', () => {
  let shop: Shop
  let watch: Client
  let at: string
  before(async () => {
    shop = await openShop()
    const database = await shop.postgres.createDatabase('partitions', SCHEMA)
    watch = new Client({ connectionString: shop.postgres.url(database) })
    await watch.connect()
    const tables = ['days', 'old', 'notes', 'lately'].map((table) => ({ schema: 'public', table, columns: null }))
    const spec = { ...shop.spec, name: 'partitions', database }
    const id = await shop.app.datasource(shop.owner, shop.teamId, spec, tables)
    at = `/teams/${shop.teamId}/datasources/${id}`
    await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { statementTimeoutMs: 60_000 } })
  })
  after(async () => {
    await watch.end()
    await shop[Symbol.asyncDispose]()
  })

  const ask = (sql: string): ReturnType<Shop['query']> =>
    shop.app.ask('POST', `${at}/query`, { token: shop.key, body: { sql } })

  for (const [name, sql] of REFUSED) {
    test(`a query that PostgreSQL would copy too often is refused: ${name}`, async () => {
      const { status, json } = await ask(sql)
      assert.deepEqual([status, json.blocked], [403, { kind: 'limit', name: 'partitions' }])
    })
  }

  for (const [name, sql] of ANSWERED) {
    test(`a query on 365 partitions is answered: ${name}`, async () => {
      const { status, json } = await ask(sql)
      assert.equal(status, 200, JSON.stringify(json).slice(0, 300))
      const { rows } = await watch.query<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'",
      )
      for (const { pid } of rows) assert.ok(peakMb(pid) < MEMORY_MB, `${peakMb(pid)} MB`)
    })
  }
})

/** Returns the peak memory in MB, or 0 for a backend that has ended. Only Linux reports the memory. */
function peakMb(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}
