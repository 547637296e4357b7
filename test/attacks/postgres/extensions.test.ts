// Tests the operators and functions of extensions on a real server. If the extensions have a separate schema, operators
// and functions work. If their schema also has user-defined objects, operators must be qualified, and no user-defined
// object may be called.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Catalog, Connection, Driver, Limits } from '../../../src/drivers/driver.ts'
import { createPostgresDriver } from '../../../src/drivers/postgres/driver.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { settingsOf } from '../../support/postgres-session.ts'

const LIMITS: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 5_000, maxCost: 1e9 }
const signal = new AbortController().signal

/** `where` is the schema of the extensions. The table is always in public. */
const setUp = (where: string): string => `
CREATE SCHEMA IF NOT EXISTS ${where};
CREATE EXTENSION citext SCHEMA ${where};
CREATE EXTENSION hstore SCHEMA ${where};
CREATE EXTENSION pg_trgm SCHEMA ${where};
CREATE EXTENSION fuzzystrmatch SCHEMA ${where};
CREATE EXTENSION tablefunc SCHEMA ${where};
CREATE EXTENSION unaccent SCHEMA ${where};
CREATE TABLE public.people (id int PRIMARY KEY, mail ${where}.citext, extra ${where}.hstore, name text);
INSERT INTO public.people VALUES (1, 'Ada@x', 'a=>1,b=>2', 'ada'), (2, 'bob@x', 'a=>3', 'bobby');
CREATE FUNCTION ${where}.levenshtein(a int, b int) RETURNS text LANGUAGE sql AS $$ SELECT 'LEAK' $$;
CREATE FUNCTION public.same(a int, b int) RETURNS bool LANGUAGE sql AS $$ SELECT true $$;
CREATE OPERATOR public.@!! (LEFTARG = int, RIGHTARG = int, FUNCTION = public.same);
`

let server: TestPostgres
let driver: Driver
const opened: Connection[] = []
const shops = new Map<string, { readonly connection: Connection; readonly catalog: Catalog }>()

before(async () => {
  server = await startPostgres({ settings: {} })
  driver = await createPostgresDriver()
  for (const where of ['ext', 'public']) {
    // Creating an overload in a schema makes it untrusted, so only public gets the overload of levenshtein.
    const sql = where === 'ext' ? setUp(where).replace(/CREATE FUNCTION ext\.levenshtein.*\n/, '') : setUp(where)
    await server.createDatabase(`with_${where}`, sql)
    const settings = settingsOf(server, `with_${where}`)
    const connection = await driver.connect(settings, { allowPrivateHosts: true }, signal)
    opened.push(connection)
    const catalog = await connection.introspect(signal)
    const tables = catalog.tables.map((table) => ({
      ...table,
      columns: table.columns.filter((column) => column.unexposable === null),
    }))
    shops.set(where, { connection, catalog: { ...catalog, tables } })
  }
})
after(async () => {
  for (const connection of opened) await connection[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

async function ask(where: string, sql: string): Promise<string> {
  const shop = shops.get(where)
  assert.ok(shop)
  const verdict = await driver.confine(driver.read({ sql }), shop.catalog, LIMITS, signal)
  if (verdict.kind === 'denied') return `${verdict.blocked.kind}: ${verdict.blocked.name}`
  assert.equal(verdict.kind, 'confined')
  if (verdict.kind !== 'confined') return ''
  return String((await shop.connection.run(verdict.query, LIMITS, signal)).rows)
}

describe('extensions in a separate schema', () => {
  const rows: readonly (readonly [string, string])[] = [
    ["SELECT id FROM people WHERE mail = 'ADA@X'", '[[1]]'],
    ["SELECT id FROM people WHERE mail IN ('ADA@X')", '[[1]]'],
    ["SELECT id FROM people WHERE mail LIKE 'ADA%'", '[[1]]'],
    ['SELECT a.id FROM people a JOIN people b USING (mail) ORDER BY 1', '[[1],[2]]'],
    ["SELECT extra -> 'a' FROM people ORDER BY id", '[["1"],["3"]]'],
    ["SELECT extra ? 'b' FROM people ORDER BY id", '[[true],[false]]'],
    ['SELECT key, value FROM people, each(extra) WHERE id = 1 ORDER BY 1', '[["a","1"],["b","2"]]'],
    ['SELECT (each(extra)).key FROM people WHERE id = 2', '[["a"]]'],
    ["SELECT id FROM people WHERE name % 'bobb'", '[[2]]'],
    ["SELECT similarity('a', 'a'), levenshtein('a', 'b')", '[[1,1]]'],
    ["SELECT replace(mail, 'X', 'y') FROM people WHERE id = 1", '[["Ada@y"]]'],
    ['SELECT max(mail), min(mail) FROM people', '[["bob@x","Ada@x"]]'],
    ["SELECT 'A'::citext = 'a', 'a=>1'::hstore -> 'a'", '[[true,"1"]]'],
    ["SELECT unaccent('é'), unaccent('unaccent', 'é'), unaccent('ext.unaccent'::regdictionary, 'é')", '[["e","e","e"]]'],
    ["SELECT unaccent('public.unaccent', 'é')", 'function: unaccent'],
    ["SELECT * FROM crosstab('SELECT 1, 2, 3') AS t(a int, b int)", 'function: crosstab'],
    ["SELECT connectby('people', 'id', 'id', '1', 0)", 'function: connectby'],
  ]
  for (const [sql, expected] of rows) {
    test(sql, async () => {
      assert.equal(await ask('ext', sql), expected)
    })
  }
})

describe('extensions in a schema with user-defined objects', () => {
  const rows: readonly (readonly [string, string])[] = [
    ["SELECT id FROM people WHERE mail = 'ADA@X'", 'operator: ='],
    ["SELECT id FROM people WHERE mail IN ('ADA@X')", 'operator: ='],
    ["SELECT id FROM people WHERE mail LIKE 'ADA%'", 'operator: ~~'],
    ['SELECT a.id FROM people a JOIN people b USING (mail)', 'operator: ='],
    ['SELECT a.id FROM people a NATURAL JOIN people b', 'operator: ='],
    ["SELECT CASE mail WHEN 'ADA@X' THEN 1 END FROM people", 'operator: ='],
    ["SELECT NULLIF(mail, 'ADA@X') FROM people", 'operator: ='],
    ["SELECT id FROM people WHERE (SELECT mail) = 'ADA@X'", 'operator: ='],
    ['SELECT id FROM people WHERE mail IN (SELECT mail FROM people)', 'operator: ='],
    ['SELECT id FROM people WHERE mail OPERATOR(public.=) $$ADA@X$$', '[[1]]'],
    ["SELECT extra -> 'a' FROM people", 'operator: ->'],
    ["SELECT extra OPERATOR(public.->) 'a' FROM people ORDER BY id", '[["1"],["3"]]'],
    ["SELECT similarity('a', 'a'), public.similarity('a', 'a')", '[[1,1]]'],
    ['SELECT 1 OPERATOR(public.@!!) 2', 'operator: public.@!!'],
    ['SELECT mail FROM people ORDER BY mail', '[["Ada@x"],["bob@x"]]'],
    ['SELECT count(*) FROM people GROUP BY mail ORDER BY 1', '[[1],[1]]'],
    ["SELECT mail::text = 'Ada@x' FROM people ORDER BY id", '[[true],[false]]'],
    ["SELECT replace(mail, 'X', 'y') FROM people WHERE id = 1", '[["Ada@y"]]'],
    ["SELECT unaccent('unaccent', 'é'), unaccent('public.unaccent', 'é')", '[["e","e"]]'],
    ['SELECT levenshtein(1, 2)', 'function: levenshtein'],
  ]
  for (const [sql, expected] of rows) {
    test(sql, async () => {
      assert.equal(await ask('public', sql), expected)
    })
  }
})
