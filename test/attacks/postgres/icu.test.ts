// In a database that compares texts by ICU, one comparison of 8,000 combining marks takes 6 s, and no timeout ends it.
// So queries that make long runs of marks are refused. Ordinary queries are answered, also on long texts.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startApp, type Answer } from '../../support/app.ts'
import { startPostgres } from '../../support/postgres.ts'

const SCHEMA = `
CREATE TABLE texts (id int PRIMARY KEY, name text, city text, doc jsonb, letter text, tags text[], at timestamptz);
INSERT INTO texts VALUES
  (1, 'Zoë', ' Köln ', '{"a": "x", "tags": ["b", "a"]}', chr(3953), '{b,a}', '2024-01-02Z'),
  (2, 'adam', 'köln', '{"a": "y", "tags": []}', chr(3953), '{}', '2024-02-03Z'),
  (3, 'Ádám', NULL, NULL, chr(3953), NULL, NULL);
CREATE TABLE letters (id int, text text);
INSERT INTO letters VALUES (1, repeat('x', 300000)), (2, repeat('x', 300000));
CREATE TABLE bodies (id int, body text);
INSERT INTO bodies VALUES (1, repeat('東京の天気。', 2000)), (2, repeat('e' || chr(769) || '-', 3000)), (3, repeat('─', 200));`

/** Columns with collations of ICU, in a database that compares bytes. */
const COLUMNS = `
CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN sentence AS text COLLATE "en-x-icu";
CREATE TABLE named (id int, name text COLLATE "en-x-icu", folded text COLLATE folded);
INSERT INTO named VALUES (1, 'a', 'A');
CREATE TABLE lines (id int, line sentence);
INSERT INTO lines VALUES (1, 'a');`

const MARKS = 'repeat(chr(3953), 300)'
const LETTERS = 'FROM generate_series(1, 300)'
const HEX = '\\\\u0f71'

/** Each query compares, sorts or groups a long run of combining marks. */
const ATTACKS: readonly (readonly [string, string, (readonly unknown[])?])[] = [
  ['a comparison', `SELECT 'a' || ${MARKS} < 'A' || ${MARKS}`],
  ['BETWEEN', `SELECT 'a' || ${MARKS} BETWEEN 'A' || ${MARKS} AND 'b'`],
  ['greatest', `SELECT length(greatest('a' || ${MARKS}, 'A' || ${MARKS}))`],
  ['a sort', `SELECT id FROM texts ORDER BY concat('a', ${MARKS}, id % 2)`],
  ['a sort by the number of an output', `SELECT concat('a', ${MARKS}, id % 2), id FROM texts ORDER BY 1`],
  ['groups', `SELECT count(*) FROM texts GROUP BY ROLLUP (concat('a', ${MARKS}, id % 2))`],
  ['groups by a name', `SELECT concat('a', ${MARKS}, id % 2) AS x, count(*) FROM texts GROUP BY x ORDER BY x`],
  ['min', `SELECT length(min(concat('a', ${MARKS}, id % 2))) FROM texts`],
  ['DISTINCT', `SELECT DISTINCT concat('a', ${MARKS}, id % 2) FROM texts ORDER BY 1`],
  ['a window', `SELECT rank() OVER (ORDER BY concat('a', ${MARKS}, id % 2)) FROM texts`],
  ['UNION', `SELECT concat('a', ${MARKS}) UNION SELECT concat('A', ${MARKS}) ORDER BY 1`],
  ['arrays', `SELECT ARRAY['a' || ${MARKS}] < ARRAY['A' || ${MARKS}]`],
  ['rows', `SELECT ROW('a' || ${MARKS}, 1) < ROW('A' || ${MARKS}, 2)`],
  ['documents that are equal', `SELECT to_jsonb('a' || ${MARKS}) = to_jsonb('A' || ${MARKS})`],
  ['a sort in an aggregate', `SELECT length(string_agg('x', ',' ORDER BY concat('a', ${MARKS}, id % 2))) FROM texts`],
  ['a join that may merge', `SELECT count(*) FROM texts a JOIN texts b ON a.name || ${MARKS} = b.name || ${MARKS}`],
  ['IN with a sub-query', `SELECT id FROM texts WHERE name IN (SELECT concat('a', ${MARKS}, id) FROM texts ORDER BY 1)`],
  ['letters of rows', `SELECT 'a' || x < 'A' || x FROM (SELECT string_agg(letter, '') AS x ${LETTERS}, texts) q`],
  ['an array as text', `SELECT 'a' || x < 'A' || x FROM (SELECT array_to_string(array_agg(letter), '') AS x ${LETTERS}, texts) q`],
  ['letters that are removed', `SELECT 'a' || x < 'A' || x FROM (SELECT replace(repeat(chr(3953) || ',', 200), ',', '') AS x) q`],
  ['a pattern that is removed', `SELECT 'a' || x < 'A' || x FROM (SELECT regexp_replace(repeat(chr(3953) || ',', 200), ',', '', 'g') AS x) q`],
  ['letters that are translated away', `SELECT 'a' || x < 'A' || x FROM (SELECT translate(repeat(chr(3953) || ',', 200), ',', '') AS x) q`],
  ['padding', `SELECT lpad('', 300, chr(3953)) || 'a' < lpad('', 300, chr(3953)) || 'A'`],
  ['bytes', `SELECT 'a' || x < 'A' || x FROM (SELECT convert_from(decode(repeat('e0bdb1', 300), 'hex'), 'UTF8') AS x) q`],
  ['escapes', `SELECT 'a' || x < 'A' || x FROM (SELECT unistr(repeat('\\0f71', 300)) AS x) q`],
  ['escapes of jsonb', `SELECT 'a' || x < 'A' || x FROM (SELECT ('"' || repeat('\\u0f71', 40) || '"')::jsonb #>> '{}' AS x) q`],
  ['escapes of json', `SELECT 'a' || x < 'A' || x FROM (SELECT ('["' || repeat('\\u0f71', 300) || '"]')::json ->> 0 AS x) q`],
  ['escapes of json in a list', `SELECT 'a' || x < 'A' || x FROM json_array_elements_text(('["' || repeat('\\u0f71', 300) || '"]')::json) x`],
  ['escapes of json in an aggregate', `SELECT 'a' || x < 'A' || x FROM (SELECT json_agg(('"' || repeat('\\u0f71', 300) || '"')::json) ->> 0 AS x FROM texts) q`],
  ['a recursion', `WITH RECURSIVE t(n, s) AS (SELECT 1, chr(3953) UNION ALL SELECT n + 1, s || chr(3953) FROM t WHERE n < 300) SELECT 'a' || s < 'A' || s FROM t`],
  ['sub-selects that double', `SELECT 'a' || x < 'A' || x FROM ${'(SELECT x || x AS x FROM '.repeat(6)}(SELECT chr(3953) AS x) q${') q'.repeat(6)}`],
  ['a variadic list', `SELECT 'a' || x < 'A' || x FROM (SELECT concat(VARIADIC array_agg(letter)) AS x ${LETTERS}, texts) q`],
  ['a format', `SELECT format('${'%1$s'.repeat(60)}', letter) < 'a' FROM texts`],
  ['a format that is computed', "SELECT format(repeat('%1$s', id + 50), letter) < 'a' FROM texts"],
  ['a function in FROM', `SELECT 'a' || x < 'A' || x FROM repeat(chr(3953), 300) x`],
  ['the star of a function in FROM', `SELECT DISTINCT * FROM repeat(chr(3953), 300) x, texts ORDER BY x`],
  ['a set', `SELECT 'a' || repeat(chr(3953), 300 * generate_series(1, 2)) < 'A'`],
  ['a constant', `SELECT name < 'a${'ཱ'.repeat(2_000)}' FROM texts`],
  ['constants that a call compares often', `SELECT q.x < ANY (array_fill(q.y, ARRAY[5000])) FROM (SELECT 'A${'ཱ'.repeat(900)}' AS x, 'a${'ཱ'.repeat(900)}' AS y OFFSET 0) q`],
  ['constants that are joined', `SELECT name < 'a' || ${Array.from({ length: 31 }, () => `'${'ཱ'.repeat(32)}'`).join(' || ')} FROM texts`],
  ['a constant that is repeated', `SELECT name < 'a' || repeat('${'ཱ'.repeat(32)}', 31) FROM texts`],
  ['a parameter that is joined', `SELECT name < 'a' || ${Array.from({ length: 31 }, () => '$1::text').join(' || ')} FROM texts`, ['ཱ'.repeat(32)]],
  ['a parameter', 'SELECT name < $1 FROM texts', [`a${'ཱ'.repeat(2_000)}`]],
  ['a parameter with escapes', 'SELECT doc = $1 FROM texts', [{ type: 'jsonb', value: `"${HEX.slice(1).repeat(2_000)}"` }]],
]

/** The service must give the same answers as PostgreSQL itself. */
const ORDINARY: readonly (readonly [string, (readonly unknown[])?])[] = [
  ['SELECT name FROM texts ORDER BY lower(name)'],
  ['SELECT trim(city) AS c, count(*) FROM texts GROUP BY trim(city) ORDER BY 1'],
  ["SELECT id FROM texts WHERE name = 'Zo' || $1", ['ë']],
  ["SELECT replace(city, ' ', '') AS c, count(*) FROM texts GROUP BY replace(city, ' ', '') HAVING replace(city, ' ', '') <> 'x' ORDER BY c"],
  ["SELECT replace(replace(name, 'a', ''), 'd', '') AS n, replace(name, 'a', '') AS m, count(*) FROM texts GROUP BY 2, replace(replace(name, 'a', ''), 'd', '') ORDER BY 1, 2"],
  ["SELECT upper(replace(name, 'a', '')) FROM texts GROUP BY replace(name, 'a', '') ORDER BY 1"],
  ["SELECT DISTINCT regexp_replace(name, '[aeiou]', '', 'g') AS n FROM texts ORDER BY n"],
  ["SELECT DISTINCT regexp_replace(name, '[aeiou]', '', 'g') FROM texts ORDER BY regexp_replace(name, '[aeiou]', '', 'g')"],
  ["SELECT tags, count(*) FROM (SELECT id, string_agg(name, ', ' ORDER BY name) AS tags FROM texts GROUP BY id) q GROUP BY tags ORDER BY tags"],
  ["SELECT string_agg(name, '' ORDER BY id) AS x FROM texts ORDER BY x"],
  ["SELECT id FROM bodies ORDER BY replace(body, '、', '')"],
  ["SELECT length(replace(body, 'x', '')), id FROM bodies GROUP BY replace(body, 'x', ''), id ORDER BY id"],
  ["SELECT DISTINCT length(string_agg(body, '')) FROM bodies"],
  ["SELECT a.id FROM bodies a JOIN bodies b ON replace(a.body, '-', '') = replace(b.body, '-', '') ORDER BY 1"],
  ["WITH p AS (SELECT id, regexp_replace(name, '\\W', '', 'g') AS k FROM texts) SELECT p.id, q.id FROM p JOIN p q USING (k) ORDER BY 1"],
  ["SELECT w, count(*) FROM (SELECT regexp_split_to_table(lower(regexp_replace(body, '[^a-z ]', '', 'g')), ' ') AS w FROM bodies) q GROUP BY w ORDER BY w"],
  ["SELECT trim(replace(unnest(tags), 'a', '')) AS t FROM texts ORDER BY t"],
  ["SELECT max(concat_ws(' ', name, city)) FROM texts"],
  ["SELECT doc ->> 'a' AS a, count(*) FROM texts GROUP BY doc ->> 'a' ORDER BY a"],
  ["SELECT id FROM texts WHERE doc @> '{\"a\": \"x\"}'::jsonb ORDER BY doc -> 'tags'"],
  ["SELECT (json_agg(name)::jsonb)::text AS names FROM texts"],
  ["SELECT (replace('[''b'', ''a'']', '''', '\"')::json) ->> 0 AS x ORDER BY x"],
  ["WITH RECURSIVE t(n, path) AS (SELECT 1, 'a' UNION ALL SELECT n + 1, path || '/' || n FROM t WHERE n < 40) SELECT path FROM t ORDER BY path DESC LIMIT 1"],
  ["SELECT to_char(at, 'YYYY-MM') AS m, count(*) FROM texts GROUP BY m ORDER BY m"],
  ["SELECT date_trunc('month', at)::text AS m FROM texts WHERE at > '2024-01-01' ORDER BY m"],
  ["SELECT name COLLATE \"C\" AS n FROM texts ORDER BY 1"],
  ["SELECT lpad(id::text, 5, '0') AS n FROM texts ORDER BY n"],
  ["SELECT row_number() OVER (PARTITION BY translate(city, ' ', '') ORDER BY initcap(name)) FROM texts ORDER BY 1"],
  ["SELECT array_to_string(array_agg(DISTINCT name ORDER BY name), ', ') FROM texts"],
  ["SELECT name FROM texts WHERE name < $1 ORDER BY 1", ['é́́́z']],
  ["SELECT id, string_agg(name, ', ') AS names FROM texts GROUP BY id ORDER BY names, string_agg(name, ', ')"],
  ["SELECT string_agg(body, ',' ORDER BY id) FROM bodies HAVING string_agg(body, ',') > 'a'"],
  ["SELECT id FROM letters ORDER BY lower(text) || '-' || id, concat_ws(' ', id, text, id)"],
  ["SELECT replace(name, 'a', city) AS x, length(replace(body, 'e', name)), t.id, b.id FROM texts t JOIN bodies b USING (id) ORDER BY x, t.id"],
  ["SELECT max(lower(name)), min(upper(city)), greatest(max(lower(name)), 'b') FROM texts"],
  ["SELECT CASE WHEN lower(name) < 'b' THEN 'a' WHEN lower(name) < 'n' THEN 'b-m' ELSE 'n-z' END AS g, count(*) FROM texts GROUP BY 1 ORDER BY 1"],
  ["SELECT id FROM texts WHERE date_trunc('day', at) >= '2024-01-01' AND date_trunc('day', at) < '2024-02-01' ORDER BY lower(name)"],
  ["SELECT array_to_string(array_agg(name ORDER BY id), '/') AS p, string_agg(name, '-') OVER (ORDER BY id) FROM texts GROUP BY id, name ORDER BY p"],
  ["WITH RECURSIVE t(id, path) AS (SELECT id, name FROM texts WHERE id = 1 UNION ALL SELECT x.id, concat_ws(' > ', t.path, x.name) FROM t JOIN texts x ON x.id = t.id + 1) SELECT path FROM t ORDER BY path"],
]

const WIDE = "repeat(repeat(U&'\\FDFA', 5000), 16)"
const LONG = `(SELECT string_agg(${WIDE}, '') AS x FROM generate_series(1, 30) g) q`

/** Each query compares or sorts long texts without combining marks. ICU makes 160 bytes from each byte. */
const LONG_TEXTS: readonly (readonly [string, string])[] = [
  ['a constant that is repeated', `SELECT 'a' || x < 'A' || x FROM (SELECT ${Array(20).fill(WIDE).join(' || ')} AS x OFFSET 0) q`],
  ['many comparisons of one row', `SELECT ${Array(50).fill('x < y').join(', ')} FROM (SELECT 'a' || ${WIDE} AS x, 'A' || ${WIDE} AS y OFFSET 0) q`],
  ['many greatest values', `SELECT ${Array(50).fill('length(greatest(x, y))').join(', ')} FROM (SELECT 'a' || ${WIDE} AS x, 'A' || ${WIDE} AS y OFFSET 0) q`],
  ['the same text against each element', `SELECT x < ANY (string_to_array(repeat(',', 1000), ',')) FROM (SELECT repeat(repeat(U&'\\200B', 5000), 16) AS x OFFSET 0) q`],
  ['a collected text that is sorted', `SELECT length(x) FROM (SELECT id, string_agg(id % 2 || ${WIDE}, ',') AS x FROM texts, generate_series(1, 30) GROUP BY id) q ORDER BY x`],
  ['a collected text that is compared', `SELECT 'a' || q.x < 'A' || q.x FROM ${LONG}`],
  ['a collected text with a long delimiter', `SELECT DISTINCT array_to_string(array_agg(id), ${WIDE}) FROM texts, generate_series(1, 10) GROUP BY id % 2`],
  ['collected documents as text', `SELECT length(x) FROM (SELECT json_agg(${WIDE})::text AS x FROM texts, generate_series(1, 30) GROUP BY id) q ORDER BY x`],
  ['copies of a stored text', `SELECT id FROM letters ORDER BY concat(id % 2, ${Array(30).fill('text').join(', ')})`],
  ['copies of a changed text', `SELECT id FROM letters ORDER BY repeat(repeat(translate(text, 'x', U&'\\FDFA'), 5), 5) || id`],
  ['a recursion', `WITH RECURSIVE t(n, s) AS (SELECT 1, 'a' UNION ALL SELECT n + 1, s || ${WIDE} FROM t WHERE n < 30) SELECT 'A' || s < s FROM t WHERE n = 30`],
]

const IN_COLUMNS: readonly (readonly [string, string])[] = [
  ['a column', `SELECT name < 'a' || ${MARKS} FROM named`],
  ['a column in a join', `SELECT 1 FROM named a JOIN named b ON a.name = b.name || ${MARKS}`],
  ['a column that folds case', `SELECT id FROM named WHERE folded || ${MARKS} = 'a'`],
  ['a column of a domain', `SELECT line > 'a' || ${MARKS} FROM lines`],
]

const ICU = 'COLLATE "und-x-icu"'
/**
 * The two texts differ only in the case of their first letters. The first letter has a collation, which applies to the
 * whole text.
 */
const FIRST = `concat('a' ${ICU}, ${MARKS})`
const SECOND = `concat('A', ${MARKS})`

/** Each query names a collation of ICU for a short part of a compared text, in a database that compares bytes. */
const NAMED: readonly (readonly [string, string, (readonly unknown[])?])[] = [
  ['concat', `SELECT ${FIRST} < ${SECOND}`],
  ['||', `SELECT ('a' ${ICU} || ${MARKS}) < ('A' || ${MARKS})`],
  ['the other side', `SELECT 'a' ${ICU} < ${SECOND}`],
  ['coalesce', `SELECT coalesce(NULL, 'a' ${ICU}, 'b') || ${MARKS} < 'A' || ${MARKS}`],
  ['coalesce with a long value', `SELECT coalesce('a' || ${MARKS}, 'b' ${ICU}) < 'A' || ${MARKS}`],
  ['CASE', `SELECT CASE WHEN id > 0 THEN 'a' || ${MARKS} ELSE 'b' ${ICU} END < 'A' || ${MARKS} FROM texts`],
  ['upper', `SELECT upper('a' ${ICU}) || ${MARKS} < 'A' || ${MARKS}`],
  ['greatest', `SELECT length(greatest('a' || ${MARKS}, 'A' || ${MARKS}, 'b' ${ICU}))`],
  ['nullif', `SELECT nullif('a' ${ICU}, 'b') || ${MARKS} < 'A' || ${MARKS}`],
  ['arrays', `SELECT ARRAY['b', 'a' || ${MARKS}] < ARRAY['b' ${ICU}, 'A' || ${MARKS}]`],
  ['an element of an array', `SELECT (ARRAY['a' ${ICU}])[1] || ${MARKS} < 'A' || ${MARKS}`],
  ['rows', `SELECT ROW('a' || ${MARKS}, 1) < ROW('A' ${ICU} || ${MARKS}, 2)`],
  ['a row of a sub-select', `SELECT q < q FROM (SELECT ${FIRST} AS x) q`],
  ['a column of a sub-select', `SELECT q.x || ${MARKS} < 'A' || ${MARKS} FROM (SELECT 'a' ${ICU} AS x OFFSET 0) q`],
  ['a sub-query', `SELECT (SELECT 'a' ${ICU}) || ${MARKS} < 'A' || ${MARKS}`],
  ['WITH', `WITH w AS MATERIALIZED (SELECT name ${ICU} AS x FROM texts) SELECT x || ${MARKS} < 'A' FROM w`],
  ['WITH RECURSIVE', `WITH RECURSIVE t(n, s) AS (SELECT 1, 'a' ${ICU} UNION ALL SELECT n + 1, s || chr(3953) FROM t WHERE n < 300) SELECT s < 'A' || s FROM t`],
  ['VALUES', `SELECT v.x < 'A' || ${MARKS} FROM (VALUES ('a' ${ICU} || ${MARKS})) v(x)`],
  ['UNION', `SELECT ${FIRST} AS x UNION SELECT ${SECOND} ORDER BY x`],
  ['EXCEPT', `SELECT ${FIRST} AS x EXCEPT SELECT ${SECOND} ORDER BY x`],
  ['USING', `SELECT count(*) FROM (SELECT name ${ICU} || ${MARKS} AS x FROM texts) q JOIN (SELECT name || ${MARKS} AS x FROM texts) r USING (x)`],
  ['min', `SELECT length(min(concat('a' ${ICU}, ${MARKS}, id % 2))) FROM texts`],
  ['max in a window', `SELECT length(max(concat('a' ${ICU}, ${MARKS}, id % 2)) OVER (ORDER BY id)) FROM texts`],
  ['ORDER BY', `SELECT id FROM texts ORDER BY concat('a' ${ICU}, ${MARKS}, id % 2)`],
  ['ORDER BY of an output', `SELECT id, concat('a' ${ICU}, ${MARKS}, id % 2) AS x FROM texts ORDER BY x`],
  ['ORDER BY in an aggregate', `SELECT length(string_agg('x', ',' ORDER BY concat('a' ${ICU}, ${MARKS}, id % 2))) FROM texts`],
  ['WITHIN GROUP', `SELECT length(percentile_disc(0.5) WITHIN GROUP (ORDER BY concat('a' ${ICU}, ${MARKS}, id % 2))) FROM texts`],
  ['DISTINCT', `SELECT DISTINCT concat('a' ${ICU}, ${MARKS}, id % 2) FROM texts ORDER BY 1`],
  ['DISTINCT ON', `SELECT DISTINCT ON (x) id FROM (SELECT id, concat('a' ${ICU}, ${MARKS}, id % 2) AS x FROM texts) q ORDER BY x`],
  ['count of DISTINCT', `SELECT count(DISTINCT concat('a' ${ICU}, ${MARKS}, id % 2)) FROM texts`],
  ['GROUP BY', `SELECT concat('a' ${ICU}, ${MARKS}, id % 2) AS x, count(*) FROM texts GROUP BY x ORDER BY x`],
  ['a window', `SELECT rank() OVER (ORDER BY concat('a' ${ICU}, ${MARKS}, id % 2)) FROM texts`],
  ['a partition', `SELECT row_number() OVER (PARTITION BY concat('a' ${ICU}, ${MARKS}, id % 2)) FROM texts`],
  ['IN', `SELECT ('a' ${ICU} || ${MARKS}) IN ('b', 'A' || ${MARKS})`],
  ['IN with a sub-query', `SELECT id FROM texts WHERE name ${ICU} IN (SELECT concat('a', ${MARKS}, id) FROM texts ORDER BY 1)`],
  ['ANY', `SELECT 'a' ${ICU} < ANY (ARRAY['A' || ${MARKS}, 'b' || ${MARKS}])`],
  ['ALL with a sub-query', `SELECT 'a' ${ICU} < ALL (SELECT concat('A', ${MARKS}, id) FROM texts)`],
  ['BETWEEN', `SELECT 'a' || ${MARKS} BETWEEN 'A' || ${MARKS} AND 'b' ${ICU}`],
  ['IS DISTINCT FROM', `SELECT 'a' || ${MARKS} IS DISTINCT FROM 'A' ${ICU} || ${MARKS}`],
  ['width_bucket', `SELECT width_bucket('a' || ${MARKS}, ARRAY['A' ${ICU} || ${MARKS}])`],
  ['a join that may merge', `SELECT count(*) FROM texts a JOIN texts b ON a.name ${ICU} || ${MARKS} = b.name || ${MARKS}`],
  ['unnest', `SELECT u < 'A' || ${MARKS} FROM unnest(ARRAY['a' ${ICU} || ${MARKS}]) u`],
  ['a collation that is quoted by code', `SELECT concat('a' COLLATE U&"und\\002dx-icu", ${MARKS}) < ${SECOND}`],
  ['a constant', `SELECT name ${ICU} < 'a${'ཱ'.repeat(2_000)}' FROM texts`],
  ['a parameter', `SELECT name ${ICU} < $1 FROM texts`, [`a${'ཱ'.repeat(2_000)}`]],
]

/** Each query names a collation of ICU. The service must give the same answers as PostgreSQL itself. */
const ORDINARY_NAMED: readonly (readonly [string, (readonly unknown[])?])[] = [
  ['SELECT name FROM texts ORDER BY name COLLATE "de-x-icu"'],
  ['SELECT name FROM texts ORDER BY lower(name) COLLATE "de-x-icu" DESC, id'],
  ['SELECT name FROM texts WHERE name COLLATE "en-x-icu" >= $1 ORDER BY 1', ['b']],
  ['SELECT id FROM bodies ORDER BY upper(body) COLLATE "und-x-icu"'],
  ['SELECT max(concat_ws(\' \', name, city) COLLATE "en-x-icu") FROM texts'],
  ['SELECT id FROM bodies ORDER BY replace(body, \'-\', \'\') COLLATE "und-x-icu"'],
  ['SELECT DISTINCT city COLLATE "de-x-icu" AS c FROM texts ORDER BY c'],
  ['SELECT string_agg(name, \', \' ORDER BY name COLLATE "sv-x-icu") FROM texts'],
]

type Ask = (sql: string, params?: readonly unknown[]) => Promise<Answer>

let icu: Ask
let columns: Ask
let bytes: Ask
let direct: (database: string, sql: string) => Promise<(string | null)[][]>
const stack = new AsyncDisposableStack()

before(async () => {
  const postgres = stack.use(await startPostgres({ settings: {} }))
  await postgres.query('postgres', `CREATE DATABASE icu TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'`)
  await postgres.query('icu', SCHEMA)
  await postgres.createDatabase('columns', COLUMNS)
  await postgres.createDatabase('bytes', SCHEMA)
  const app = stack.use(await startApp())
  const owner = await app.person('Olga')
  const teamId = await app.team(owner, 'Words', { statementTimeoutMs: 5_000 })
  const token = await app.key(owner)
  const { host, port, superuser: username, password } = postgres
  const asking = async (database: string, tables: readonly string[]): Promise<Ask> => {
    const spec = { name: database, host, port, database, username, password }
    const exposed = tables.map((table) => ({ schema: 'public', table, columns: null }))
    const id = await app.datasource(owner, teamId, spec, exposed)
    const path = `/teams/${teamId}/datasources/${id}/query`
    return (sql, params) => app.ask('POST', path, { token, body: { sql, ...(params && { params }) } })
  }
  icu = await asking('icu', ['texts', 'bodies', 'letters'])
  columns = await asking('columns', ['named', 'lines'])
  bytes = await asking('bytes', ['texts', 'bodies'])
  direct = (database, sql) => postgres.query(database, sql)
})
after(() => stack.disposeAsync())

async function refused(asked: Promise<Answer>): Promise<void> {
  const { status, json } = await asked
  assert.ok([400, 403, 422].includes(status), `${status} ${JSON.stringify(json)}`)
}

for (const [name, sql, params] of ATTACKS) {
  test(`a long run of combining marks is refused: ${name}`, () => refused(icu(sql, params)))
}

test('the refusal of a long run of combining marks names the marks, and says what to do', async () => {
  const { json } = await icu(`SELECT 'a' || ${MARKS} < 'b'`)
  assert.equal(json['error'], 'marks would exceed a size limit of this service: the size is 33, the limit is 32.')
  assert.match(String(json['hint']), /combining marks/)
})

async function answered(asked: Promise<Answer>, database: string, sql: string, params: readonly unknown[] = []): Promise<void> {
  const { status, json } = await asked
  assert.equal(status, 200, JSON.stringify(json))
  const rows = (json['rows'] as unknown[][]).map((row) => row.map((value) => (value === null ? null : String(value))))
  const given = params.map((value) => `'${String(value)}'`)
  assert.deepEqual(rows, await direct(database, sql.replaceAll(/\$(\d)/g, (_, n: string) => given[Number(n) - 1] ?? '')))
}

for (const [sql, params] of ORDINARY) {
  test(`an ordinary query in a database that compares by ICU is answered: ${sql.slice(0, 100)}`, () => answered(icu(sql, params), 'icu', sql, params))
}

for (const [name, sql] of IN_COLUMNS) {
  test(`a long run of combining marks is refused beside ${name}`, () => refused(columns(sql)))
}

for (const [name, sql, params] of NAMED) {
  test(`a long run of combining marks is refused if the query names a collation of ICU: ${name}`, () => refused(bytes(sql, params)))
}

for (const [name, sql] of LONG_TEXTS) {
  test(`a comparison of long texts by ICU is refused: ${name}`, () => refused(icu(sql)))
}

for (const [sql, params] of ORDINARY_NAMED) {
  test(`a query that names a collation is answered: ${sql.slice(0, 100)}`, () => answered(bytes(sql, params), 'bytes', sql, params))
}
