import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openRooms, type Rooms } from '../../test/support/connected.ts'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { Profiled, withProfiles } from '../../test/support/profiled-datasource.ts'
import { storeSource } from '../../test/support/stores.ts'
import { AppError } from '../errors.ts'
import { introspectDatasource } from './introspect-job.ts'
import { newId, type JobId } from '../ids.ts'
import { forgetPersonal } from '../profiles/stored-profiles.ts'

const SQL = `
CREATE TABLE customers (id int PRIMARY KEY, full_name text, email text, phone bigint, born_on date, country text, vip boolean,
  has_email boolean, contact text, note text);
INSERT INTO customers SELECT n, 'Ada ' || n % 3, 'a' || n % 3 || '@example.com', 4930000000 + n % 3, date '1980-01-01' + n % 4,
  CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN 'DE' ELSE 'FR' END, n % 2 = 0, true,
  CASE WHEN n % 10 = 0 THEN 'eve@example.com' ELSE 'none' END,
  'Please call me back before the end of week ' || n % 2 FROM generate_series(1, 100) n;
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, state text, rare text, placed_at timestamptz);
INSERT INTO orders SELECT n, 1 + n % 100, CASE WHEN n % 3 = 0 THEN 'paid' ELSE 'open' END,
  CASE WHEN n <= 4 THEN 'only four' ELSE 'often' END, timestamptz '2024-01-01Z' + n * interval '1 hour'
  FROM generate_series(1, 300) n;
CREATE TABLE slow_base (id int); INSERT INTO slow_base VALUES (1);
CREATE VIEW slow AS SELECT pg_sleep(20)::text AS slept FROM slow_base;
ANALYZE;
`

describe('profiles', () => {
  let made = 0
  let postgres: TestPostgres
  let rooms: Rooms
  before(async () => {
    postgres = await startPostgres()
    rooms = await openRooms()
    withProfiles(rooms)
  })
  after(async () => {
    await rooms[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const orderOf = (database: string, server = postgres) => ({
    host: server.host,
    port: server.port,
    database,
    username: server.superuser,
    password: server.password,
  })
  async function shop(
    more = '',
    tables: Parameters<typeof Profiled.connect>[2] = SHOWN,
  ): Promise<Profiled & { database: string }> {
    const database = await postgres.createDatabase(`profiled${++made}`, `${SQL}${more}`)
    return Object.assign(await Profiled.connect(rooms, orderOf(database), tables), { database })
  }
  const whole = (table: string) => ({ schema: 'public', table, columns: null })
  const SHOWN = [whole('customers'), whole('orders')]

  test('after a profile, the description shows shares, counts, values, ranges and signals of the data', async () => {
    const at = await shop()
    assert.equal((await at.describe()).profileCapturedAt, null)
    assert.deepEqual(await at.profile(), { tables: 2, columns: 15, skipped: [] })
    const country = await at.stats('customers', 'country')
    assert.deepEqual(country, {
      nullFrac: 0.25,
      distinctCount: 2,
      values: [
        { value: 'FR', share: 0.5 },
        { value: 'DE', share: 0.25 },
      ],
      signals: ['enumerated'],
    })
    assert.deepEqual((await at.stats('orders', 'id'))?.range, { min: 1, max: 300 })
    const placed = await at.stats('orders', 'placed_at')
    assert.deepEqual(placed?.range, { min: '2024-01-01T01:00:00Z', max: '2024-01-13T12:00:00Z' })
    for (const signal of ['always populated although nullable', 'unique', 'ascends in the order rows are stored']) {
      assert.ok(placed?.signals.includes(signal), signal)
    }
    assert.ok(placed?.signals.some((signal) => /^newest value was \d+ days old$/.test(signal)))
    assert.ok((await at.stats('orders', 'customer_id'))?.signals.includes('looks like a key of public.customers (id)'))
    assert.ok(Date.parse((await at.describe()).profileCapturedAt ?? '') > Date.now() - 60_000)
  })

  test('a profile stores no values and no range of personal columns, and no value that fewer than five rows have', async () => {
    const at = await shop()
    await at.profile()
    for (const name of ['full_name', 'email', 'phone', 'born_on', 'note']) {
      const stats = await at.stats('customers', name)
      assert.deepEqual([stats?.values, stats?.range], [undefined, undefined], name)
      assert.ok(stats?.signals.includes('personal: its values are not shown'), name)
      assert.ok((stats?.distinctCount ?? 0) > 0)
    }
    assert.deepEqual((await at.stats('customers', 'contact'))?.values, [{ value: 'none', share: 0.9 }])
    assert.deepEqual((await at.stats('customers', 'has_email'))?.values, [{ value: true, share: 1 }])
    assert.deepEqual((await at.stats('orders', 'rare'))?.values, [{ value: 'often', share: 0.9867 }])
    assert.doesNotMatch(await at.stored(), /example\.com|Ada|4930|1980|only four|call me/)
  })

  test('enum and CHECK labels are listed before the first profile; after a profile, labels that no row has come last', async () => {
    const at = await shop(
      `CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'happy'); CREATE DOMAIN feeling AS mood NOT NULL;
       CREATE TABLE moods (id int PRIMARY KEY, now feeling, was mood, level int CHECK (level IN (1, 2, 3)),
         state varchar(9) CHECK (state IN ('open', 'paid')), hidden mood, pair text CHECK (pair IN ('a') AND length(was::text) > 0),
         late text, list mood[]);
       ALTER TABLE moods ADD CHECK (late IN ('x')) NOT VALID;
       INSERT INTO moods SELECT n, 'happy', CASE WHEN n % 4 > 0 THEN 'sad'::mood ELSE 'happy' END, 1, 'open', 'sad', 'a' FROM generate_series(1, 40) n;`,
      [{ schema: 'public', table: 'moods', columns: ['id', 'now', 'was', 'level', 'state', 'pair', 'late', 'list'] }],
    )
    const labels = (...values: unknown[]) => ({ values: values.map((value) => ({ value })), signals: [] })
    assert.deepEqual(await at.stats('moods', 'now'), labels('sad', "it's ok", 'happy'))
    assert.deepEqual(await at.stats('moods', 'was'), labels('sad', "it's ok", 'happy'))
    assert.deepEqual(await at.stats('moods', 'level'), labels(1, 2, 3))
    assert.deepEqual(await at.stats('moods', 'state'), labels('open', 'paid'))
    for (const name of ['pair', 'late', 'list', 'id']) assert.equal(await at.stats('moods', name), null, name)
    await at.profile()
    assert.deepEqual((await at.stats('moods', 'was'))?.values, [
      { value: 'sad', share: 0.75 },
      { value: 'happy', share: 0.25 },
      { value: "it's ok" },
    ])
  })

  test('for a JSON column, the profile lists the top-level keys that many rows have, but no personal keys', async () => {
    const at = await shop(
      `CREATE TABLE docs (id int PRIMARY KEY, body jsonb, old json, patient_address jsonb, by_mail jsonb, map jsonb, scalars jsonb, odd json);
       INSERT INTO docs SELECT n,
         CASE WHEN n % 2 = 0 THEN jsonb_build_object('total', n, 'lines', '[]'::jsonb, 'note', CASE WHEN n % 4 = 0 THEN 'x' END) ELSE '[1]' END,
         json_build_object('canary_secret', 'canary value ' || n, CASE WHEN n < 4 THEN 'canary_rare' ELSE 'common' END, true),
         jsonb_build_object('street', 'canary street'),
         jsonb_build_object('canary' || n % 3 || '@example.test', n, '2024-01-01', 1, '123', 2),
         jsonb_build_object('canary_k' || n % 40, 1, 'canary_r' || n, 1), '5',
         CASE WHEN n % 2 = 0 THEN '{"plain": 1}'::json ELSE '{"canary_nul": "\\u0000", "\\ud800": 1}'::json END
       FROM generate_series(1, 80) n;`,
      [
        {
          schema: 'public',
          table: 'docs',
          columns: ['id', 'body', 'old', 'patient_address', 'by_mail', 'map', 'scalars', 'odd'],
        },
      ],
    )
    await at.profile()
    assert.deepEqual((await at.stats('docs', 'body'))?.keys, [
      { key: 'note', share: 1, types: ['null', 'string'] },
      { key: 'lines', share: 1, types: ['array'] },
      { key: 'total', share: 1, types: ['number'] },
    ])
    assert.deepEqual((await at.stats('docs', 'old'))?.keys, [
      { key: 'canary_secret', share: 1, types: ['string'] },
      { key: 'common', share: 0.9625, types: ['boolean'] },
    ])
    assert.deepEqual((await at.stats('docs', 'odd'))?.keys, [{ key: 'plain', share: 1, types: ['number'] }])
    for (const name of ['patient_address', 'by_mail', 'map', 'scalars']) {
      assert.equal((await at.stats('docs', name))?.keys, undefined, name)
    }
    const kept = await at.stored()
    for (const canary of [
      'canary value',
      'canary street',
      'canary_rare',
      '@example',
      'canary_k',
      'canary_r1',
      'canary_nul',
    ]) {
      assert.ok(!kept.includes(canary), canary)
    }
    await rooms.store.write((tx) => forgetPersonal(tx, at.id, { schema: 'public', table: 'docs' }, ['old']))
    assert.equal((await at.stats('docs', 'old'))?.keys, undefined)
    assert.ok(!(await at.stored()).includes('canary_secret'))
    await at.expose([{ schema: 'public', table: 'docs', columns: ['id', 'old'] }])
    assert.ok(!(await at.stored()).includes('lines'))
  })

  test('marking a column as personal deletes its values immediately; when the mark is removed, the next profile shows them', async () => {
    const at = await shop()
    await at.profile()
    const before = (await at.at()).row.profile_version
    const mark = async (table: string, column: string, personal: boolean): Promise<void> => {
      const draft = JSON.stringify({ columns: { [column]: { personal } } })
      await rooms.store.write(async (tx) => {
        const row = { datasource_id: at.id, schema: 'public', table, draft, updated_at: '', author_id: null }
        await tx.insertInto('documentation').values(row).execute()
        await forgetPersonal(tx, at.id, { schema: 'public', table }, personal ? [column] : [])
      })
    }
    await mark('orders', 'state', true)
    assert.ok((await at.at()).row.profile_version > before)
    assert.equal((await at.stats('orders', 'state'))?.values, undefined)
    assert.doesNotMatch(await at.stored(), /"paid"/)
    await mark('customers', 'full_name', false)
    await at.profile()
    assert.equal((await at.stats('orders', 'state'))?.values, undefined)
    assert.equal((await at.stats('customers', 'full_name'))?.values?.length, 3)
  })

  test('the profile of a column is deleted when an exposure hides the column', async () => {
    const at = await shop()
    await at.profile()
    await at.expose([{ schema: 'public', table: 'customers', columns: ['id', 'vip'] }])
    const stored = await at.stored()
    assert.doesNotMatch(stored, /country|orders|paid/)
    assert.match(stored, /vip/)
    const [customers, ...others] = (await at.describe(true)).tables.filter(({ columns }) =>
      columns.some((column) => column.stats !== null),
    )
    assert.deepEqual([customers?.table, others.length], ['customers', 0])
    assert.deepEqual(
      customers?.columns.filter(({ stats }) => stats !== null).map(({ name }) => name),
      ['id', 'vip'],
    )
    await at.expose(SHOWN)
    assert.equal(await at.stats('orders', 'state'), null)
  })

  test('a missing or too expensive table is skipped and reported, and the other tables are profiled', async () => {
    const at = await shop(
      'CREATE TABLE gone (id int); CREATE VIEW dear AS SELECT count(*) FROM generate_series(1, 100000) a, orders b, orders c;',
      [...SHOWN, whole('gone'), whole('dear')],
    )
    await postgres.query(at.database, 'DROP TABLE gone')
    const result = (await at.profile()) as { tables: number; skipped: readonly { table: string; why: string }[] }
    assert.equal(result.tables, 2)
    assert.deepEqual(result.skipped.map(({ table }) => table).sort(), ['dear', 'gone'])
    assert.ok(result.skipped.every(({ why }) => why.endsWith('.')))
  })

  test('a database error reveals no value in the result of a profile', async () => {
    const raised = `CREATE FUNCTION tell(email text) RETURNS int LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'it is %', email USING DETAIL = email, HINT = email, COLUMN = email; END $$;
      CREATE VIEW tells AS SELECT tell(email) FROM customers; CREATE VIEW casts AS SELECT email::int AS n FROM customers;`
    const at = await shop(raised, [whole('tells'), whole('casts')])
    const job = await at.ended(await at.start())
    const { skipped } = job.result as { skipped: readonly { table: string; why: string }[] }
    assert.deepEqual(skipped.map(({ table }) => table).sort(), ['casts', 'tells'])
    const storedJobs = await rooms.store.db.selectFrom('jobs').selectAll().where('datasource_id', '=', at.id).execute()
    assert.doesNotMatch(JSON.stringify([job, storedJobs]), /example\.com|a[012]@/)
  })

  test('saving an exposure deletes the profile of columns that the database no longer has', async () => {
    const at = await shop()
    await at.profile()
    await postgres.query(at.database, 'ALTER TABLE orders DROP COLUMN state; ALTER TABLE customers DROP COLUMN country')
    await introspectDatasource(rooms, at.call(), await at.at())
    await at.expose(SHOWN)
    assert.doesNotMatch(await at.stored(), /"state"|paid|"country"|"FR"/)
    assert.match(await at.stored(), /placed_at/)
  })

  test('an exposure that is saved while a profile runs decides what the profile stores', async () => {
    const at = await shop('CREATE VIEW a_slow AS SELECT * FROM slow;', [whole('a_slow'), ...SHOWN])
    const job = await at.start()
    await active(at.database, 'a_slow', 1)
    await at.expose([{ schema: 'public', table: 'orders', columns: ['id'] }])
    await postgres.query(
      at.database,
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%slow%LIMIT%' AND pid <> pg_backend_pid()`,
    )
    const { state, result } = await at.ended(job)
    assert.equal(state, 'DONE')
    assert.deepEqual((result as { tables: number; columns: number }).columns, 1)
    assert.doesNotMatch(await at.stored(), /customer|paid|slept/)
  })

  test('only one profile runs at a time, an equal request joins it, and cancelling ends the statement but keeps finished tables', async () => {
    const at = await shop('', [...SHOWN, whole('slow')])
    const job = await at.start()
    assert.equal(await at.start(), job)
    await assert.rejects(at.start({ tables: [{ schema: 'public', table: 'orders' }] }), isCode('CONFLICT'))
    await active(at.database, 'slow', 1)
    assert.equal(await rooms.jobs.cancel(at.id, job), true)
    assert.equal((await at.ended(job)).state, 'CANCELLED')
    await active(at.database, 'slow', 0)
    assert.ok((await at.stats('orders', 'state')) !== null)
  })

  test('a profile of a hidden table or a disabled datasource is refused', async () => {
    const at = await shop('', [whole('orders')])
    await assert.rejects(at.start({ tables: [{ schema: 'public', table: 'customers' }] }), isCode('INVALID_REQUEST'))
    await rooms.store.write((tx) =>
      tx.updateTable('datasources').set({ status: 'DISABLED' }).where('id', '=', at.id).execute(),
    )
    await assert.rejects(at.start(), isCode('DATASOURCE_DISABLED'))
  })

  test('if the database goes away, the profile fails with our own error text and keeps finished tables', async () => {
    await using own = await startPostgres({ settings: {} })
    const database = await own.createDatabase('profiled', SQL)
    const at = await Profiled.connect(rooms, orderOf(database, own), [...SHOWN, whole('slow')])
    const job = await at.start()
    await until(async () => (await at.stored()).includes('orders'))
    await own.stop()
    const { state, error } = await at.ended(job)
    assert.equal(state, 'FAILED')
    assert.match(error ?? '', /database|connect/i)
    assert.ok((await at.stats('orders', 'state')) !== null)
    assert.equal((await at.at()).row.status, 'ERROR')
  })

  test('a profile resumes after the process was killed', async () => {
    await using source = await storeSource('sqlite')
    const config = await source.config()
    const database = await postgres.createDatabase(`profiled${++made}`, SQL)
    const left = newId<JobId>()
    const first = await openRooms({ at: config })
    withProfiles(first)
    const at = await Profiled.connect(first, orderOf(database), SHOWN)
    await at.profile()
    // This is the store after the process was killed: a running job that has finished one table.
    const job = { id: left, datasource_id: at.id, kind: 'profile', state: 'RUNNING', done: 1, total: 2 } as const
    const when = { created_at: new Date().toISOString(), updated_at: new Date().toISOString() }
    await first.store.write(async (tx) => {
      await tx
        .insertInto('jobs')
        .values({ ...job, ...when, result: null, error: null, input: '{"sample":false}' })
        .execute()
      await tx.deleteFrom('profiles').where('table', '=', 'orders').execute()
      await tx.updateTable('profiles').set({ run: left, captured_at: '2020-01-01T00:00:00.000Z' }).execute()
    })
    await first[Symbol.asyncDispose]()
    await using second = await openRooms({ at: config })
    withProfiles(second)
    const found = () => second.jobs.find(at.id, left)
    await until(async () => (await found())?.state !== 'RUNNING')
    const { state, result } = (await found()) ?? {}
    assert.deepEqual([state, result], ['DONE', { tables: 2, columns: 15, skipped: [] }])
    const kept = await second.store.db.selectFrom('profiles').select(['table', 'run', 'captured_at']).execute()
    assert.deepEqual(kept.map(({ table, run }) => `${table} ${run === left}`).sort(), ['customers true', 'orders true'])
    assert.equal(kept.find(({ table }) => table === 'customers')?.captured_at, '2020-01-01T00:00:00.000Z')
  })

  /** Waits until `count` profiling statements on the table `name` are running. */
  async function active(database: string, name: string, count: number): Promise<void> {
    const sql = `SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}' AND state = 'active'
      AND query ~ '(${name}).*LIMIT' AND pid <> pg_backend_pid()`
    await until(async () => Number((await postgres.query(database, sql))[0]?.[0]) === count)
  }
})

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve))
}

const isCode =
  (code: string) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof AppError, String(error))
    assert.equal(error.code, code, error.message)
    return true
  }
