// Compares the profile of a table with the result of plain SQL over the same rows, also for unusual data.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeCertificates } from '../../../../test/support/certificates.ts'
import { startPostgres, type TestPostgres } from '../../../../test/support/postgres.ts'
import { settingsOf } from '../../../../test/support/postgres-session.ts'
import { until } from '../../../../test/support/until.ts'
import { AppError } from '../../../errors.ts'
import type { Catalog, CatalogTable, ColumnProfile, Connection, Driver, TableProfile } from '../../driver.ts'
import { createPostgresDriver } from '../driver.ts'

const SQL = `
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE DOMAIN short AS varchar(5);
CREATE TABLE kinds (
  id int PRIMARY KEY, yes boolean, small smallint, big bigint, amount numeric(12, 2), exact numeric, part real,
  label text, code char(4), mood mood, short short, born date, at timestamp, seen timestamptz, hour time, ref uuid,
  doc jsonb, list int[], raw bytea, net inet
);
INSERT INTO kinds SELECT n, n % 2 = 0, n % 7, 9007199254740990 + n, n * 1.25, CASE WHEN n = 3 THEN 'NaN' ELSE n::numeric END,
  CASE n WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' ELSE n::real END, CASE WHEN n % 10 > 0 THEN 'label ' || n % 4 END,
  'c' || n % 3, (CASE WHEN n % 5 = 0 THEN 'sad' ELSE 'glad' END)::mood, 's' || n % 2, date '2024-02-01' + n,
  timestamp '2024-01-01 10:00' + n * interval '1 hour', timestamptz '2024-01-01 10:00+02' + n * interval '1 hour',
  time '10:00' + n * interval '1 minute', md5(n::text)::uuid, '{"a": 1}', ARRAY[n], '\\x00', '10.0.0.1'
  FROM generate_series(1, 200) n;
CREATE TABLE odd (at timestamptz, day date, many numeric);
INSERT INTO odd VALUES ('infinity', '0044-03-15 BC', 1), ('-infinity', '-infinity', 'Infinity'),
  ('2024-05-06 07:08:09+00', '2024-05-06', 10::numeric ^ 500), ('2023-01-01 00:00:00+00', '10000-01-01', 2);
CREATE TABLE empty (id int, name text);
CREATE TABLE huge (id int, body text);
INSERT INTO huge SELECT n, repeat(md5(n::text), 32768) FROM generate_series(1, 60) n;
CREATE TABLE large (id int PRIMARY KEY, kind text, total numeric(10, 2), day date);
INSERT INTO large SELECT n, 'kind ' || n % 6, n % 1000, date '2020-01-01' + n % 365 FROM generate_series(1, 120000) n;
CREATE TABLE parts (id int, part int) PARTITION BY LIST (part);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT n, 1 + n % 2 FROM generate_series(1, 40000) n;
CREATE VIEW recent AS SELECT id, kind FROM large WHERE id > 119000;
CREATE VIEW dear AS SELECT count(*) FROM large a, large b;
CREATE VIEW broken AS SELECT 1 / (id - 1) AS one FROM kinds;
CREATE VIEW slow AS SELECT pg_sleep(1)::text AS slept, id FROM kinds;
ANALYZE;
CREATE TABLE unseen AS SELECT n AS id, 'x' || n % 3 AS x FROM generate_series(1, 50000) n;
CREATE TABLE "odd ""name""" ("a.b" text, "SELECT" int, "''" int, "\\" int);
INSERT INTO "odd ""name""" VALUES ('x', 1, 2, 3);
`
const BOUNDS = { rows: 10_000, timeoutMs: 5_000, bytes: null }

describe('profiles of tables', () => {
  let server: TestPostgres
  let database: string
  let driver: Driver
  let connection: Connection
  let catalog: Catalog
  const soon = () => AbortSignal.timeout(60_000)
  before(async () => {
    server = await startPostgres()
    const wide = Array.from({ length: 1_600 }, (_, n) => `c${n} int`).join(', ')
    const values = Array.from({ length: 1_600 }, (_, n) => `n + ${n}`).join(', ')
    database = await server.createDatabase(
      'profiles',
      `${SQL} CREATE TABLE wide (${wide}); INSERT INTO wide SELECT ${values} FROM generate_series(1, 2000) n;`,
    )
    driver = await createPostgresDriver()
    connection = await connect()
    catalog = await connection.introspect(soon())
  })
  after(async () => {
    await connection[Symbol.asyncDispose]()
    await driver[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const connect = () => driver.connect(settingsOf(server, database), { allowPrivateHosts: true }, soon())
  function tableOf(name: string): CatalogTable {
    const table = catalog.tables.find((each) => each.table === name)
    assert.ok(table, name)
    return table
  }
  const profile = (name: string, more: Partial<typeof BOUNDS> = {}): Promise<TableProfile> =>
    connection.profile(tableOf(name), catalog, { ...BOUNDS, ...more }, soon())
  const columns = (profiled: TableProfile): Map<string, ColumnProfile> =>
    new Map(profiled.columns.map((column) => [column.name, column]))

  test('the profile of a small table is exact, and values have the same form as in an answer', async () => {
    const profiled = await profile('kinds')
    assert.deepEqual([profiled.rowsSampled, profiled.complete, profiled.estimatedRows], [200, true, 200])
    const of = columns(profiled)
    assert.deepEqual(
      profiled.columns.map(({ name, kind }) => `${name} ${kind}`).join(', '),
      'id number, yes boolean, small number, big number, amount number, exact number, part number, label text, ' +
        'code text, mood label, short text, born time, at time, seen time, hour text, ref text, doc other, list other, ' +
        'raw other, net text',
    )
    assert.deepEqual(of.get('yes')?.values, [
      { value: false, share: 0.5, rows: 100 },
      { value: true, share: 0.5, rows: 100 },
    ])
    assert.deepEqual([of.get('small')?.distinctCount, of.get('small')?.range], [7, { min: 0, max: 6 }])
    assert.deepEqual(of.get('big')?.range, { min: 9007199254740991, max: '9007199254741190' })
    assert.deepEqual(of.get('amount')?.range, { min: 1.25, max: 250 })
    assert.deepEqual(
      [of.get('exact')?.range, of.get('exact')?.signals[0]],
      [{ min: 1, max: 200 }, 'contains NaN or infinity'],
    )
    assert.deepEqual(of.get('part')?.range, { min: 3, max: 200 })
    assert.deepEqual([of.get('label')?.nullFrac, of.get('label')?.distinctCount], [0.1, 4])
    assert.equal(of.get('code')?.values?.[0]?.value, 'c1  ')
    assert.deepEqual(of.get('mood')?.values, [
      { value: 'glad', share: 0.8, rows: 160 },
      { value: 'sad', share: 0.2, rows: 40 },
    ])
    assert.equal(of.get('short')?.distinctCount, 2)
    assert.deepEqual(of.get('born')?.range, { min: '2024-02-02', max: '2024-08-19' })
    assert.deepEqual(of.get('seen')?.range, { min: '2024-01-01T09:00:00Z', max: '2024-01-09T16:00:00Z' })
    assert.deepEqual(of.get('at')?.range, { min: '2024-01-01T11:00:00', max: '2024-01-09T18:00:00' })
    assert.equal(of.get('ref')?.sample?.looks['uuid'], 1)
    assert.deepEqual(of.get('hour')?.sample?.looks, {})
    assert.equal(of.get('net')?.sample?.looks['ipAddress'], 1)
    for (const name of ['doc', 'list', 'raw']) {
      assert.deepEqual([of.get(name)?.nullFrac, of.get(name)?.values, of.get(name)?.distinctCount], [0, null, null])
    }
    assert.deepEqual(of.get('id')?.signals, ['ascends in the order rows are stored'])
  })

  test('the profile of a large table uses statistics and some pages, and is close to the result of plain SQL', async () => {
    const profiled = await profile('large')
    assert.equal(profiled.complete, false)
    assert.ok(profiled.rowsSampled > 5_000 && profiled.rowsSampled <= 10_000, String(profiled.rowsSampled))
    assert.ok(Math.abs((profiled.estimatedRows ?? 0) - 120_000) < 1_000)
    const of = columns(profiled)
    assert.deepEqual([of.get('id')?.distinctCount, of.get('kind')?.distinctCount], [120_000, 6])
    assert.equal(of.get('total')?.distinctCount, 1000)
    assert.ok(of.get('kind')?.values?.every(({ share, rows }) => Math.abs(share - 1 / 6) < 0.02 && rows > 1_000))
    const range = of.get('id')?.range
    assert.ok(Number(range?.min) < 500 && Number(range?.max) > 119_500, JSON.stringify(range))
    assert.deepEqual(of.get('day')?.range, { min: '2020-01-01', max: '2020-12-30' })
  })

  test('a profile samples a table that was never analysed, and a partitioned table', async () => {
    const profiled = await profile('unseen', { rows: 1_000 })
    assert.ok(profiled.rowsSampled > 200 && profiled.rowsSampled <= 1_000)
    assert.equal(columns(profiled).get('x')?.distinctCount, 3)
    const parts = await profile('parts', { rows: 1_000 })
    assert.ok(parts.rowsSampled > 200 && parts.rowsSampled <= 1_000, String(parts.rowsSampled))
    assert.deepEqual([columns(parts).get('part')?.distinctCount, columns(parts).get('id')?.distinctCount], [2, 40_000])
  })

  test('a profile never shows NaN, an infinity or a date BC as the end of a range', async () => {
    const of = columns(await profile('odd'))
    assert.deepEqual(of.get('at')?.range, { min: '2023-01-01T00:00:00Z', max: '2024-05-06T07:08:09Z' })
    assert.deepEqual(of.get('day')?.range, { min: '2024-05-06', max: '2024-05-06' })
    assert.deepEqual(of.get('at')?.signals, ['contains infinite times, or times outside the years 1 to 9999'])
    assert.deepEqual([of.get('many')?.values, of.get('many')?.range?.min], [null, 1])
  })

  test('the profile of an empty table says that the table is empty', async () => {
    const profiled = await profile('empty')
    assert.deepEqual([profiled.rowsSampled, profiled.complete, profiled.estimatedRows], [0, true, 0])
    assert.deepEqual([profiled.columns[0]?.nullFrac, profiled.columns[0]?.distinctCount], [null, null])
  })

  test('a profile reads only the first 257 characters of a very long text', async () => {
    const before = process.memoryUsage().rss
    const profiled = await profile('huge')
    assert.deepEqual([profiled.rowsSampled, profiled.columns[1]?.sample?.longest], [60, 257])
    assert.deepEqual(profiled.columns[1]?.values, [])
    assert.ok(process.memoryUsage().rss - before < 64e6)
  })

  test('the profile of a table with 1,600 columns samples fewer rows', async () => {
    const profiled = await profile('wide')
    assert.equal(profiled.columns.length, 1_600)
    assert.ok(profiled.rowsSampled > 50 && profiled.rowsSampled <= 501, String(profiled.rowsSampled))
    assert.ok(profiled.columns.every((column) => column.range !== null))
  })

  test('the profile of a view reads its first rows, unless that costs too much, fails or takes too long', async () => {
    const profiled = await profile('recent')
    assert.deepEqual(
      [profiled.rowsSampled, profiled.complete, columns(profiled).get('kind')?.distinctCount],
      [1_000, true, 6],
    )
    await assert.rejects(profile('broken'), isCode('QUERY_FAILED'))
    await assert.rejects(profile('dear'), isCode('QUERY_DENIED'))
    const slow = await profile('slow', { timeoutMs: 300 })
    assert.deepEqual([slow.rowsSampled, slow.complete, slow.columns.length], [0, false, 2])
    assert.ok(connection.usable)
  })

  test('names of tables and columns are quoted in the statements of a profile', async () => {
    const profiled = await profile('odd "name"')
    assert.deepEqual(
      profiled.columns.map((column) => [column.name, column.nullFrac]),
      [
        ['a.b', 0],
        ['SELECT', 0],
        ["''", 0],
        ['\\', 0],
      ],
    )
  })

  test('a profile reads only the exposed columns, and a table that is not exposed is refused', async () => {
    const table = { ...tableOf('kinds'), columns: tableOf('kinds').columns.filter(({ name }) => name === 'label') }
    const exposed = { ...catalog, tables: [table] }
    await server.query(database, 'REVOKE ALL ON kinds FROM PUBLIC; CREATE ROLE narrow LOGIN PASSWORD $$n$$')
    await server.query(database, 'GRANT SELECT (label) ON kinds TO narrow')
    const settings = settingsOf(server, database, { username: 'narrow', secrets: { password: 'n' } })
    await using narrow = await driver.connect(settings, { allowPrivateHosts: true }, soon())
    const profiled = await narrow.profile(table, exposed, BOUNDS, soon())
    assert.deepEqual(
      profiled.columns.map((column) => [column.name, column.distinctCount]),
      [['label', 4]],
    )
    await assert.rejects(narrow.profile(tableOf('kinds'), catalog, BOUNDS, soon()), isCode('QUERY_FAILED'))
    await assert.rejects(narrow.profile(tableOf('large'), exposed, BOUNDS, soon()), TypeError)
  })

  test('the profile of a missing table or column fails with SCHEMA_STALE', async () => {
    await server.query(database, 'CREATE TABLE leaving (id int, name text); INSERT INTO leaving VALUES (1, $$x$$)')
    const now = await connection.introspect(soon())
    const leaving = now.tables.find((each) => each.table === 'leaving')
    assert.ok(leaving)
    await server.query(database, 'ALTER TABLE leaving DROP COLUMN name')
    await assert.rejects(connection.profile(leaving, now, BOUNDS, soon()), isCode('SCHEMA_STALE'))
    await server.query(database, 'DROP TABLE leaving')
    await assert.rejects(connection.profile(leaving, now, BOUNDS, soon()), isCode('SCHEMA_STALE'))
    assert.ok(connection.usable)
  })

  test('a profile over TLS also reads rows in slices, with the same result', async () => {
    await using certificates = await makeCertificates()
    const file = (name: string): string => join(certificates.folder, name)
    const tls = { certFile: file('server.crt'), keyFile: file('server.key'), caFile: file('ca.crt') }
    await using safe = await startPostgres({ tls })
    const made = await safe.createDatabase(
      'safe',
      `CREATE TABLE many (id int PRIMARY KEY, name text, other text);
       INSERT INTO many SELECT n, 'name ' || md5(n::text), repeat('x', 200) || n FROM generate_series(1, 9000) n; ANALYZE`,
    )
    const settings = settingsOf(safe, made, { sslMode: 'require' })
    await using own = await driver.connect(settings, { allowPrivateHosts: true }, soon())
    const now = await own.introspect(soon())
    const [many] = now.tables
    assert.ok(many)
    const profiled = await own.profile(many, now, { ...BOUNDS, timeoutMs: 30_000 }, soon())
    assert.deepEqual(
      [profiled.rowsSampled, profiled.complete, profiled.columns.map(({ distinctCount }) => distinctCount)],
      [9_000, true, [9_000, 9_000, 9_000]],
    )
  })

  test('a cancelled profile ends in the database', async () => {
    await using own = await connect()
    const control = new AbortController()
    const profiled = own.profile(tableOf('slow'), catalog, { ...BOUNDS, timeoutMs: 600_000 }, control.signal)
    const active = `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%slow%LIMIT%'
      AND pid <> pg_backend_pid()`
    const count = async (): Promise<number> => Number((await server.query(database, active))[0]?.[0])
    while ((await count()) === 0) assert.ok(own.usable)
    control.abort()
    await assert.rejects(profiled, isCode('QUERY_TIMEOUT'))
    await own[Symbol.asyncDispose]()
    await until('the database has ended the query', async () => (await count()) === 0)
    assert.equal(own.usable, false)
  })
})

const isCode =
  (code: string) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof AppError, String(error))
    assert.equal(error.code, code, error.message)
    return true
  }
