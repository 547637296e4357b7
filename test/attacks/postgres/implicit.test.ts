// A query may run casts, operators and functions without naming them. Tests what happens if somebody creates or changes
// such an object after introspection. The login is a superuser, so the object could read everything.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Catalog, Connection, Driver, Limits } from '../../../src/drivers/driver.ts'
import { createPostgresDriver } from '../../../src/drivers/postgres/driver.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { answerOf, settingsOf } from '../../support/postgres-session.ts'
import { until } from '../../support/until.ts'

const LIMITS: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 10_000, maxCost: 1e9 }
const signal = new AbortController().signal

const SQL = `
CREATE SCHEMA ext; CREATE EXTENSION hstore SCHEMA ext; CREATE EXTENSION citext SCHEMA ext; CREATE EXTENSION pg_trgm;
CREATE TABLE hidden (note text); INSERT INTO hidden VALUES ('CANARY');
CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN plain AS text;
CREATE TABLE people (id int PRIMARY KEY, name text, m mood, d plain, h ext.hstore, c ext.citext);
INSERT INTO people VALUES (1, 'ann', 'sad', 'x', 'a=>1', 'C');
CREATE FUNCTION leak() RETURNS text LANGUAGE sql STABLE AS 'SELECT note FROM public.hidden';
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

interface World extends AsyncDisposable {
  readonly database: string
  readonly exposed: Catalog
  readonly connection: Connection
}

let worlds = 0
async function openWorld(): Promise<World> {
  const database = await server.createDatabase(`implicit_${++worlds}`, SQL)
  const connection = await connect(driver, database)
  const catalog = await connection.introspect(signal)
  const exposed = { ...catalog, tables: catalog.tables.filter(({ table }) => table !== 'hidden') }
  return { database, exposed, connection, [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose]() }
}

function connect(by: Driver, database: string): Promise<Connection> {
  return by.connect(settingsOf(server, database), { allowPrivateHosts: true }, signal)
}

const ask = (by: Driver, connection: Connection, exposed: Catalog, sql: string): Promise<string> =>
  answerOf(by, connection, exposed, sql, LIMITS)

/** Asks a new driver, which has cached nothing. */
async function askAnew(world: World, sql: string): Promise<string> {
  await using other = await createPostgresDriver()
  await using connection = await connect(other, world.database)
  return await ask(other, connection, world.exposed, sql)
}

const STALE = 'SCHEMA_STALE'
const FUNCTION = (what: string): string => `CREATE FUNCTION ${what} LANGUAGE sql IMMUTABLE AS 'SELECT public.leak()'`

/** The title, the statements that create or change an object, and a query. Most of the queries would run the object. */
const CHANGES: readonly (readonly [string, string, string])[] = [
  ['a cast of a user-defined type', `${FUNCTION('f(mood) RETURNS text')}; CREATE CAST (mood AS text) WITH FUNCTION f(mood)`, 'SELECT m::text FROM people'],
  ['a cast of built-in types', `${FUNCTION('f(int) RETURNS text')}; CREATE CAST (int AS text) WITH FUNCTION f(int)`, 'SELECT id::text FROM people'],
  ['a cast with a built-in function', 'CREATE CAST (text AS regtype) WITH FUNCTION to_regtype(text)', 'SELECT name FROM people'],
  [
    'the default operator class of a user-defined type',
    `CREATE FUNCTION f(mood, mood) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / length(public.leak()) = 0';
     CREATE OPERATOR public.<< (LEFTARG = mood, RIGHTARG = mood, FUNCTION = f);
     CREATE FUNCTION g(mood, mood) RETURNS int LANGUAGE sql AS 'SELECT length(public.leak())';
     CREATE OPERATOR CLASS moods DEFAULT FOR TYPE mood USING btree AS OPERATOR 1 <<, FUNCTION 1 g(mood, mood)`,
    'SELECT m FROM people ORDER BY m',
  ],
  ["an extension's function is replaced", `CREATE OR REPLACE FUNCTION ext.akeys(ext.hstore) RETURNS text[] LANGUAGE sql IMMUTABLE AS 'SELECT ARRAY[public.leak()]'`, 'SELECT akeys(h) FROM people'],
  ["the function of an extension's operator is replaced", `CREATE OR REPLACE FUNCTION ext.fetchval(ext.hstore, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT public.leak()'`, "SELECT h -> 'a' FROM people"],
  ["an extension's function has an overload", FUNCTION('ext.akeys(text) RETURNS text'), "SELECT ext.akeys('x') FROM people"],
  ['a function of an extension in public has an overload', FUNCTION('public.similarity(text, int) RETURNS text'), 'SELECT similarity(name, id) FROM people'],
  [
    'an operator in a schema on the path',
    `${FUNCTION('f(int, text) RETURNS text').replace('RETURNS text', 'RETURNS boolean').replace('public.leak()', "public.leak() = ''CANARY''")};
     CREATE OPERATOR ext.= (LEFTARG = int, RIGHTARG = text, FUNCTION = f)`,
    'SELECT id IN (name) FROM people',
  ],
  ["an overload of PostgreSQL's own function", FUNCTION('pg_catalog.lower(int) RETURNS text'), 'SELECT lower(id) FROM people'],
  [
    "an overload of PostgreSQL's own operator",
    `${FUNCTION('f(int, text) RETURNS text')}; CREATE OPERATOR pg_catalog.|| (LEFTARG = int, RIGHTARG = text, FUNCTION = f)`,
    'SELECT id || name FROM people',
  ],
  ['a domain that may be named gets a CHECK', `ALTER DOMAIN plain ADD CHECK (public.leak() <> value)`, "SELECT 'y'::plain FROM people"],
]

/** The SQL that the guard prints cannot refer to these objects, so they must not affect a query. */
const HARMLESS: readonly string[] = [
  FUNCTION('public.lower(text) RETURNS text'),
  FUNCTION('public.lower(int) RETURNS text'),
  FUNCTION('pg_temp.lower(text) RETURNS text'),
  `${FUNCTION('public.f(text, text) RETURNS text')}; CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = public.f)`,
  'CREATE DOMAIN other AS text CHECK (public.leak() <> value)',
  "CREATE TYPE public.text AS ENUM ('x'); CREATE TYPE public.int4 AS (a int)",
  'CREATE TYPE spans AS RANGE (subtype = int)',
  'CREATE TABLE public.pg_class (relname text)',
  'CREATE EXTENSION cube',
  'CREATE INDEX ON people (name)',
  'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ext, public TO PUBLIC',
  'VACUUM FULL pg_proc; VACUUM FULL pg_cast',
  'COMMENT ON FUNCTION ext.akeys(ext.hstore) IS $$x$$',
]
const EVERYTHING =
  "SELECT id, lower(name) || 'x' AS a, m::text, d, akeys(h), h -> 'a' AS b, c = 'c' AS e, similarity(name, 'ann'), id IN (1, 2) AS f FROM people ORDER BY m"
const ANSWER = '[[1,"annx","sad","x",["a"],"1",true,1,true]]'

describe('objects created or changed after introspection', () => {
  for (const [title, change, sql] of CHANGES) {
    test(`a query fails with SCHEMA_STALE after this change: ${title}`, async () => {
      await using world = await openWorld()
      assert.equal(await ask(driver, world.connection, world.exposed, EVERYTHING), ANSWER)
      await server.query(world.database, change)
      for (const text of [sql, 'SELECT name FROM people WHERE id = 1']) assert.equal(await askAnew(world, text), STALE, text)
      // The process reuses its digest of the implicit objects for up to a second, so retry.
      await until(
        'the catalog is stale',
        async () => (await ask(driver, world.connection, world.exposed, 'SELECT 1 FROM people')) === STALE,
      )
    })
  }

  test('a profile fails with SCHEMA_STALE after such a change', async () => {
    await using world = await openWorld()
    const [, change] = CHANGES[0] ?? assert.fail()
    await server.query(world.database, change)
    await using other = await createPostgresDriver()
    await using connection = await connect(other, world.database)
    const table = world.exposed.tables.find((one) => one.table === 'people') ?? assert.fail()
    const bounds = { rows: 100, timeoutMs: 5_000, bytes: null }
    await assert.rejects(connection.profile(table, world.exposed, bounds, signal), { code: STALE })
  })

  for (const change of HARMLESS) {
    test(`every answer stays the same after ${change}`, async () => {
      await using world = await openWorld()
      for (const each of change.split('; ')) await server.query(world.database, each)
      assert.equal(await askAnew(world, EVERYTHING), ANSWER)
    })
  }

  test('a caller cannot write a query that makes the check for changed objects fail', async () => {
    await using world = await openWorld()
    const sql = "SELECT ('vitrine-0123456789abcdef ' || name)::int FROM people"
    assert.equal(await ask(driver, world.connection, world.exposed, sql), 'QUERY_FAILED')
  })
})

test('introspection fails and names the user objects in pg_catalog, and works once they are dropped', async () => {
  const database = await server.createDatabase(`implicit_${++worlds}`, `${SQL}; ${FUNCTION('pg_catalog.lower(int) RETURNS text')}`)
  await using connection = await connect(driver, database)
  await assert.rejects(connection.introspect(signal), /the function pg_catalog\.lower\(integer\)/)
  await server.query(database, 'DROP ROUTINE pg_catalog.lower(integer)')
  assert.ok((await connection.introspect(signal)).tables.length > 0)
})
