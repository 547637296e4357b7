// PostgreSQL frees the values of a row only after the row, and checks for a cancel only between rows. So a query with
// hundreds of calls in one row must be refused over long values, or fail at the first long value. Over ordinary values,
// it must be answered.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { openShop, type Shop } from '../../support/shop.ts'

const TIMEOUT_MS = 60_000
const GROWN_MB = 512

const SCHEMA = `
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE long (id int PRIMARY KEY, m numeric, k numeric, a text, n numeric, j jsonb, list text[],
  bits varbit, multi int4multirange, words json);
INSERT INTO long SELECT g, repeat('7', 131000)::numeric, repeat('3', 60000)::numeric, repeat('a', 1000000), 5, (SELECT jsonb_agg(x) FROM generate_series(1, 100000) x),
  ARRAY(SELECT x::text FROM generate_series(1, 100000) x), repeat('10', 2000000)::varbit,
  (SELECT range_agg(int4range(3 * x, 3 * x + 1)) FROM generate_series(1, 20000) x),
  (SELECT json_agg(md5(x::text)) FROM generate_series(1, 25000) x) FROM generate_series(1, 2) g;
CREATE TABLE short (id int PRIMARY KEY, a text, status text, amount numeric, n numeric, j jsonb, list text[], on_day date);
INSERT INTO short SELECT g, 'customer ' || g, 's' || g % 3, g * 1.25, g, jsonb_build_object('k1', g, 'k2', g::text),
  ARRAY['x', g::text], '2026-01-01'::date + g FROM generate_series(1, 500) g;
CREATE TABLE forms (id int PRIMARY KEY, ${Array.from({ length: 40 }, (_, at) => `c${at} text`).join(', ')}, body text, doc jsonb);
INSERT INTO forms SELECT g, ${Array.from({ length: 40 }, (_, at) => `'value ${at} of ' || g`).join(', ')}, repeat('a', 1000000),
  (SELECT jsonb_object_agg('k' || x, md5(x::text)) FROM generate_series(1, 22000) x) FROM generate_series(1, 5) g;
CREATE TABLE spans (id int PRIMARY KEY, m int4multirange);
INSERT INTO spans SELECT 1, range_agg(int4range(3 * x, 3 * x + 1)) FROM generate_series(1, 100000) x;
CREATE TABLE articles (id int PRIMARY KEY, body text);
INSERT INTO articles SELECT 1, string_agg(chr(19968 + g % 4000), '') FROM generate_series(1, 15000) g;
ANALYZE;`

const each = (count: number, of: (at: number) => string, by = ', '): string =>
  Array.from({ length: count }, (_, at) => of(at)).join(by)
const columns = (count: number, of: (at: number) => string, from: string): string => `SELECT ${each(count, of)} ${from}`

const LIST = 'FROM (SELECT jsonb_agg(g) j FROM generate_series(1, 100000) g) q'
const TEXT = "FROM (SELECT string_agg(md5(g::text), '') v FROM generate_series(1, 30000) g) q"
const LONG = 'FROM long'
const CHAIN = each(379, () => "repeat('aaaa', 10000)", ' || ')

const letters = (count: number): string => Array.from({ length: count }, (_, at) => String.fromCodePoint(0x4e00 + at)).join('')
/** The query makes a value of 4 MB. */
const MADE = "FROM (SELECT repeat(repeat(repeat('x', 10000), 26), 16) AS x OFFSET 0) q"
const nested = (levels: number): string => (levels === 0 ? 'q.x' : `btrim(${nested(levels - 1)}, s.status)`)

const REFUSED = [403, /the expressions of the query (?:make|take) \d+|a value of the query can grow to \d+/] as const
const STORED = [422, /^stored_value would exceed/] as const
const COLLECTED = [422, /^(?:jsonb_agg|string_agg|range_agg) would exceed/] as const
const VARIED = [403, /different letters/] as const
const PATTERN = [422, /^pattern would exceed/] as const
const SORTS = [403, /the query has 151 joins, sorts/] as const
const MULTI = 'FROM (SELECT range_agg(int4range(3 * g, 3 * g + 1)) AS m FROM generate_series(1, 500000) g OFFSET 0) q'

/** The title, the query, and the expected answer. */
const ATTACKS: readonly (readonly [string, string, readonly [number, RegExp]])[] = [
  ['a collected document in 300 columns', columns(300, (at) => `length((j || '${at}')::text)`, LIST), COLLECTED],
  ['a collected document in conditions', `SELECT 1 ${LIST} WHERE ${each(300, (at) => `j || '${at}' = '1'`, ' OR ')}`, COLLECTED],
  ['a collected text in 300 columns', columns(300, (at) => `length(lower(v || ${at}))`, TEXT), COLLECTED],
  ['a collected text, sent often', columns(600, () => 'v', TEXT), COLLECTED],
  ['a stored document', columns(300, (at) => `length((j || '${at}')::text)`, LONG), STORED],
  ['a chain of constants', `SELECT length(a || ${CHAIN}) ${LONG} LIMIT 1`, REFUSED],
  ['a chain that is a constant', `SELECT length(${CHAIN})`, REFUSED],
  ['a chain of one column', `SELECT length(${each(100, () => 'a', ' || ')}) ${LONG}`, STORED],
  ['md5 of a changed text', columns(1000, (at) => `md5(a || ${at})`, LONG), STORED],
  ['a text in lower case', columns(1000, (at) => `length(lower(a || ${at}))`, LONG), STORED],
  ['a text that is only read', columns(1000, () => 'length(a)', LONG), STORED],
  ['a column that is sent often', columns(600, () => 'a', LONG), STORED],
  ['a computed column of a sub-select', columns(1000, () => 'length(x)', `FROM (SELECT lower(a) AS x ${LONG}) q`), STORED],
  ['a computed column of WITH', `WITH w AS (SELECT lower(a) AS x ${LONG}) ${columns(1000, () => 'length(x)', 'FROM w')}`, STORED],
  ['a column of UNION', columns(1000, () => 'length(x)', `FROM (SELECT lower(a) AS x ${LONG} UNION ALL SELECT upper(a) ${LONG}) q`), STORED],
  ['a column of VALUES', columns(300, (at) => `length(v.x || ${at})`, `${LONG}, LATERAL (VALUES (a), (a || 'x')) v(x)`), STORED],
  ['sub-selects', columns(300, (at) => `(SELECT length(a || ${at}))`, LONG), STORED],
  ['the conditions of CASE', `SELECT CASE ${each(1000, (at) => `WHEN lower(a) = '${at}' THEN 1`, ' ')} END ${LONG}`, STORED],
  ['a pattern of many different letters', `SELECT repeat(x, 7) ~ '(?:${letters(4_000)}){4}' FROM (SELECT '${letters(4_000)}' AS x OFFSET 0) q`, VARIED],
  ['a stored text that is a pattern', 'SELECT count(*) FROM articles WHERE body ~ body', PATTERN],
  ['a pattern of letters that the query joins', `SELECT body ~ (left('${letters(15_000)}', 14000) || '.') FROM articles`, PATTERN],
  ['a pattern of classes that the query joins', `SELECT a ~ (left('${letters(600)}', 600) || '${'[^a]{255}'.repeat(7)}') ${LONG}`, PATTERN],
  ['groups inside groups that a match returns', columns(4, (at) => `cardinality(regexp_match(a, '${'('.repeat(90)}.*${')'.repeat(90)}${at}?'))`, LONG), STORED],
  ['ORDER BY', `SELECT id ${LONG} ORDER BY ${each(120, (at) => `length(lower(a || ${at}))`)}`, STORED],
  ['GROUP BY', `SELECT count(*) ${LONG} GROUP BY ${each(120, (at) => `length(lower(a || ${at}))`)}`, STORED],
  ['HAVING', `SELECT 1 ${LONG} HAVING ${each(200, (at) => `max(a) || ${at} = 'x'`, ' OR ')}`, STORED],
  ['a join', `SELECT 1 FROM long x JOIN long y ON ${each(150, (at) => `x.a || y.a = '${at}'`, ' OR ')}`, STORED],
  ['the states of aggregates', columns(300, (at) => `length(max(a || ${at}))`, LONG), STORED],
  ['filters of aggregates', columns(300, (at) => `count(*) FILTER (WHERE a || ${at} = 'x')`, LONG), STORED],
  ['windows', columns(300, (at) => `length(max(a || ${at}) OVER ())`, LONG), STORED],
  ['documents that are built', columns(50, (at) => `length(json_build_object('k${at}', a, 'l', a)::text)`, LONG), STORED],
  ['arrays that are built', columns(300, () => 'cardinality(ARRAY[a, a])', LONG), STORED],
  ['rows that are built', columns(200, (at) => `length(ROW(a, ${at})::text)`, LONG), STORED],
  ['elements of an array', columns(1000, (at) => `'${at}' = ANY (list)`, LONG), STORED],
  ['fields of a document', columns(1000, (at) => `j->>'k${at}'`, LONG), STORED],
  ['keys of a document', columns(1000, (at) => `j ? 'k${at}'`, LONG), STORED],
  ['elements that are removed', columns(1000, (at) => `length((j - ${at})::text)`, LONG), STORED],
  ['casts to jsonb', columns(50, () => 'jsonb_typeof(list::text::jsonb)', LONG), STORED],
  ['LIKE with constants', columns(100, (at) => `a LIKE '%${'a'.repeat(200)}b${at}%'`, LONG), STORED],
  ['LIKE ANY', columns(1, () => `a LIKE ANY (ARRAY[${each(1500, (at) => `'x${at}%'`)}])`, LONG), STORED],
  ['ILIKE', columns(100, (at) => `a ILIKE '%x${at}%'`, LONG), STORED],
  ['strpos with short constants', columns(100, (at) => `strpos(a, 'b${'a'.repeat(60)}${at}')`, LONG), STORED],
  ['strpos with made texts', columns(100, (at) => `strpos(a, 'b' || left(a, ${500 - at}))`, LONG), STORED],
  ['words alike', columns(100, (at) => `show_trgm(a || ${at})`, LONG), STORED],
  ['divisions', `SELECT ${each(60, (at) => `sign(div(1e131000::numeric + 7, 3e60000 + ${at}))`)}`, REFUSED],
  ['divisions of a column of a sub-select', columns(60, (at) => `sign(div(x, 3e60000 + ${at}))`, 'FROM (SELECT 1e131000::numeric + 7 AS x) q'), REFUSED],
  ['divisions of powers', columns(60, (at) => `sign(div(power(id + 9::numeric, 130000), power(id + 9::numeric, 60000) + ${at}))`, LONG), REFUSED],
  ['products', columns(100, () => 'x * x = 1', 'FROM (SELECT div(1e65000::numeric, 7) + id AS x FROM long WHERE id = 1 OFFSET 0) q'), REFUSED],
  ['powers', columns(60, (at) => `sign(power(id + 9::numeric, ${130_000 + at}))`, LONG), REFUSED],
  ['slices of a list', columns(300, (at) => `cardinality(x[1:${1_999_000 + at}])`, 'FROM (SELECT array_agg(g) AS x FROM generate_series(1, 2000000) g) q'), [422, /^array_agg would exceed/]],
  ['subscripts of a document', columns(500, () => "j['a'] IS NULL", "FROM (SELECT jsonb_build_object('a', jsonb_agg(g)) AS j FROM generate_series(1, 100000) g OFFSET 0) q"), COLLECTED],
  ['whole rows of constants', columns(300, () => 'q IS NULL', MADE.replace('16)', '8)')), REFUSED],
  ['whole rows', columns(600, () => 'q IS NULL', `FROM (SELECT a || 'x' AS x ${LONG} OFFSET 0) q`), STORED],
  ['sub-selects of one value', columns(200, () => 'length((SELECT q.x OFFSET 0))', MADE), REFUSED],
  ['nested bounds', columns(25, () => `length(${nested(4)})`, `FROM short s, ${MADE.slice(5)} WHERE s.id = 1`), REFUSED],
  ['aggregates over windows', columns(100, (at) => `length(max(q.x) OVER (ORDER BY 1 ROWS ${at} PRECEDING))`, MADE), REFUSED],
  ['a column of UNION in conditions', `SELECT 1 FROM (SELECT lower(a) AS x ${LONG} UNION ALL SELECT upper(a) ${LONG}) q WHERE ${each(300, (at) => `x = '${at}'`, ' OR ')}`, STORED],
  ['a grouped column in conditions', `SELECT 1 FROM (SELECT lower(a) AS x ${LONG} GROUP BY 1) q WHERE ${each(300, (at) => `x = '${at}'`, ' OR ')}`, STORED],
  ['a column of USING', `SELECT 1 FROM (SELECT lower(a) AS x ${LONG}) q LEFT JOIN (SELECT a AS x ${LONG}) r USING (x) WHERE ${each(300, (at) => `x = '${at}'`, ' OR ')}`, STORED],
  ['VALUES of one row', `SELECT 1 ${LONG}, LATERAL (VALUES (lower(a))) v(x) WHERE ${each(300, (at) => `x = '${at}'`, ' OR ')}`, STORED],
  ['BETWEEN', `SELECT 1 ${LONG} WHERE ${each(200, (at) => `lower(a) BETWEEN a AND list[${at}]`, ' OR ')}`, STORED],
  ['a column behind coalesce()', columns(1000, () => "length(coalesce(a, ''))", LONG), STORED],
  ['a column behind coalesce() with a list of rows', `SELECT 1 FROM (SELECT coalesce(list, ARRAY(SELECT 'x')) AS t ${LONG} OFFSET 0) q WHERE ${each(1800, (at) => `cardinality(t) = -${at}`, ' OR ')}`, STORED],
  ['conditions of AND', `SELECT 1 ${LONG} WHERE ${each(1500, (at) => `lower(a) <> '${at}'`, ' AND ')}`, STORED],
  ['divisions of stored numbers', columns(60, (at) => `sign(div(m, k + ${at}))`, LONG), STORED],
  ['a body of WITH that is copied', `WITH v AS NOT MATERIALIZED (SELECT id ${LONG} WHERE ${each(55, (at) => `length(a || '${at}') = 0`, ' OR ')}) SELECT ${each(30, () => 'EXISTS (SELECT FROM v)')}`, STORED],
  ['a cast that changes nothing', `SELECT count(*) FROM (SELECT j::jsonb AS v ${LONG} OFFSET 0) q WHERE ${each(2500, (at) => `v ? 'x${at}'`, ' OR ')}`, STORED],
  ['a cast of json that changes nothing', `SELECT count(*) FROM (SELECT words::json AS v ${LONG} OFFSET 0) q WHERE ${each(1500, (at) => `json_array_length(v) = -${at}`, ' OR ')}`, STORED],
  ['a text that is read as a number', `SELECT count(*) ${LONG} WHERE ${each(1500, (at) => `to_number(a, '9') = -${at}`, ' OR ')}`, STORED],
  ['many arguments in AND', `SELECT count(*) ${LONG} WHERE ${each(31, (at) => `length(concat(${each(90, () => 'a')}, ${at})) > 0`, ' AND ')}`, STORED],
  ['strings of bits', `SELECT count(*) ${LONG} WHERE ${each(1000, (at) => `bit_length(bits & bits) = -${at}`, ' OR ')}`, STORED],
  ['the length of a string of bits', columns(1500, () => 'bit_length(bits)', LONG), STORED],
  ['comparisons of multiranges', `SELECT count(*) ${LONG} WHERE ${each(1200, (at) => `(multi <> multi) IS DISTINCT FROM (id = ${at})`, ' OR ')}`, STORED],
  ['intersections of collected multiranges', columns(100, () => 'isempty(q.m * q.m)', MULTI), COLLECTED],
  ['variances of long numbers', columns(100, (at) => `variance(x + ${at})`, 'FROM (SELECT div(1e65000::numeric, 7) + id AS x FROM long WHERE id = 1 OFFSET 0) q'), REFUSED],
  ['powers of numbers that a cast makes long', columns(60, (at) => `sign(power(10::numeric, 130000::numeric) / ${at})`, LONG), REFUSED],
  ['a multirange that is sent', 'SELECT m FROM spans', STORED],
  ['a row of long values as a document', `SELECT to_jsonb(x) FROM long x`, STORED],
  ['functions that return rows', `SELECT count(*) FROM (SELECT ${each(1000, () => "string_to_table('a,b', ',')")}) r`, SORTS],
  ['functions that return rows in ROWS FROM', `SELECT count(*) FROM LATERAL ROWS FROM (${each(1000, () => "string_to_table('a,b', ',')")}) r`, SORTS],
  ['roots', `SELECT ${each(60, (at) => `sign(sqrt(1e131000::numeric + ${at}))`)}`, REFUSED],
]

const SHORT = 'FROM short'

const ANSWERED: readonly (readonly [string, string])[] = [
  ['400 columns of texts', columns(400, (at) => `coalesce(upper(replace(a, 'x${at}', 'y')), 'none') AS c${at}`, SHORT)],
  ['400 columns of numbers, dates and texts', columns(400, (at) => `round(amount / ${at + 1} * 100, 2), to_char(on_day, 'YYYY-MM'), concat(a, ' - ', ${at})`, SHORT)],
  ['200 fields of a document with casts', columns(200, (at) => `(j->>'k${at}')::numeric, (j->'m${at}'->>'a')::text`, SHORT)],
  ['100 quotients of fields', columns(100, (at) => `round(coalesce((j->>'k${at}')::numeric, 0) * amount / nullif((j->>'m${at}')::numeric + 1, 0), 2)`, SHORT)],
  ['100 fields of a row', columns(100, (at) => `(to_jsonb(short) ->> 'k${at}')::numeric`, SHORT)],
  ['300 parts of a text', columns(300, (at) => `(string_to_array(a, ' '))[${at + 1}]`, SHORT)],
  ['150 patterns with groups', columns(150, () => "regexp_replace(a, '^(..)(..)(..)', '\\1-\\2-\\3')", SHORT)],
  ['patterns that are joined', `SELECT count(*) ${SHORT} WHERE a ~ ('^customer ' || id || '[0-9]{0,2}$') AND a ~ (SELECT string_agg(b.a, '|') FROM short b)`],
  ['stored patterns', `SELECT count(*) FROM short x JOIN short y ON x.a ~ y.status AND x.a ~* concat('^', y.a, '$')`],
  ['a key of 60 columns', `SELECT md5(cast(${each(60, () => "coalesce(cast(a as text), '_null_')", " || '-' || ")} as text)) ${SHORT}`],
  ['100 positions', columns(100, () => 'position(status in a)', SHORT)],
  ['products', columns(200, (at) => `amount * n * (1 - amount / ${at + 1}) * power(amount, 2)`, SHORT)],
  ['grouping sets', `SELECT count(*) ${SHORT} GROUP BY GROUPING SETS (${each(100, () => '(id, a, status, amount, n)')})`],
  ['50 NOT ILIKE in AND', `SELECT count(*) ${SHORT} WHERE id = 5 AND ${each(50, (at) => `a NOT ILIKE '%word number ${at}%'`, ' AND ')}`],
  ['50 NOT ILIKE beside EXISTS', `SELECT count(*) FROM short x JOIN short y ON lower(x.a) = lower(y.a) WHERE EXISTS (SELECT FROM short z WHERE z.id = x.id) AND ${each(50, (at) => `x.a NOT ILIKE '%word number ${at}%'`, ' AND ')}`],
  ['50 ILIKE in OR', `SELECT id ${SHORT} WHERE ${each(50, (at) => `a ILIKE '%word number ${at}%'`, ' OR ')}`],
  ['200 branches of CASE', `SELECT CASE ${each(200, (at) => `WHEN lower(a) = 'x${at}' THEN upper(a || ${at})`, ' ')} ELSE a END ${SHORT}`],
  ['a long list in IN', `SELECT id ${SHORT} WHERE a IN (${each(3000, (at) => `'customer ${at}'`)})`],
  ['a pivot of 300 sums', `SELECT id, ${each(300, (at) => `sum(CASE WHEN status = 's${at}' THEN amount ELSE 0 END) AS s${at}`)} ${SHORT} GROUP BY id`],
  ['a pivot of 300 texts', `SELECT status, ${each(300, (at) => `max(CASE WHEN id = ${at} THEN a END) AS s${at}`)} ${SHORT} GROUP BY status`],
  ['120 fields of collected documents', columns(120, (at) => `upper(trim(o->>'k${at}')), (o->>'n${at}')::numeric`, `FROM (SELECT id % 50 AS id, jsonb_object_agg(a, status) o ${SHORT} GROUP BY 1) q`)],
  ['40 collected lists in a document', `SELECT jsonb_build_object(${each(40, (at) => `'k${at}', (SELECT jsonb_agg(a) ${SHORT} WHERE id = ${at})`)})`],
  ['20 lists of each group', `SELECT status, ${each(20, (at) => `array_to_string(array_agg(DISTINCT upper(a) || ${at}), ', ')`)} ${SHORT} GROUP BY status`],
  ['60 columns in one line', `SELECT ${each(60, () => "coalesce(a, '')", " || ',' || ")} ${SHORT}`],
  ['90 arms of UNION', each(90, (at) => `SELECT '${at}' AS k, upper(a) AS v, round(sum(amount), 2)::text ${SHORT} WHERE id = ${at} GROUP BY a`, ' UNION ALL ')],
  ['a report over WITH', `WITH m AS (SELECT id, lower(a) AS x, status, amount FROM short) ${columns(100, (at) => `count(*) FILTER (WHERE x LIKE '%r ${at}'), round(100.0 * sum(amount) FILTER (WHERE status = 's${at}') / nullif(sum(amount), 0), 2)`, 'FROM m')}`],
  ['100 searches for a column', columns(100, () => 'strpos(a, status)', SHORT)],
  ['50 prefixes of a column', columns(50, () => "count(*) FILTER (WHERE x.a LIKE y.status || '%')", 'FROM short x JOIN short y ON x.id = y.id')],
  ['100 replaced patterns', columns(100, () => "regexp_replace(a, '[^0-9]+', '', 'g')", SHORT)],
  ['rates and discounts', columns(50, (at) => `coalesce(amount / power(1 + n / 100, ${at}), 0) / nullif(n, 0), amount / power(10, ${at})`, SHORT)],
  ['instalments', columns(10, () => 'amount * n * power(1 + n, id) / (power(1 + n, id) - 1)', `${SHORT} WHERE id < 20`)],
  ['normalised texts', columns(20, () => 'normalize(a)', SHORT)],
  ['a long column that is read once', `SELECT id, a, ${each(20, (at) => `n + ${at}`)} FROM long`],
  ['a sorted page of a long column', "SELECT id, upper(a), j ->> 'k' AS k FROM long ORDER BY a, k DESC LIMIT 10 OFFSET 1"],
  ['sums of all types of numbers', columns(300, (at) => `sum(amount * n + id - ${at}), avg(extract(epoch FROM on_day)), max(on_day) - min(on_day)`, SHORT)],
  ['100 functions that return rows', `SELECT ${each(100, (at) => `generate_series(1, ${at})`)}`],
  ['some calls on a long column', 'SELECT length(a), md5(a), upper(left(a, 10)), strpos(a, \'b\'), octet_length(lower(a)) FROM long'],
]

const FORMS = 'FROM forms'
const quoted = (at: number): string => `'"' || replace(coalesce(c${at}, ''), '"', '""') || '"'`

const ANSWERED_LONG: readonly (readonly [string, string])[] = [
  ['a row as a document', 'SELECT to_jsonb(f) FROM (SELECT id, c0, body, doc FROM forms) f LIMIT 1'],
  ['rows in a document', `SELECT coalesce(json_agg("root"), '[]') FROM (SELECT row_to_json((SELECT "_e" FROM (SELECT b."id" AS "id", b."c0" AS "c0", b."c1" AS "c1") AS "_e")) AS "root" FROM (SELECT * FROM forms LIMIT 5) AS b) AS r`],
  ['a line of CSV', `SELECT ${each(40, quoted, " || ',' || ")} ${FORMS}`],
  ['a line of CSV with a long value', `SELECT id, ${each(20, quoted, " || ',' || ")} || ',' || body ${FORMS} WHERE id = 1`],
  ['a key of 40 columns beside a long value', `SELECT id, body, md5(cast(${each(40, (at) => `coalesce(cast(c${at} as text), '_null_')`, " || '-' || ")} as text)) ${FORMS} WHERE id = 1`],
  ['a key beside the columns of another table', `SELECT g.body, md5(cast(${each(40, (at) => `coalesce(cast(f.c${at} as text), '_null_')`, " || '-' || ")} as text)) FROM forms f JOIN forms g ON g.id = f.id WHERE f.id = 1`],
  ['40 columns joined by a separator', `SELECT concat_ws('|', ${each(40, (at) => `c${at}`)}, body) ${FORMS} WHERE id = 1`],
  ['ends of 40 columns', `SELECT ${each(40, (at) => `min(cast(c${at} AS text))`)}, max(body) ${FORMS} WHERE id = 1`],
  ['40 columns that are cleaned', `SELECT ${each(40, (at) => `CASE WHEN trim(lower(c${at})) = '' THEN NULL ELSE trim(lower(c${at})) END`)}, body ${FORMS} WHERE id = 1`],
  ['33 fields of a long document', columns(33, (at) => `doc->>'k${at}'`, FORMS)],
  ['20 arms of UNION', each(20, (at) => `SELECT upper(c${at}), md5(body), doc->>'k1', doc->>'k2' ${FORMS} WHERE id = ${at}`, ' UNION ALL ')],
]

describe('queries with hundreds of calls in one row', () => {
  let shop: Shop
  let watch: Client
  let at: string
  before(async () => {
    shop = await openShop()
    const database = await shop.postgres.createDatabase('wide', SCHEMA)
    watch = new Client({ connectionString: shop.postgres.url(database) })
    await watch.connect()
    const tables = ['long', 'short', 'forms', 'spans', 'articles'].map((table) => ({ schema: 'public', table, columns: null }))
    const id = await shop.app.datasource(shop.owner, shop.teamId, { ...shop.spec, name: 'wide', database }, tables)
    at = `/teams/${shop.teamId}/datasources/${id}`
    await shop.owner.must('PATCH', `/teams/${shop.teamId}`, { settings: { statementTimeoutMs: TIMEOUT_MS } })
  })
  after(async () => {
    await watch.end()
    await shop[Symbol.asyncDispose]()
  })

  const ask = (sql: string) => shop.app.ask('POST', `${at}/query`, { token: shop.key, body: { sql } })

  /** Returns the memory of the service's backends, in MB. */
  async function grown(): Promise<number> {
    const { rows } = await watch.query(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )
    return Math.max(0, ...rows.map(({ pid }) => peakMb(Number(pid))))
  }

  for (const [name, sql, [expected, pattern]] of ATTACKS) {
    test(`a wide query does not run over long values: ${name}`, async () => {
      const { status, json } = await ask(sql)
      assert.equal(status, expected, String(json.error))
      assert.match(String(json.error), pattern)
      assert.ok((await grown()) < GROWN_MB, `${await grown()} MB`)
    })
  }

  for (const [name, sql] of [...ANSWERED, ...ANSWERED_LONG]) {
    test(`an ordinary wide query is answered: ${name}`, async () => {
      const { status, json } = await ask(sql)
      assert.equal(status, 200, String(json.error))
    })
  }

  test('a query with many calls fails only at a row with a long value', async () => {
    const sql = columns(1000, (place) => `md5(a || ${place})`, LONG)
    const { json } = await ask(`${sql} WHERE id = 1`)
    assert.equal(json.error, 'stored_value would exceed a size limit of this service: the size is 2000000000, the limit is 134217728.')
    assert.match(String(json.hint), /fewer columns/)
    assert.equal((await ask(`${sql} WHERE id = 3`)).status, 200)
  })
})

/**
 * Returns the peak memory in MB, or 0 for a backend that has ended. Only Linux reports the memory, so this is 0
 * elsewhere.
 */
function peakMb(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}
