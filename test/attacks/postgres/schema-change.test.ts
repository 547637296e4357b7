// A query was confined before a schema change. Afterwards, it must never return data that is hidden then. Each change
// is tested with a session that has run the query before, so that its prepared statements use the old schema, and with
// a new session.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Catalog, Connection, Driver, Limits } from '../../../src/drivers/driver.ts'
import { createPostgresDriver } from '../../../src/drivers/postgres/driver.ts'
import { AppError } from '../../../src/errors.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { answerOf, settingsOf } from '../../support/postgres-session.ts'

const LIMITS: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 10_000, maxCost: 1e9 }
const signal = new AbortController().signal

/**
 * Names that mean something else than a column. Most are functions that take a row. If a column with such a name is
 * dropped, PostgreSQL could read the name as a call with the whole row.
 */
const CALLS = [
  ...['hstore', 'record_send', 'record_out', 'to_json', 'to_jsonb', 'row_to_json', 'hash_record', 'quote_literal'],
  ...['pg_column_size', 'concat', 'json_build_array', 'array_agg', 'json_agg', 'count', 'num_nulls', 'text', 'b', 't0'],
  ...['people', 'varchar', 'max', 'format', 'quote_nullable', 'json_build_object', 'string_agg', 'jsonb_agg'],
]

const SQL = `
CREATE SCHEMA ext; CREATE EXTENSION hstore SCHEMA ext;
CREATE TABLE people (id int PRIMARY KEY, note text, secret_note text, ${CALLS.map((name) => `"${name}" text`).join(', ')});
INSERT INTO people (id, note, secret_note, ${CALLS.map((name) => `"${name}"`).join(', ')})
  SELECT n, 'note ' || n, 'CANARY ' || n, ${CALLS.map(() => `'x'`).join(', ')} FROM generate_series(1, 3) n;
CREATE DOMAIN short AS varchar(9); CREATE DOMAIN shorter AS short CHECK (value <> 'x');
CREATE TABLE kinds (a short, b shorter, c short[], d ext.hstore, f int[]);
CREATE TABLE secret_people (id int PRIMARY KEY, note text); INSERT INTO secret_people VALUES (1, 'CANARY');
CREATE VIEW seen AS SELECT id, note, secret_note FROM people;
CREATE TABLE parted (id int, note text, secret_note text) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10); INSERT INTO parted VALUES (1, 'one', 'CANARY');
ANALYZE`

let server: TestPostgres
let driver: Driver
before(async () => {
  server = await startPostgres()
  driver = await createPostgresDriver()
})
after(async () => {
  await driver[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

interface Shop extends AsyncDisposable {
  readonly database: string
  readonly exposed: Catalog
  readonly warm: Connection
  connect(): Promise<Connection>
}

let shops = 0
async function openShop(): Promise<Shop> {
  const stack = new AsyncDisposableStack()
  const database = await server.createDatabase(`moved_${++shops}`, SQL)
  const connect = async (): Promise<Connection> =>
    stack.use(await driver.connect(settingsOf(server, database), { allowPrivateHosts: true }, signal))
  const warm = await connect()
  return { database, exposed: cut(await warm.introspect(signal)), warm, connect, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

function cut(catalog: Catalog): Catalog {
  const tables = catalog.tables
    .filter((table) => !table.table.startsWith('secret'))
    .map((table) => ({ ...table, columns: table.columns.filter((column) => !column.name.startsWith('secret')) }))
  return { ...catalog, tables }
}

const ask = (connection: Connection, exposed: Catalog, sql: string): Promise<string> =>
  answerOf(driver, connection, exposed, sql, LIMITS)

async function estimated(connection: Connection, exposed: Catalog, sql: string): Promise<string> {
  const verdict = await driver.confine(driver.read({ sql }), exposed, LIMITS, signal)
  assert.ok(verdict.kind === 'confined')
  return connection.estimate(verdict.query, LIMITS, signal).then(
    () => 'estimated',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  )
}

const STALE = 'SCHEMA_STALE'
const SWAP = 'ALTER TABLE people RENAME note TO note_old; ALTER TABLE people RENAME secret_note TO note'

/** The title, the change, and queries that must then fail with SCHEMA_STALE. */
const CHANGES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'a hidden column takes an exposed name',
    SWAP,
    [
      'SELECT note FROM people',
      'SELECT * FROM people',
      'SELECT p FROM people p',
      'SELECT id FROM people WHERE note LIKE $$CANARY%$$',
      'SELECT count(*) FROM people GROUP BY note',
      'SELECT id, (SELECT p.note FROM people p WHERE p.id = people.id) FROM people',
      'WITH a AS MATERIALIZED (SELECT note FROM people) SELECT a.id FROM people a WHERE EXISTS (SELECT FROM a WHERE false)',
      'SELECT 1 / (id - 1) FROM people WHERE note IS NOT NULL',
    ],
  ],
  [
    'a hidden column of a view takes an exposed name',
    'ALTER VIEW seen RENAME note TO note_old; ALTER VIEW seen RENAME secret_note TO note',
    ['SELECT note FROM seen', 'SELECT * FROM seen'],
  ],
  [
    'a view is created again with other columns',
    'DROP VIEW seen; CREATE VIEW seen AS SELECT id, secret_note AS note FROM people',
    ['SELECT note FROM seen'],
  ],
  [
    'a hidden table takes an exposed name',
    'ALTER TABLE people RENAME TO people_old; ALTER TABLE secret_people RENAME TO people',
    ['SELECT note FROM people', 'SELECT count(*) FROM people', 'SELECT 1 FROM people'],
  ],
  [
    'a table is dropped and created again',
    'DROP TABLE people CASCADE; CREATE TABLE people AS SELECT id, note FROM secret_people',
    ['SELECT note FROM people', 'SELECT count(*) FROM people'],
  ],
  [
    'a table becomes a view of the same name',
    'ALTER TABLE people RENAME TO people_old; CREATE VIEW people AS SELECT id, secret_note AS note FROM people_old',
    ['SELECT note FROM people', 'SELECT count(*) FROM people'],
  ],
  [
    'a column is dropped and another takes its name',
    'DROP VIEW seen; ALTER TABLE people DROP note; ALTER TABLE people RENAME secret_note TO note',
    ['SELECT note FROM people'],
  ],
  ['a column has another type', 'DROP VIEW seen; ALTER TABLE people ALTER note TYPE varchar(80)', ['SELECT note FROM people']],
  [
    'columns of a partitioned table swap names',
    'ALTER TABLE parted RENAME note TO note_old; ALTER TABLE parted RENAME secret_note TO note',
    ['SELECT note FROM parted'],
  ],
  ['the schema is renamed, and a new one has its name', 'ALTER SCHEMA public RENAME TO old; CREATE SCHEMA public', ['SELECT id FROM people']],
  [
    'the schema is replaced by one with the same tables',
    'ALTER SCHEMA public RENAME TO old; CREATE SCHEMA public; CREATE TABLE public.people AS SELECT id, note FROM old.secret_people',
    ['SELECT note FROM people'],
  ],
]

describe('after a schema change', () => {
  for (const [title, change, texts] of CHANGES) {
    test(`a query fails with SCHEMA_STALE if ${title}`, async () => {
      await using shop = await openShop()
      // The driver closes a session that finds a change. So each query has its own session, which has run the query
      // before.
      const warm = await Promise.all(texts.map(() => shop.connect()))
      for (const [at, sql] of texts.entries()) await ask(warm[at] ?? shop.warm, shop.exposed, sql)
      await server.query(shop.database, change)
      for (const [at, sql] of texts.entries()) {
        assert.equal(await ask(warm[at] ?? shop.warm, shop.exposed, sql), STALE, sql)
        assert.equal(await ask(await shop.connect(), shop.exposed, sql), STALE, sql)
        assert.equal(await estimated(await shop.connect(), shop.exposed, sql), STALE, sql)
      }
    })
  }

  for (const how of ['DROP COLUMN %', 'RENAME COLUMN % TO gone']) {
    test(`the name of a dropped column is not called with the whole row: ${how}`, async () => {
      await using shop = await openShop()
      for (const name of CALLS) {
        const sql = `SELECT "${name}" FROM people AS p`
        const verdict = await driver.confine(driver.read({ sql }), shop.exposed, LIMITS, signal)
        assert.ok(verdict.kind === 'confined')
        await ask(shop.warm, shop.exposed, sql)
        await server.query(shop.database, `ALTER TABLE people ${how.replace('%', `"${name}"`)}`)
        for (const connection of [shop.warm.usable ? shop.warm : await shop.connect(), await shop.connect()])
          assert.equal(await ask(connection, shop.exposed, sql), STALE, sql)
        // Without the checks that surround it, the printed SQL reads no row either.
        const printed = driver.printed(verdict.query)
        await assert.rejects(server.query(shop.database, printed), /does not exist/, printed)
        await server.query(shop.database, `ALTER TABLE people ${how.startsWith('DROP') ? `ADD "${name}" text` : `RENAME gone TO "${name}"`}`)
      }
    })
  }

  test('a change of columns that the query does not read does not make it fail', async () => {
    await using shop = await openShop()
    assert.equal(await ask(shop.warm, shop.exposed, 'SELECT a, b, c, d, f FROM kinds'), '[]')
    const sql = 'SELECT id, note FROM people ORDER BY id LIMIT 1'
    assert.equal(await ask(shop.warm, shop.exposed, sql), '[[1,"note 1"]]')
    for (const change of [
      'ALTER TABLE people ADD more text DEFAULT 1',
      'ALTER TABLE people DROP max',
      'ALTER TABLE people RENAME format TO other',
      'CREATE INDEX ON people (note)',
      'ALTER TABLE people ALTER note SET NOT NULL',
      'ANALYZE people',
      'VACUUM FULL people',
      'ALTER TABLE people ENABLE ROW LEVEL SECURITY',
      'CREATE OR REPLACE VIEW seen AS SELECT id, note, secret_note, 1 AS more FROM people',
    ]) {
      await server.query(shop.database, change)
      assert.equal(await ask(shop.warm, shop.exposed, sql), '[[1,"note 1"]]', change)
    }
  })

  test('after the next introspection, the same session and a new session answer again', async () => {
    await using shop = await openShop()
    assert.match(await ask(shop.warm, shop.exposed, 'SELECT note FROM people'), /note 1/)
    await server.query(shop.database, 'DROP VIEW seen; ALTER TABLE people ALTER note TYPE varchar(80)')
    const again = await shop.connect()
    assert.equal(await ask(again, shop.exposed, 'SELECT note FROM people'), STALE)
    const fresh = cut(await (await shop.connect()).introspect(signal))
    for (const connection of [shop.warm, await shop.connect()])
      assert.match(await ask(connection, fresh, 'SELECT note FROM people'), /note 1/)
  })

  test('a profile of a changed table is also refused', async () => {
    await using shop = await openShop()
    const table = shop.exposed.tables.find((one) => one.table === 'people')
    assert.ok(table)
    await server.query(shop.database, SWAP)
    const bounds = { rows: 100, timeoutMs: 5_000, bytes: null }
    await assert.rejects(shop.warm.profile(table, shop.exposed, bounds, signal), { code: STALE })
  })

  test('if columns swap names while queries run, no query returns the hidden column', async () => {
    await using shop = await openShop()
    const stop = new AbortController()
    const swap = `BEGIN; ${SWAP}; COMMIT`
    const back = 'BEGIN; ALTER TABLE people RENAME note TO secret_note; ALTER TABLE people RENAME note_old TO note; COMMIT'
    const changes = (async () => {
      for (let turn = 0; turn < 60; turn++) await server.query(shop.database, turn % 2 === 0 ? swap : back)
      stop.abort()
    })()
    const seen = new Map<string, number>()
    const askers = Array.from({ length: 4 }, async () => {
      let connection = await shop.connect()
      while (!stop.signal.aborted) {
        if (!connection.usable) connection = await shop.connect()
        const answer = await ask(connection, shop.exposed, 'SELECT note FROM people ORDER BY id')
        assert.ok(!answer.includes('CANARY'), answer)
        seen.set(answer, (seen.get(answer) ?? 0) + 1)
      }
    })
    await Promise.all([changes, ...askers])
    assert.deepEqual([...seen.keys()].sort(), ['SCHEMA_STALE', '[["note 1"],["note 2"],["note 3"]]'])
  })
})
