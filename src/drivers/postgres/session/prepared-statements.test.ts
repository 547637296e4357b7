// Prepared queries must give the same answers as their texts, even after a table or the server has changed, or after
// many other shapes.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS, openSession, settingsOf, type TestSession } from '../../../../test/support/postgres-session.ts'
import { startPostgres, type TestPostgres } from '../../../../test/support/postgres.ts'
import { startTransactionPooler } from '../../../../test/support/transaction-pooler.ts'
import { until } from '../../../../test/support/until.ts'
import { AppError } from '../../../errors.ts'
import { JsonBytes } from '../../json-bytes.ts'
import { unseal } from '../../confined.ts'
import type { Catalog } from '../../driver.ts'
import { PostgresConnection } from './connection.ts'
import { confine } from '../guard/confine.ts'
import { openParser } from '../guard/parser-pool.ts'
import type { PostgresQuery } from '../confined-query.ts'
import { question, statement, SYNC } from './protocol-messages.ts'
import { Texts } from './result.ts'
import { STATEMENTS_MAX } from './prepared-statements.ts'
import { runQuery } from './run.ts'
import { NO_ROWS } from './wire.ts'

const SETUP = `
CREATE TABLE orders (id int PRIMARY KEY, kind int NOT NULL, total numeric(9,2), note text, at timestamptz);
INSERT INTO orders SELECT i, CASE WHEN i % 500 = 0 THEN i % 7 ELSE 9 END, i * 1.5, 'note ' || i, timestamptz '2024-01-01Z' + i * interval '1 hour'
FROM generate_series(1, 20000) i; CREATE INDEX ON orders (kind); ANALYZE orders;
CREATE TABLE changing (id int PRIMARY KEY, name varchar(10)); INSERT INTO changing VALUES (1, 'one'), (2, 'two');`
const signal = new AbortController().signal
const parser = await openParser({ threads: 1 })
const stack = new AsyncDisposableStack()
stack.use(parser)
let server: TestPostgres
let database: string
before(async () => {
  server = stack.use(await startPostgres({ hba: 'host all all all trust' }))
  database = await server.createDatabase('prepared', SETUP)
})
after(() => stack.disposeAsync())

interface Caller extends TestSession {
  catalog: Catalog
  /** Confines and runs a query. Returns the rows as JSON, or the code of the error. */
  ask(sql: string, params?: readonly (number | string)[]): Promise<string>
  /**
   * Returns the names of the session's prepared queries, and how often each ran with a generic and with a custom plan.
   */
  prepared(): Promise<readonly (readonly [name: string, generic: string, custom: string])[]>
}

async function open(more: object = {}): Promise<Caller> {
  const session = await openSession(settingsOf(server, database, more))
  const connection = new PostgresConnection(session.login, () => session.running.known)
  const out = new JsonBytes(64)
  const caller: Caller = {
    ...session,
    [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
    catalog: await connection.introspect(signal),
    async ask(text, params) {
      const body = { text, limit: null, ...(params && { params: { values: params, json: JSON.stringify(params) } }) }
      try {
        const verdict = await confine(parser, body, caller.catalog, LIMITS, signal)
        if (verdict.kind !== 'confined') return verdict.kind
        const query = unseal<PostgresQuery>(verdict.query, 'POSTGRES')
        const { rows, columns } = await runQuery(session.running, query, LIMITS, out)
        return `${JSON.stringify(columns)} ${String(rows)}`
      } catch (error) {
        return error instanceof AppError
          ? `${error.code} ${error.message} ${JSON.stringify(error.extra)}`
          : String(error)
      }
    },
    async prepared() {
      const sql = `SELECT name, generic_plans, custom_plans FROM pg_catalog.pg_prepared_statements WHERE name LIKE 'q%' ORDER BY name`
      const rows = await connection.ask(sql, signal)
      return rows.map(([name, generic, custom]) => [String(name), String(generic), String(custom)] as const)
    },
  }
  return caller
}

/** Runs the same query with empty caches. */
async function unprepared(caller: Caller, sql: string): Promise<string> {
  const { catalog } = caller
  caller.catalog = { ...catalog }
  const answer = await caller.ask(sql)
  caller.catalog = catalog
  return answer
}

const TEXTS = [
  'SELECT id, note, total, at FROM orders WHERE id = #',
  'SELECT * FROM orders WHERE id > # ORDER BY id LIMIT # OFFSET #',
  'SELECT count(*), sum(total) FROM orders WHERE kind = # AND id < #',
  'SELECT id FROM orders WHERE id IN (#, #, #) ORDER BY 1 DESC',
  'SELECT id % # AS n, count(*) FROM orders GROUP BY id % # ORDER BY 1',
  'SELECT id / #, -#, # - id, id * # FROM orders WHERE id BETWEEN # AND # ORDER BY id LIMIT 5',
  'SELECT total::numeric(9, #), total / #, round(total, #) FROM orders WHERE id = #',
  'SELECT repeat(note, #), lpad(note, #), left(note, #) FROM orders WHERE id = #',
  "SELECT note || 'a#b', '#' FROM orders WHERE note <> '#' AND id = #",
  'SELECT (ARRAY[#, #])[#] AS "c#" FROM orders FETCH FIRST # ROWS ONLY',
  "SELECT at + # * interval '1 day', extract(hour FROM at) > # FROM orders WHERE id = #",
  'SELECT CASE WHEN id > # THEN # ELSE #.5 END, coalesce(NULL, #) FROM orders WHERE id = #',
  'SELECT DISTINCT kind + # FROM orders WHERE id < # ORDER BY kind + #',
  'SELECT max(id) FROM orders HAVING count(*) > #',
  'SELECT sum(id) OVER (ORDER BY id ROWS # PRECEDING) FROM orders WHERE id < #',
]

test('a prepared query gives the same answers as its text, for various numbers, including refusals and failures', async () => {
  await using caller = await open()
  let seed = 20_261_122
  const number = (): string =>
    String([0, 1, 2, 3, 7, 500, 19_999, 999_999_999][(seed = (seed * 48_271) % 2_147_483_647) % 8])
  for (const pattern of TEXTS) {
    for (let round = 0; round < 12; round++) {
      const sql = pattern.replaceAll('#', number)
      assert.equal(await caller.ask(sql), await unprepared(caller, sql), sql)
    }
  }
  assert.ok((await caller.prepared()).length > 5)
})

/** Types of each kind, with two strings for each. Some strings are invalid for the type. */
const TYPED: readonly (readonly [type: string, value: string, other: string])[] = [
  ['text', 'a', 'Zoë 東'],
  ['varchar(3)', 'ab ', 'abcdef'],
  ['char(4)', 'ab', 'ab   '],
  ['name', 'ab', 'é'],
  ['uuid', '6f1d3c3e-8a3c-4f53-9d3f-1f6a5c0b7a11', 'no uuid'],
  ['date', '2024-02-03', 'today'],
  ['timestamp', '2024-02-03 04:05', '2024-02-30'],
  ['timestamptz', '2024-02-03 04:05+02', 'infinity'],
  ['time', '04:05', '25:00'],
  ['interval', '1 day', '1 fortnight'],
  ['int2', '7', '99999'],
  ['int4', ' 7 ', '7.5'],
  ['int8', '7', 'seven'],
  ['numeric(9,2)', '7.125', 'NaN'],
  ['float8', '0.1', '1e400'],
  ['bool', 'yes', 'maybe'],
  ['jsonb', '{"a": 1}', '{a'],
  ['bytea', 'abc', '%'],
  ['inet', '10.0.0.1', '10.0.0.300'],
  ['bit(3)', '101', '102'],
  ['int[]', '{1,2}', '{1,x}'],
  ['int4range', '[1,5)', '[5,1)'],
  ['mood', 'glad', 'furious'],
  ['even', '4', '5'],
  ['money', '7', 'x'],
]
const COMPARISONS = ['= @', '<> @', '< @', '>= @', 'IN (@, @)', 'NOT IN (@, @)', 'BETWEEN @ AND @', 'IS NULL OR c0 = @']

test('a bound string means the same as a literal for types of many kinds, and fails in the same way', async () => {
  const columns = TYPED.map(([type], n) => `c${n} ${type}`).join(', ')
  const values = TYPED.map(([type, value]) => `'${value}'::${type}`).join(', ')
  const types = "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN even AS int4 CHECK (VALUE % 2 = 0);"
  const typed = await server.createDatabase(
    'typed',
    `${types} CREATE TABLE typed (id int PRIMARY KEY, ${columns}); INSERT INTO typed VALUES (1, ${values}); INSERT INTO typed VALUES (2); ANALYZE typed;`,
  )
  await using caller = await open({ database: typed })
  let bound = 0
  for (const [n, [type, value, other]] of TYPED.entries()) {
    for (const comparison of COMPARISONS) {
      const pattern = `SELECT id FROM typed WHERE c${n} ${comparison} ORDER BY id`
      for (const string of [value, value, other, value, other]) {
        const sql = pattern.replaceAll('@', `'${string}'`)
        assert.equal(await caller.ask(sql), await unprepared(caller, sql), `${type}: ${sql}`)
      }
    }
    bound = Math.max(bound, (await caller.prepared()).length)
  }
  assert.ok(bound > 50, `${bound} were prepared`)
})

test('a string that is not valid for the type is refused with its position in the text', async () => {
  await using caller = await open()
  const look = (at: string): Promise<string> => caller.ask(`SELECT id FROM orders WHERE at = '${at}'`)
  for (const at of ['2024-01-01', '2024-01-02', '2024-01-03']) await look(at)
  assert.equal((await caller.prepared()).length, 1)
  assert.match(await look('soon'), /"position":33/)
  assert.match(await look('2024-01-01 05:00Z'), /\[\[5\]\]/)
})

test('a query with a string is planned for the string, whether the string is common or rare', async () => {
  await server.query(
    database,
    `CREATE TABLE skewed (id int PRIMARY KEY, kind text);
     INSERT INTO skewed SELECT i, CASE WHEN i % 5000 = 0 THEN 'rare' ELSE 'common' END FROM generate_series(1, 20000) i;
     CREATE INDEX ON skewed (kind); ANALYZE skewed`,
  )
  await using caller = await open()
  for (let i = 0; i < 12; i++) {
    const kind = i % 2 === 0 ? 'common' : 'rare'
    const answer = await caller.ask(`SELECT id FROM skewed WHERE kind = '${kind}' ORDER BY id LIMIT 2`)
    assert.ok(answer.endsWith(kind === 'rare' ? '[[5000],[10000]]' : '[[1],[2]]'), answer)
  }
  const [[, generic, custom] = []] = await caller.prepared()
  assert.deepEqual([generic, Number(custom) > 5], ['0', true])
})

test('a lookup by primary key is planned once, every other query for its own values', async () => {
  await using caller = await open()
  for (let i = 1; i <= 12; i++) {
    await caller.ask(`SELECT note FROM orders WHERE id = ${i}`)
    await caller.ask(`SELECT count(*) FROM orders WHERE kind = ${i}`)
    await caller.ask('SELECT note FROM orders WHERE id = $1 AND total > 0', [i])
  }
  const plans = (await caller.prepared()).map(([, generic, custom]) => [Number(generic) > 0, Number(custom) > 5])
  assert.deepEqual(plans, [
    [true, false],
    [false, true],
    [true, false],
  ])
})

test('the parameters of a caller and the numbers of the text are bound together', async () => {
  await using caller = await open()
  for (const at of [3, 4, 5, 6]) {
    const answer = await caller.ask('SELECT id, $2 FROM orders WHERE id > 10 AND id < $1 LIMIT 1', [10 + at, `é${at}`])
    assert.match(answer, new RegExp(`\\[\\[11,"é${at}"\\]\\]$`))
  }
  assert.equal((await caller.prepared()).length, 1)
})

test('a prepared query fails with SCHEMA_STALE, and its session is abandoned, if a column gets another type', async () => {
  await using caller = await open()
  const look = (id: number): Promise<string> => caller.ask(`SELECT name FROM changing WHERE id = ${id}`)
  for (const id of [1, 2, 1]) assert.match(await look(id), /one|two/)
  await server.query(database, 'ALTER TABLE changing ALTER name TYPE int USING 7')
  assert.match(await look(2), /^SCHEMA_STALE/)
  assert.equal(caller.login.session.wire.usable, false)
})

test('a prepared query never gives an old answer after a column gets another length', async () => {
  await server.query(database, 'CREATE TABLE longer (id int PRIMARY KEY, name varchar(3))')
  await server.query(database, "INSERT INTO longer VALUES (1, 'abc')")
  await using caller = await open()
  const look = (): Promise<string> => caller.ask('SELECT name FROM longer WHERE id = 1')
  for (let i = 0; i < 3; i++) assert.match(await look(), /abc/)
  await server.query(database, 'ALTER TABLE longer ALTER name TYPE varchar(9)')
  await server.query(database, "UPDATE longer SET name = 'abcdefghi'")
  assert.match(await look(), /abcdefghi|^SCHEMA_STALE/)
})

for (const forget of ['DEALLOCATE ALL', 'DISCARD ALL']) {
  test(`queries are sent as text after the server has dropped the prepared statements: ${forget}`, () =>
    forgets(forget))
}

async function forgets(how: string): Promise<void> {
  await using caller = await open()
  const look = (id: number): Promise<string> => caller.ask(`SELECT note FROM orders WHERE id = ${id}`)
  for (const id of [1, 2, 3]) await look(id)
  assert.equal((await caller.prepared()).length, 1)
  const { wire } = caller.login.session
  await wire.exchange(Buffer.concat([statement(how), SYNC]), 1, NO_ROWS)
  for (const id of [4, 5, 6]) assert.match(await look(id), new RegExp(`note ${id}"`))
  assert.match(await caller.ask('SELECT a.note FROM orders a JOIN orders b USING (id) WHERE id = 7'), /note 7"/)
  assert.equal((await caller.prepared()).length, 0)
}

test('behind a pooler that the login did not reveal, no name means a statement of another session', async () => {
  await using pooler = await startTransactionPooler(server.port)
  const callers: Caller[] = []
  try {
    const texts = ['SELECT note FROM orders WHERE id = #', 'SELECT note FROM orders WHERE id < # ORDER BY note LIMIT 2']
    for (const [n, text] of texts.entries()) {
      pooler.use(n)
      const caller = await open({ port: pooler.port })
      callers.push(caller)
      assert.equal(caller.login.session.server.pinsEach, false)
      for (const id of [2, 3, 4]) await caller.ask(text.replace('#', String(id)))
    }
    for (const [n, caller] of callers.entries()) {
      pooler.use(1 - n)
      const sql = texts[n]?.replace('#', '5') ?? ''
      assert.equal(await caller.ask(sql), await unprepared(caller, sql))
    }
  } finally {
    for (const caller of callers) await caller[Symbol.asyncDispose]()
  }
})

test('a session has at most STATEMENTS_MAX prepared queries, all of one exposure', async () => {
  await using caller = await open()
  for (let shape = 0; shape < STATEMENTS_MAX + 20; shape++) {
    for (const id of [1, 2, 3]) await caller.ask(`SELECT id AS s${shape} FROM orders WHERE id = ${id}`)
  }
  assert.equal((await caller.prepared()).length, STATEMENTS_MAX)
  caller.catalog = { ...caller.catalog }
  for (const id of [1, 2, 3]) await caller.ask(`SELECT id FROM orders WHERE id = ${id}`)
  assert.equal((await caller.prepared()).length, 1)
})

/** Returns a list for each request from now on: the names of the statements that the session sent with it. */
function sentBy({ login }: Caller): string[][] {
  const { wire } = login.session
  const requests: string[][] = []
  const exchange = wire.exchange.bind(wire)
  wire.exchange = (request, ...rest) => {
    const names = request.toString('latin1').matchAll(/B....\0([a-zA-Z])[\w-]{12}_\d*\0/gs)
    requests.push(Array.from(names, ([, kind = '']) => kind))
    return exchange(request, ...rest)
  }
  return requests
}

const SETTINGS = ['default_transaction_read_only', 'search_path', 'statement_timeout', 'default_transaction_isolation']
const POISONS = ['off', 'public', '0', 'serializable']

async function settingsIn({ login }: Caller): Promise<(string | null)[] | undefined> {
  const texts = new Texts(1_024)
  const sql = `SELECT ${SETTINGS.map((name) => `current_setting('${name}')`).join(', ')}`
  await login.session.wire.exchange(Buffer.concat([question(sql), SYNC]), 1, texts)
  return texts.answers[0]?.[0]
}

test('consecutive lookups by primary key set the settings of the session once, and then run alone', async () => {
  await using caller = await open()
  const look = (id: number): Promise<string> => caller.ask(`SELECT note FROM orders WHERE id = ${id}`)
  for (const id of [1, 2, 3]) await look(id)
  const sent = sentBy(caller)
  for (const id of [4, 5, 6, 7]) assert.match(await look(id), new RegExp(`note ${id}"`))
  // The fourth lookup opens and ends a transaction with two settings. The fifth also sets four settings for the
  // session.
  assert.deepEqual(
    sent.map((names) => names.length),
    [5, 9, 1, 1],
  )
  assert.deepEqual(await settingsIn(caller), ['on', 'pg_catalog', `${LIMITS.timeoutMs / 1_000}s`, 'read committed'])
  assert.match(await look(8), /note 8"/)
  // The server plans this query for its values, which needs another setting.
  const page = (id: number): Promise<string> =>
    caller.ask(`SELECT note FROM orders WHERE kind = 9 AND id > ${id} ORDER BY id LIMIT 1`)
  for (const id of [8, 9]) await page(id)
  sent.splice(0)
  for (const id of [9, 10, 11, 12]) assert.match(await page(id), new RegExp(`note ${id + 1}"`))
  assert.match(await look(9), /note 9"/)
  assert.deepEqual(
    sent.map((names) => names.length),
    [6, 6, 10, 1, 6],
  )
})

test('after any other query, a lookup runs in a transaction that sets everything again', async () => {
  const POISON = SETTINGS.map((name, n) => `set_config('${name}', '${POISONS[n]}', false)`)
  for (const other of ['text', 'function', 'failure', 'other limits']) {
    await using caller = await open()
    const look = (id: number): Promise<string> => caller.ask(`SELECT note FROM orders WHERE id = ${id}`)
    const lower = (id: number): Promise<string> => caller.ask(`SELECT lower(note) FROM orders WHERE id = ${id}`)
    const divide = (by: number): Promise<string> => caller.ask(`SELECT id / ${by} AS n FROM orders WHERE id = 6`)
    for (const each of [1, 2, 3]) {
      await lower(each)
      await divide(each)
    }
    for (const id of [1, 2, 3, 4, 5]) await look(id)
    if (other === 'text') {
      const { session } = caller.login
      const pinned = { searchPath: [], timeoutMs: 1_000 }
      const { error } = await session.transaction(question(`SELECT ${POISON.join(', ')}`), pinned, NO_ROWS)
      assert.equal(error, null)
    } else if (other === 'function') await lower(4)
    else if (other === 'failure') {
      assert.match(await divide(0), /^QUERY_FAILED/)
    } else {
      const verdict = await confine(
        parser,
        { text: 'SELECT note FROM orders WHERE id = 6', limit: null },
        caller.catalog,
        LIMITS,
        signal,
      )
      assert.ok(verdict.kind === 'confined')
      const query = unseal<PostgresQuery>(verdict.query, 'POSTGRES')
      await runQuery(caller.running, query, { ...LIMITS, timeoutMs: 4_321 }, new JsonBytes(64))
    }
    const sent = sentBy(caller)
    for (const id of [6, 7, 8]) assert.match(await look(id), new RegExp(`note ${id}"`), other)
    assert.deepEqual(
      sent.map((names) => names.length),
      [5, 9, 1],
      other,
    )
    assert.deepEqual(
      await settingsIn(caller),
      ['on', 'pg_catalog', `${LIMITS.timeoutMs / 1_000}s`, 'read committed'],
      other,
    )
  }
})

test('a lookup without BEGIN is READ ONLY, and reads only the columns for which it was confined', async () => {
  const fresh = await server.createDatabase(
    'kept',
    'CREATE TABLE held (id int PRIMARY KEY, note text, secret_note text); INSERT INTO held VALUES (1, $$a$$, $$b$$)',
  )
  await using caller = await open({ database: fresh })
  const look = (): Promise<string> => caller.ask('SELECT note FROM held WHERE id = 1')
  for (let i = 0; i < 5; i++) assert.match(await look(), /"a"/)
  const { wire } = caller.login.session
  const write = await wire.exchange(
    Buffer.concat([question("INSERT INTO public.held VALUES (2, 'c', 'd')"), SYNC]),
    1,
    NO_ROWS,
  )
  assert.equal(write.error?.code, '25006')
  await server.query(fresh, 'ALTER TABLE held RENAME note TO old; ALTER TABLE held RENAME secret_note TO note')
  const sent = sentBy(caller)
  assert.match(await look(), /^SCHEMA_STALE/)
  assert.deepEqual(
    sent.map((names) => names.length),
    [1],
  )
})

test('a lookup without BEGIN ends at its timeout', async () => {
  const fresh = await server.createDatabase(
    'locked',
    "CREATE TABLE held (id int PRIMARY KEY, note text); INSERT INTO held VALUES (1, 'a')",
  )
  await using caller = await open({ database: fresh })
  const look = async (): Promise<string> => {
    const body = { text: 'SELECT note FROM held WHERE id = 1', limit: null }
    const verdict = await confine(parser, body, caller.catalog, LIMITS, signal)
    assert.ok(verdict.kind === 'confined')
    const query = unseal<PostgresQuery>(verdict.query, 'POSTGRES')
    return String((await runQuery(caller.running, query, { ...LIMITS, timeoutMs: 400 }, new JsonBytes(64))).rows)
  }
  for (let i = 0; i < 5; i++) assert.match(await look(), /"a"/)
  await using other = await open({ database: fresh })
  const { wire } = other.login.session
  const lock = 'BEGIN READ WRITE; LOCK TABLE public.held IN ACCESS EXCLUSIVE MODE'
  for (const text of lock.split('; ')) await wire.exchange(Buffer.concat([statement(text), SYNC]), 1, NO_ROWS)
  const sent = sentBy(caller)
  await assert.rejects(look(), { code: 'QUERY_TIMEOUT' })
  await wire.exchange(Buffer.concat([statement('ROLLBACK'), SYNC]), 1, NO_ROWS)
  assert.match(await look(), /"a"/)
  assert.deepEqual(
    sent.map((names) => names.length),
    [1, 5],
  )
})

test('a session keeps no settings for a table with a policy, or behind a pooler that names its own process', async () => {
  const fresh = await server.createDatabase(
    'policy',
    `CREATE TABLE held (id int PRIMARY KEY, note text); INSERT INTO held VALUES (1, 'a'); ANALYZE held;
     CREATE TABLE open (id int PRIMARY KEY, note text); INSERT INTO open VALUES (1, 'a'); ANALYZE open;
     ALTER TABLE held ENABLE ROW LEVEL SECURITY; CREATE POLICY all_rows ON held USING (true)`,
  )
  await using caller = await open({ database: fresh })
  const sent = sentBy(caller)
  for (let i = 0; i < 7; i++) assert.match(await caller.ask('SELECT note FROM held WHERE id = 1'), /"a"/)
  assert.ok(!sent.some((names) => names.length === 1), JSON.stringify(sent))
  await using pooler = await startTransactionPooler(server.port, { namesItself: true })
  pooler.use(0)
  await using pooled = await open({ database: fresh, port: pooler.port })
  assert.deepEqual([pooled.login.session.server.isDirect, caller.login.session.server.isDirect], [false, true])
  const sentPooled = sentBy(pooled)
  for (let i = 0; i < 7; i++) assert.match(await pooled.ask('SELECT note FROM open WHERE id = 1'), /"a"/)
  assert.ok(!sentPooled.some((names) => names.length === 1), JSON.stringify(sentPooled))
})

test('after row-level security is switched on, policies run in a READ ONLY transaction, and no settings are kept', async () => {
  const fresh = await server.createDatabase(
    'switched',
    `CREATE TABLE held (id int PRIMARY KEY, note text); INSERT INTO held VALUES (1, 'a'); ANALYZE held;
     CREATE TABLE log (n text); CREATE ROLE switched LOGIN; GRANT SELECT ON held TO switched; GRANT INSERT ON log TO switched;
     CREATE FUNCTION pol() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
       PERFORM set_config('default_transaction_read_only', 'off', false), set_config('statement_timeout', '0', false);
       IF current_setting('transaction_read_only') = 'off' THEN INSERT INTO public.log VALUES ('written'); END IF;
       RETURN true; END $$`,
  )
  await using caller = await open({ database: fresh, username: 'switched' })
  Object.assign(caller.running.known, { plain: new Map() })
  const sent = sentBy(caller)
  const isBare = () => sent.at(-1)?.length === 1
  const look = async () => assert.match(await caller.ask('SELECT note FROM held WHERE id = 1'), /"a"/)
  await until('a lookup runs without BEGIN', async () => {
    await look()
    return isBare()
  })
  await server.query(fresh, 'ALTER TABLE held ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON held USING (pol())')
  // The check of the table is valid for one second.
  await until('the change is seen', async () => {
    await look()
    return !isBare()
  })
  await server.query(fresh, 'TRUNCATE log')
  for (let i = 0; i < 5; i++) {
    await look()
    assert.equal(isBare(), false)
  }
  assert.deepEqual(await server.query(fresh, 'SELECT n FROM log'), [])
  // Without policies, lookups may run without BEGIN again, READ ONLY and with the timeout.
  await server.query(fresh, 'ALTER TABLE held DISABLE ROW LEVEL SECURITY')
  caller.running.known.sizes.clear()
  await until('a lookup runs without BEGIN again', async () => {
    await look()
    return isBare()
  })
  const { wire } = caller.login.session
  const settings = new Texts(1_000)
  const read = "SELECT current_setting('transaction_read_only'), current_setting('statement_timeout')"
  await wire.exchange(Buffer.concat([question(read), SYNC]), 1, settings)
  assert.deepEqual(settings.answers, [[['on', `${LIMITS.timeoutMs / 1_000}s`]]])
})

test('the session keeps no settings after a rule turns a table into a view', async (t) => {
  const [[version = '0'] = []] = await server.query('postgres', 'SHOW server_version_num')
  if (Number(version) >= 160_000) return t.skip('PostgreSQL 16 and newer refuse such a rule')
  const fresh = await server.createDatabase('ruled', 'CREATE TABLE held (id int, note text); ANALYZE held')
  await using caller = await open({ database: fresh })
  Object.assign(caller.running.known, { plain: new Map() })
  const sent = sentBy(caller)
  const look = () => caller.ask('SELECT note FROM held WHERE id = 1')
  await until('a lookup runs without BEGIN', async () => {
    assert.match(await look(), /\[\]$/)
    return sent.at(-1)?.length === 1
  })
  await server.query(
    fresh,
    `CREATE RULE "_RETURN" AS ON SELECT TO held DO INSTEAD SELECT 1 AS id, 'seen'::text AS note`,
  )
  await until('the change is seen', async () => {
    await look()
    return sent.at(-1)?.length !== 1
  })
  for (let i = 0; i < 3; i++) {
    await look()
    assert.notEqual(sent.at(-1)?.length, 1)
  }
})
