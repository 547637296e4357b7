// PostgreSQL 16 to 18 added calls that need much memory or that no cancel ends. Each must end soon after its timeout, and
// use limited memory. Ordinary queries with the same features are answered.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Answer } from '../../support/app.ts'
import { startPostgres } from '../../support/postgres.ts'

const SCHEMA = `
CREATE EXTENSION ltree;
CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN label AS text COLLATE folded;
CREATE TABLE names (id int PRIMARY KEY, short text COLLATE folded, long text COLLATE folded, plain text, label label);
INSERT INTO names VALUES (1, 'Ada Lovelace', repeat('Ada ', 750), repeat('Ada ', 750), 'Ada');
CREATE TABLE documents (j jsonb, many jsonb, orders jsonb, texts text, bytes bytea);
INSERT INTO documents VALUES (
  (SELECT jsonb_agg(g) FROM generate_series(1, 90000) g),
  (SELECT jsonb_agg(jsonb_build_array(g, g)) FROM generate_series(1, 90000) g),
  (SELECT jsonb_agg(jsonb_build_object('id', g, 'name', 'name ' || g, 'tags', '["a", "b"]'::jsonb)) FROM generate_series(1, 10000) g),
  repeat('x', 1000000), '[{"a": 1}]');
CREATE TABLE virtual (id int PRIMARY KEY, a text, v text GENERATED ALWAYS AS (a || a || a || a || a || a || a || a) VIRTUAL, u text GENERATED ALWAYS AS (upper(a)) VIRTUAL);
INSERT INTO virtual (id, a) SELECT 1, repeat('0123456789', 100000);
CREATE VIEW seen AS SELECT id, a, a || a || a || a || a || a || a || a AS v, upper(a) AS u FROM virtual;
CREATE VIEW shorter AS SELECT id, upper(short) AS name, 'x' || id AS code, short AS plain FROM names;`

type Ask = (sql: string, params?: readonly unknown[]) => Promise<Answer>

let ask: Ask
let direct: (sql: string) => Promise<(string | null)[][]>

const stack = new AsyncDisposableStack()

before(async () => {
  const postgres = stack.use(await startPostgres({ version: 18 }))
  await postgres.query('postgres', `CREATE DATABASE icu TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'`)
  await postgres.query('icu', SCHEMA)
  const app = stack.use(await startApp())
  const owner = await app.person('Olga')
  const teamId = await app.team(owner, 'New', { statementTimeoutMs: 5_000 })
  const token = await app.key(owner)
  const { host, port, superuser: username, password } = postgres
  const spec = { name: 'icu', host, port, database: 'icu', username, password }
  const tables = ['names', 'documents', 'virtual', 'seen', 'shorter']
  const exposed = tables.map((table) => ({ schema: 'public', table, columns: null }))
  const id = await app.datasource(owner, teamId, spec, exposed)
  const path = `/teams/${teamId}/datasources/${id}/query`
  ask = (sql, params) => app.ask('POST', path, { token, body: { sql, ...(params && { params }) } })
  direct = (sql) => postgres.query('icu', sql)
})
after(() => stack.disposeAsync())

async function refused(sql: string, params?: readonly unknown[]): Promise<void> {
  const { status, json } = await ask(sql, params)
  assert.ok([403, 422].includes(status), `${status} ${JSON.stringify(json)}`)
}

describe('a search of a text with a nondeterministic collation', () => {
  const TEXTS: readonly string[] = [
    'long',
    'lower(long)',
    'long::varchar',
    "repeat(substr(long, 1, 1), 3000)",
    'plain || label',
  ]
  for (const text of TEXTS) {
    test(`is refused for a long text: ${text}`, () => refused(`SELECT strpos(${text}, 'zz') FROM names`))
  }
  const CALLS: readonly string[] = [
    "replace(long, 'zz', 'y')",
    "split_part(long, 'zz', 2)",
    "position('zz' IN long)",
    "string_to_array(long, 'zz')",
    "strpos(plain, short)",
    "strpos(repeat('x', 3000), short)",
    "strpos(plain, 'zz'::label)",
  ]
  for (const call of CALLS) test(`is refused in ${call}`, () => refused(`SELECT ${call} FROM names`))
  const FROM: readonly string[] = [
    '(SELECT long AS x FROM names) q',
    '(SELECT long AS x FROM names OFFSET 0) q',
    "(SELECT 'a' AS x UNION ALL SELECT long FROM names) q",
    '(SELECT max(long) AS x FROM names) q',
    'names JOIN (SELECT long AS x FROM names) q ON true',
    '(SELECT long AS x FROM names) p JOIN (SELECT long AS x FROM names) q USING (x)',
    "(SELECT string_agg(long, ',') AS x FROM names) q",
    'names, LATERAL unnest(ARRAY[long]) AS u(x)',
  ]
  for (const from of FROM) test(`is refused for a column of ${from}`, () => refused(`SELECT strpos(x, 'zz') FROM ${from}`))

  const ORDINARY: readonly string[] = [
    "strpos(short, 'love')",
    "replace(short, 'ADA', 'x')",
    "split_part(short, ' ', 2)",
    'strpos(short, label)',
    `strpos(long COLLATE "C", 'zz')`,
    "strpos(plain, 'zz')",
    "length(replace(plain, ' ', ''))",
    "length(replace(plain, ' ', '')) + length(short)",
  ]
  for (const call of ORDINARY) {
    test(`is answered as by PostgreSQL: ${call}`, async () => {
      const { status, json } = await ask(`SELECT (${call})::text FROM names`)
      assert.equal(status, 200, JSON.stringify(json))
      assert.deepEqual(json.rows, await direct(`SELECT (${call})::text FROM names`))
    })
  }
})

const made = (unit: string, units: number, before = '', after = ''): string =>
  `(SELECT '${before}' || repeat(repeat(repeat('${unit}', ${units}), 16), 16) || '${after}' AS x OFFSET 0) q`
const often = (count: number, each: (n: number) => string): string => Array.from({ length: count }, (_, n) => each(n)).join(', ')

describe('a column of JSON_TABLE, or RETURNING, that takes much memory for its document, is refused', () => {
  const LISTS = '[1,2),'.repeat(8_000)
  const REFUSED: readonly (readonly [string, (readonly unknown[])?])[] = [
    ["SELECT count(a) FROM JSON_TABLE(to_jsonb(repeat('a.', 7500) || repeat('a|', 7500) || 'a'), '$' COLUMNS (a lquery PATH '$')) z"],
    [`SELECT count(a) FROM JSON_TABLE(to_jsonb((SELECT x FROM ${made('[1,2),', 400, '{', '[1,2)}')})), '$' COLUMNS (a int4multirange PATH '$', b int4multirange PATH '$', c int4multirange PATH '$')) z`],
    [`SELECT count(a0) FROM JSON_TABLE(to_jsonb($1::text), '$' COLUMNS (${often(41, (n) => `a${n} int4multirange PATH '$'`)})) z`, [`{${LISTS}[1,2)}`]],
    [`SELECT count(a0) FROM JSON_TABLE(to_jsonb($1::text), '$' COLUMNS (NESTED PATH '$' COLUMNS (NESTED PATH '$' COLUMNS (${often(41, (n) => `a${n} int4multirange PATH '$'`)})))) z`, [`{${LISTS}[1,2)}`]],
    [`SELECT ${often(40, () => "JSON_VALUE(x, '$' RETURNING int4multirange) IS NULL")} FROM (SELECT to_jsonb($1::text) AS x OFFSET 0) r`, [`{${LISTS}[1,2)}`]],
    [`SELECT ${often(8, () => "JSON_QUERY(j, '$' RETURNING jsonb[]) IS NULL")} FROM documents`],
    ["SELECT count(m) FROM documents, JSON_TABLE(j, '$' COLUMNS (m jsonb[] PATH '$', m2 jsonb[] PATH '$', m3 jsonb[] PATH '$', m4 json[] PATH '$')) z"],
    [`SELECT length(concat(${often(60, (n) => `a${n}`)})) FROM documents, JSON_TABLE(to_jsonb(texts), '$' COLUMNS (${often(60, (n) => `a${n} text PATH '$'`)})) z`],
  ]
  for (const [sql, params] of REFUSED) test(sql.slice(0, 150), () => refused(sql, params))
})

describe('JSON_TABLE that finds many items in one document is refused', () => {
  const REFUSED: readonly string[] = [
    "SELECT count(*) FROM documents, JSON_TABLE(many, '$[*][*]' COLUMNS (a int PATH '$')) z",
    "SELECT count(*) FROM documents, JSON_TABLE(many, 'strict $[*][*]' COLUMNS (a int PATH '$')) z",
    "SELECT count(*) FROM documents, JSON_TABLE(many, '$.**' COLUMNS (a int PATH '$')) z",
    "SELECT count(*) FROM documents, JSON_TABLE(many, '$[*]' COLUMNS (NESTED PATH '$[*]' COLUMNS (a int PATH '$'))) z",
    "SELECT count(*) FROM documents, JSON_TABLE(many || many, '$' COLUMNS (NESTED PATH '$[*]' COLUMNS (a int PATH '$'))) z",
    "SELECT count(*) FROM documents, JSON_TABLE(many::text::jsonb || j, '$[*]' COLUMNS (a int PATH '$')) z",
  ]
  for (const sql of REFUSED) test(sql, () => refused(sql))
})

describe('calls that keep six letters for a control character are refused', () => {
  const X = "(SELECT repeat(repeat(repeat(E'\\x01', 10000), 16), 12) AS x OFFSET 0) q"
  for (const call of ['JSON_ARRAY(x)', "JSON_OBJECT('a': x)"]) {
    test(call, () => refused(`SELECT ${often(40, () => `${call} IS NULL`)} FROM ${X}`))
  }
})

describe('JSON_TABLE is answered as by PostgreSQL', () => {
  const ORDINARY: readonly string[] = [
    "SELECT * FROM JSON_TABLE('[{\"a\":1}]', '$[*]' COLUMNS (e int EXISTS PATH '$.a', f bool EXISTS PATH '$.z' FALSE ON ERROR)) z",
    "SELECT count(*), max(name), sum(id) FROM documents, JSON_TABLE(orders, '$[*]' COLUMNS (id int, name text, tags jsonb)) z",
    "SELECT count(*), min(tag) FROM documents, JSON_TABLE(orders, '$[*]' COLUMNS (id int PATH '$.id', NESTED PATH '$.tags[*]' COLUMNS (tag text PATH '$'))) z",
    "SELECT count(*) FROM documents, JSON_TABLE(j, '$[*]' COLUMNS (n numeric PATH '$')) z WHERE n > 5",
    "SELECT count(*) FROM documents, JSON_TABLE(orders::text, 'strict $[*]' COLUMNS (id int PATH '$.id')) z",
    "SELECT a FROM documents, JSON_TABLE(bytes FORMAT JSON, '$[*]' COLUMNS (a int)) z",
    `SELECT * FROM JSON_TABLE('[{"name": "${'x'.repeat(500)}", "price": 1.5, "at": "2024-01-01"}]', '$[*]' COLUMNS (n FOR ORDINALITY, name text, price numeric, at date)) z`,
    `SELECT JSON_VALUE('{"name": "${'x'.repeat(500)}"}', '$.name')`,
    "SELECT max(a), max(b) FROM documents, JSON_TABLE(orders, '$[*]' COLUMNS (a text PATH '$.name' DEFAULT 'none' ON EMPTY, b text PATH '$.c' NULL ON EMPTY)) z",
    "SELECT count(*), max(b) FROM documents, JSON_TABLE(orders, '$[*] ? (@.id > $least)' PASSING 5 AS least COLUMNS (id int, b text PATH '$.name')) z",
    "SELECT z.a FROM documents, JSON_TABLE(jsonb_build_array(jsonb_array_length(j)), '$[*]' COLUMNS (a int PATH '$')) z",
  ]
  for (const sql of ORDINARY) {
    test(sql.slice(0, 150), async () => {
      const { status, json } = await ask(sql)
      assert.equal(status, 200, JSON.stringify(json))
      const rows = (json['rows'] as unknown[][]).map((row) => row.map(String))
      const booleans: Readonly<Record<string, string>> = { t: 'true', f: 'false' }
      assert.deepEqual(rows, (await direct(sql)).map((row) => row.map((value) => booleans[String(value)] ?? String(value))))
    })
  }

  test('a parameter of 2,000 bytes in a database that compares by ICU', async () => {
    const sql = "SELECT count(*) FROM JSON_TABLE($1::jsonb, '$[*]' COLUMNS (a int PATH '$')) z"
    const { status, json } = await ask(sql, [`[${'1,'.repeat(1_000)}1]`])
    assert.equal(status, 200, JSON.stringify(json))
    assert.deepEqual(json['rows'], [[1001]])
  })
})

describe('a column that PostgreSQL computes at each use counts as a copy at each use', () => {
  for (const table of ['virtual', 'seen']) {
    const REFUSED: readonly string[] = [
      `SELECT ${often(20, (n) => `v < 'x${n}'`)} FROM ${table}`,
      `SELECT ${often(60, () => "coalesce(v, 'x') IS NULL")} FROM ${table}`,
      `SELECT ${often(300, (n) => `u < 'x${n}'`)} FROM ${table}`,
      `SELECT count(*) FROM ${table} WHERE ${Array.from({ length: 12 }, (_, n) => `v = 'a${n}'`).join(' OR ')}`,
      `SELECT ${often(20, (n) => `x < 'x${n}'`)} FROM (SELECT v AS x FROM ${table}) q`,
    ]
    for (const sql of REFUSED) test(sql.slice(0, 150), () => refused(sql))
    const ANSWERED: readonly string[] = [
      `SELECT id, length(a), length(v), length(u) FROM ${table} WHERE v <> '' AND u IS NOT NULL`,
      `SELECT ${often(5, (n) => `u < 'x${n}'`)} FROM ${table}`,
    ]
    for (const sql of ANSWERED) {
      test(`answered: ${sql.slice(0, 150)}`, async () => {
        const { status, json } = await ask(sql)
        assert.equal(status, 200, JSON.stringify(json))
      })
    }
  }

  test('many conditions on short values of a view are answered', async () => {
    const sql = `SELECT *, ${often(100, (n) => `name < 'x${n}' AS n${n}, coalesce(code, plain) IS NULL AS c${n}`)} FROM shorter ORDER BY name, code`
    const { status, json } = await ask(sql)
    assert.equal(status, 200, JSON.stringify(json))
  })
})
