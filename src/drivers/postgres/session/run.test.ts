import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { AppError } from '../../../errors.ts'
import {
  emptyKnown,
  LIMITS,
  openSession,
  queryOf,
  settingsOf,
  type TestSession,
} from '../../../../test/support/postgres-session.ts'
import { startPostgres, type TestPostgres } from '../../../../test/support/postgres.ts'
import { until } from '../../../../test/support/until.ts'
import { seal } from '../../confined.ts'
import { costBound, explainSql, planCost } from './estimate.ts'
import { logIn } from './connect.ts'
import { PostgresConnection } from './connection.ts'
import type { PostgresQuery } from '../confined-query.ts'
import { targetOf } from './settings.ts'

const SETUP = `
CREATE TABLE orders AS SELECT i AS id, 'note ' || i AS note, i % 7 AS kind FROM generate_series(1, 20000) i; ANALYZE orders;
CREATE TABLE secrets AS SELECT 'canary' AS token;
CREATE FUNCTION leak() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the token is %', (SELECT token FROM public.secrets) USING ERRCODE = '42883'; END $$;
CREATE FUNCTION folded(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1 + 1; END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_functions = pl', current_database()); END $$;
CREATE TABLE protected (id int); ALTER TABLE protected ENABLE ROW LEVEL SECURITY;
CREATE TABLE parted (id int) PARTITION BY RANGE (id); CREATE TABLE part1 PARTITION OF parted FOR VALUES FROM (0) TO (10);`
const stack = new AsyncDisposableStack()
let server: TestPostgres
let database: string
let version: number
before(async () => {
  server = stack.use(await startPostgres())
  database = await server.createDatabase('runs', SETUP)
  version = Number((await server.query(database, 'SHOW server_version_num'))[0]?.[0])
})
after(() => stack.disposeAsync())

async function connection(): Promise<PostgresConnection> {
  const login = await logIn(targetOf(settingsOf(server, database)), true, AbortSignal.timeout(60_000))
  const known = emptyKnown()
  return new PostgresConnection(login, () => known)
}

function confined(text: string, more: Partial<PostgresQuery> = {}): ReturnType<typeof seal> {
  return seal('POSTGRES', queryOf(text, version, more))
}

function open(): Promise<TestSession> {
  return openSession(settingsOf(server, database))
}

async function failed(work: Promise<unknown>): Promise<AppError> {
  try {
    await work
  } catch (error) {
    assert.ok(error instanceof AppError, String(error))
    return error
  }
  return assert.fail('did not fail')
}

/** Waits until no session of the driver runs a statement. */
async function untilIdle(): Promise<void> {
  const sql = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vitrine' AND state <> 'idle'`
  await until('every session is idle', async () => (await server.query('postgres', sql))[0]?.[0] === '0')
}

const never = new AbortController().signal
/** For queries that take seconds on a busy machine. */
const PATIENT = { ...LIMITS, timeoutMs: 60_000 }

test('after an error, the next query runs on the same session', async () => {
  await using session = await open()
  for (const text of ['SELECT 1/0', 'SELECT id FROM public.orders WHERE note::int = 1', 'SELECT nothing()']) {
    await failed(session.run(text))
    assert.equal((await session.run('SELECT 1')).rows, '[[1]]')
  }
  const [[state] = []] = await server.query(
    'postgres',
    `SELECT state FROM pg_stat_activity WHERE application_name = 'vitrine'`,
  )
  assert.equal(state, 'idle')
})

test('a text with two statements never runs', async () => {
  await using session = await open()
  await failed(session.run('SELECT 1; CREATE TABLE evil (x int)'))
  for (const text of ['COMMIT', 'SET search_path = public', 'EXPLAIN ANALYZE SELECT 1']) {
    assert.equal((await failed(session.run(text))).code, 'QUERY_FAILED')
    assert.equal(session.login.session.wire.usable, true)
  }
  assert.deepEqual(await server.query(database, `SELECT 1 FROM pg_class WHERE relname = 'evil'`), [])
})

test('after a statement that ends the transaction, the session still cannot write', async () => {
  await using session = await open()
  await session.run('COMMIT').catch(() => undefined)
  assert.equal((await session.run(`SELECT current_setting('transaction_read_only')`)).rows, '[["on"]]')
})

test('a session with changed settings is still read-only, and its timeout and path are set again', async () => {
  await using session = await open()
  await session.run(
    `SELECT set_config('default_transaction_read_only', 'off', false), set_config('statement_timeout', '0', false), set_config('search_path', 'public', false)`,
  )
  const settings = ['transaction_read_only', 'statement_timeout', 'search_path'].map(
    (name) => `current_setting('${name}')`,
  )
  assert.equal((await session.run(`SELECT ${settings.join(', ')}`)).rows, '[["on","15s","pg_catalog"]]')
  const write = await failed(session.run(`SELECT lo_create(0) FROM public.orders FOR UPDATE`))
  assert.match(write.message, /read-only/)
})

test('rows are cut at the row cap, and the session stays usable', async () => {
  await using session = await open()
  const rows = await session.run('SELECT id FROM public.orders ORDER BY id LIMIT 4', { rowCap: 3 })
  assert.deepEqual([rows.rows, rows.rowCount, rows.truncated], ['[[1],[2],[3]]', 3, true])
  const all = await session.run('SELECT id FROM public.orders ORDER BY id LIMIT 3', { rowCap: 3 })
  assert.deepEqual([all.rowCount, all.truncated], [3, false])
})

test('rows are cut at the byte cap, and the remaining rows are complete', async () => {
  await using at = await connection()
  const limits = { ...LIMITS, maxResponseBytes: 65_536 }
  const rows = await at.run(confined(`SELECT repeat('x', 1000) FROM generate_series(1, 200)`), limits, never)
  assert.equal(rows.truncated, true)
  assert.ok(rows.rows.length <= 65_536 && rows.rowCount === 65, `${rows.rows.length} ${rows.rowCount}`)
  assert.equal((JSON.parse(String(rows.rows)) as unknown[]).length, rows.rowCount)
  assert.equal(at.usable, false)
  await untilIdle()
})

test('a value of 200 MB is not buffered: the row does not fit, and memory does not grow', async () => {
  await using at = await connection()
  await at.run(confined(`SELECT 1`), LIMITS, never)
  const before = process.memoryUsage.rss()
  let peak = before
  // unref(): nothing stops the timer after a failure, and the process would never end.
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5).unref()
  const rows = await at.run(
    confined(`SELECT 7 AS a, 'x' AS b UNION ALL SELECT 8, repeat('x', 200000000)`),
    PATIENT,
    never,
  )
  clearInterval(watch)
  assert.deepEqual([rows.rows, rows.truncated, at.usable], ['[[7,"x"]]', true, false])
  assert.ok(peak - before < 60e6, `${(peak - before) / 1e6} MB more`)
  await untilIdle()
})

test('an error that quotes 100 MB is reported, and the session stays usable', async () => {
  await using at = await connection()
  const error = await failed(at.run(confined(`SELECT repeat('x', 100000000)::int`), PATIENT, never))
  assert.deepEqual(
    [error.code, error.message],
    ['QUERY_FAILED', 'A string is not a valid value of the type it is cast to.'],
  )
  assert.equal((await at.run(confined('SELECT 1'), LIMITS, never)).rows, '[[1]]')
})

test('rows over several chunks, and many rows in one chunk, are read correctly', async () => {
  await using session = await open()
  const rows = await session.run(
    `SELECT g, repeat('é', g * 37) FROM generate_series(1, 700) g`,
    {},
    { maxResponseBytes: 64 << 20 },
  )
  const expected = Array.from({ length: 700 }, (_, i) => [i + 1, 'é'.repeat((i + 1) * 37)])
  assert.deepEqual(JSON.parse(String(rows.rows)), expected)
})

test('a query that takes too long is cancelled in the database and fails with QUERY_TIMEOUT', async () => {
  // Retry, because on a busy machine the server may take longer than the half second after which the session is
  // abandoned.
  await until('the session stays usable', async () => {
    await using at = await connection()
    const error = await failed(at.run(confined('SELECT pg_sleep(60)'), { ...LIMITS, timeoutMs: 300 }, never))
    assert.equal(error.code, 'QUERY_TIMEOUT')
    await untilIdle()
    return at.usable
  })
})

test('a query is cancelled in the database when its caller disconnects', async () => {
  await using at = await connection()
  const hangUp = new AbortController()
  const running = failed(at.run(confined('SELECT count(*) FROM generate_series(1, 1e12)'), LIMITS, hangUp.signal))
  for (let seen = '0'; seen === '0';) {
    const sql = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vitrine' AND state = 'active'`
    seen = (await server.query('postgres', sql))[0]?.[0] ?? '0'
  }
  hangUp.abort(new Error('hung up'))
  assert.equal((await running).code, 'QUERY_TIMEOUT')
  assert.equal(at.usable, false)
  await untilIdle()
})

test('if the server ends a session, the query fails with DATASOURCE_UNAVAILABLE, and the session is not used again', async () => {
  await using at = await connection()
  const running = failed(at.run(confined('SELECT pg_sleep(60)'), LIMITS, never))
  const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'vitrine' AND state = 'active'`
  while ((await server.query('postgres', end)).length === 0);
  assert.equal((await running).code, 'DATASOURCE_UNAVAILABLE')
  assert.equal(at.usable, false)
  assert.equal((await failed(at.run(confined('SELECT 1'), LIMITS, never))).code, 'DATASOURCE_UNAVAILABLE')
})

test('an idle session that the server ends is no longer usable', async () => {
  await using at = await connection()
  await at.run(confined('SELECT 1'), LIMITS, never)
  await server.query(
    'postgres',
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'vitrine'`,
  )
  await until('the connection is no longer usable', () => !at.usable)
})

test('a plan over the cost limit is refused with estimate and limit, and does not run', async () => {
  await using at = await connection()
  const text = 'SELECT count(*) FROM public.orders a, public.orders b, public.orders c'
  const error = await failed(at.run(confined(text), { ...LIMITS, maxCost: 1_000 }, never))
  assert.equal(error.code, 'QUERY_DENIED')
  assert.deepEqual([error.extra['blocked'], error.extra['limit']], [{ kind: 'cost', name: 'plan cost' }, 1_000])
  assert.ok(Number(error.extra['estimate']) > 1e9 && error.message.includes('plan cost'))
  assert.equal(typeof error.extra['hint'], 'string')
  assert.equal((await at.run(confined('SELECT 1'), LIMITS, never)).rows, '[[1]]')
})

test('a query is planned only once, for its cost and its rows, and its prepared statement is closed', async () => {
  const planned = async (): Promise<number> => {
    const sql = `SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'folded'`
    return Number((await server.query(database, sql))[0]?.[0])
  }
  const at = await open()
  // The function is immutable and its arguments are constant, so the planner calls it, and the plan shows the result.
  for (let n = 0; n < 20; n++) assert.equal((await at.run('SELECT public.folded(2)')).rows, '[[3]]')
  await failed(at.run('SELECT public.folded(2), 1 / (SELECT count(*) FROM public.orders WHERE id < 0)'))
  await failed(at.run('SELECT public.folded(2) FROM public.orders a, public.orders b', {}, { maxCost: 1 }))
  const left = `SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%folded' || '(2)%' AND name ~ '^p'`
  assert.equal((await at.run(left)).rows, '[[0]]')
  // The server writes the statistics of a session when it ends.
  await at[Symbol.asyncDispose]()
  await until('the calls are counted', async () => (await planned()) > 0)
  assert.equal(await planned(), 22)
})

test('after the server lost a prepared statement, the session names no more statements', async () => {
  await using at = await open()
  const text = 'SELECT count(*) FROM public.orders a JOIN public.orders b USING (id)'
  const { wire } = at.running.session
  const send = wire.exchange.bind(wire)
  let renamed = 0
  wire.exchange = (request, ...rest) => {
    const explaining = request.indexOf('EXECUTE "p')
    if (explaining >= 0) {
      request[explaining + 'EXECUTE "p'.length] = 0x2a
      renamed++
    }
    return send(request, ...rest)
  }
  for (let n = 0; n < 3; n++) assert.equal((await at.run(text)).rows, '[[20000]]')
  assert.equal(renamed, 1)
})

test('estimate() returns the planner’s cost and runs nothing', async () => {
  await using at = await connection()
  const { cost } = await at.estimate(confined('SELECT pg_sleep(60)'), LIMITS, never)
  assert.ok(cost > 0 && cost < 1)
})

test('EXPLAIN runs only for an unknown table size, or if the size does not keep the cost under the limit', async () => {
  await using session = await open()
  const bound = { schema: 'public', table: 'orders', operations: 1, sorts: false }
  await session.run('SELECT id FROM public.orders WHERE id = 1', { bound }, { maxCost: 1e6 })
  assert.ok((session.running.known.sizes.get('public\0orders')?.size?.pages ?? 0) > 100)
  // The limit is lower than the bound, so EXPLAIN must decide.
  const error = await failed(session.run('SELECT id FROM public.orders', { bound }, { maxCost: 10 }))
  assert.equal(error.code, 'QUERY_DENIED')
})

for (const table of ['parted', 'protected']) {
  test(`the size of a table does not bound the cost if the table is ${table}`, async () => {
    await using session = await open()
    await session.run(`SELECT id FROM public.${table}`, {
      bound: { schema: 'public', table, operations: 1, sorts: false },
    })
    assert.equal(session.running.known.sizes.get(`public\0${table}`)?.size, null)
  })
}

test('the cost bound that follows from a table’s size is never below the planner’s cost', async () => {
  await using at = await open()
  const texts = [
    ['SELECT id FROM public.orders WHERE id = 1', 1, false],
    ['SELECT note, count(*) FROM public.orders GROUP BY note ORDER BY 2 DESC', 1, true],
    ['SELECT DISTINCT note, kind, id FROM public.orders ORDER BY note, id', 0, true],
    [`SELECT to_tsvector('simple', note), id + 1 FROM public.orders ORDER BY 2`, 2, true],
  ] as const
  for (const [text, operations, sorts] of texts) {
    await at.run('SELECT 1 FROM public.orders LIMIT 1', {
      bound: { schema: 'public', table: 'orders', operations, sorts },
    })
    const size = at.running.known.sizes.get('public\0orders')?.size
    assert.ok(size)
    const [[plan] = []] = await server.query(database, explainSql(text))
    const cost = planCost([[plan ?? '']])
    assert.ok(costBound({ schema: '', table: '', operations, sorts }, size) >= cost, `${text} ${cost}`)
  }
})

test('a query fails with SCHEMA_STALE if the database does not know a name that the guard found', async () => {
  await using session = await open()
  assert.equal((await failed(session.run('SELECT id FROM public.gone'))).code, 'SCHEMA_STALE')
  assert.equal((await failed(session.run('SELECT b.gone FROM public.orders AS b'))).code, 'SCHEMA_STALE')
  const error = await failed(session.run('SELECT note + 1 FROM public.orders'))
  assert.deepEqual([error.code, error.message], ['QUERY_FAILED', 'operator does not exist: text + integer'])
})

test('a query fails with SCHEMA_STALE if the server has another major version than at introspection', async () => {
  await using session = await open()
  assert.equal((await failed(session.run('SELECT 1', { serverVersion: 90_600 }))).code, 'SCHEMA_STALE')
})

test('the message of an error inside a function is not shown', async () => {
  await using session = await open()
  const error = await failed(session.run('SELECT public.leak()'))
  assert.equal(error.code, 'QUERY_FAILED')
  assert.ok(!error.message.includes('token') && !error.message.includes('canary'), error.message)
})

test('an answer has the column names of the database, even duplicate and unusual ones', async () => {
  await using session = await open()
  const rows = await session.run('SELECT 1 AS "A b", 2 AS "é", 3 AS "A b"')
  assert.deepEqual(
    rows.columns.map((column) => column.name),
    ['A b', 'é', 'A b'],
  )
})

test('an answer may have no columns', async () => {
  await using session = await open()
  const rows = await session.run('SELECT FROM public.orders WHERE id < 3')
  assert.deepEqual([rows.rows, rows.columns, rows.rowCount], ['[[],[]]', [], 2])
})
