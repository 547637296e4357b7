// Tests that queries whose values multiply are refused, and that similar ordinary queries pass.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const again = (count: number, innermost: string, around: (inner: string) => string): string =>
  Array.from({ length: count }).reduce<string>((inner) => around(inner), innermost)

const list = (count: number, item: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => item(at)).join(', ')
const MEGABYTE = again(3, "repeat('x', 1000)", (inner) => `repeat(${inner}, 10)`)
const DASHES = "repeat('-----', 10000)"
const COMMAS = again(3, "repeat('x,', 480)", (inner) => `repeat(${inner}, 10)`)

/** Returns a FROM item with a text of at least this many bytes. */
const made = (unit: string, bytes: number): string =>
  `(SELECT repeat(repeat(repeat('${unit}', ${Math.ceil(bytes / unit.length / 256)}), 16), 16) AS x OFFSET 0) q`

const REFUSED: readonly (readonly [string, string, string])[] = [
  ['repeat of a long constant', "SELECT repeat('abcdefghij0123456789abcdefghij', 10000)", 'limit: repeat'],
  ['a count over the limit', "SELECT repeat('x', 10001)", 'limit: repeat'],
  [
    '|| that doubles through sub-selects',
    again(25, "SELECT 'xxxxxxxx' AS a", (q) => `SELECT a || a AS a FROM (${q} OFFSET 0) q`),
    'limit: size',
  ],
  [
    'concat through WITH',
    `WITH c0 AS (SELECT 'xxxxxxxx'::text a), ${Array.from({ length: 12 }, (_, n) => `c${n + 1} AS MATERIALIZED (SELECT concat(a,a,a,a) a FROM c${n})`).join(', ')} TABLE c12`,
    'limit: size',
  ],
  [
    'stored text, copied',
    again(16, 'SELECT name AS a FROM customers', (q) => `SELECT a || a AS a FROM (${q} OFFSET 0) q`),
    'limit: size',
  ],
  [
    'replace in replace',
    again(5, 'name', (x) => `replace(${x}, 'a', 'aaaaaaaaaaaaaaaaaaaa')`).replace(/^/, 'SELECT ') + ' FROM customers',
    'limit: size',
  ],
  ...[
    "('[1e65' || '000,)')::numrange",
    "(('{[1e65' || '000,)}')::nummultirange)",
    '$1::numrange',
    "(SELECT x::numrange FROM (SELECT $1 || '' AS x OFFSET 0) p)",
    "range_merge(('[1,1e65' || '000]')::numrange, '[2,3]'::numrange)",
  ].map((range): [string, string, string] => [
    `products of numbers of ${range}`,
    `SELECT ${list(400, () => 'y * y = 1')} FROM (SELECT div(lower(${range}), 7) AS y OFFSET 0) q`,
    'limit: size',
  ]),
  ...['mode()', 'percentile_disc(0.5)', 'percentile_disc(ARRAY[0.5, 0.7])'].map((name): [string, string, string] => [
    `copies of ${name}`,
    `SELECT length(concat(${list(100, () => 'y')})) FROM (SELECT concat(${list(100, () => 'm')}) AS y FROM (SELECT ${name} WITHIN GROUP (ORDER BY x) FILTER (WHERE x <> '') AS m FROM (SELECT repeat(repeat('x', 1000), 40) AS x OFFSET 0) q OFFSET 0) r OFFSET 0) z`,
    'limit: size',
  ]),
  [
    'percentile_disc of many fractions',
    "SELECT percentile_disc(array_fill(0.5::float8, ARRAY[9000])) WITHIN GROUP (ORDER BY x) FROM (SELECT repeat('x', 10000) AS x OFFSET 0) q",
    'limit: size',
  ],
  [
    'copies of a substring by a pattern',
    `SELECT length(concat(${list(60, () => 'm')})) FROM (SELECT substring(x FROM '5"%5"' FOR '5') AS m FROM (SELECT ${MEGABYTE} AS x OFFSET 0) q OFFSET 0) r`,
    'limit: size',
  ],
  ...["'', 'y', 'g'", "'q*|b', 'y', 'g'", "'(?=x)', 'y', 'gi'", "name, 'y', name"].map(
    (how): [string, string, string] => [
      `regexp_replace that inserts by ${how}`,
      `SELECT length(${again(17, "repeat('x', 1000)", (inner) => `regexp_replace(${inner}, ${how})`)}) FROM customers`,
      'limit: size',
    ],
  ),
  ...[
    "'MaxFragments=101'",
    "'MinWords=1, maxwords = 1001'",
    "'MaxFragments=''10'",
    "'MaxFragments=0x10'",
    "'MaxWords=1_0'",
    '$1',
    'name',
  ].map((options): [string, string, string] => [
    `ts_headline with ${options}`,
    `SELECT ts_headline(name, to_tsquery('a'), ${options}) FROM customers`,
    'limit: ts_headline',
  ]),
  ['a column of type tsquery', "SELECT r.m FROM json_to_record('{}') AS r(m tsquery)", 'type: tsquery'],
  ['a column of lists of tsquery', "SELECT r.m FROM jsonb_to_recordset('[]') AS r(m tsquery[])", 'type: tsquery'],
  ['a comparison of long runs', `SELECT ${DASHES} || 'a' < ${DASHES} || 'A'`, 'limit: size'],
  [
    'a comparison of long runs, often',
    `SELECT ${list(20, () => "repeat('-', 9000) || id < repeat('-', 9000) || name")} FROM customers`,
    'limit: size',
  ],
  [
    'a sort by long runs',
    `SELECT length(x) FROM (SELECT ${DASHES} || name AS x FROM customers) q ORDER BY x`,
    'limit: size',
  ],
  ['a comparison of documents', `SELECT to_jsonb(${DASHES} || 'a') = to_jsonb(${DASHES} || 'A')`, 'limit: size'],
  [
    'CASE of documents',
    `SELECT CASE to_jsonb(${DASHES} || 'a') WHEN to_jsonb(${DASHES} || 'A') THEN 1 END`,
    'limit: size',
  ],
  ['groups by documents', `SELECT count(*) FROM customers GROUP BY to_jsonb(${DASHES} || name)`, 'limit: size'],
  ['ANY of long runs', `SELECT ${DASHES} || 'a' < ANY (SELECT ${DASHES} || name FROM customers)`, 'limit: size'],
  [
    'whole rows with long runs',
    `SELECT q < r FROM (SELECT ${DASHES} AS x) q, (SELECT ${DASHES} || 'A' AS x) r`,
    'limit: size',
  ],
  ['a sort by whole rows', `SELECT 1 FROM (SELECT ${DASHES} || name AS x FROM customers) q ORDER BY q`, 'limit: size'],
  [
    'a join by long runs',
    `SELECT 1 FROM (SELECT ${DASHES} || name AS x FROM customers) q FULL JOIN (SELECT ${DASHES} || name AS x FROM customers) r ON q.x = r.x`,
    'limit: size',
  ],
  [
    'USING of long runs',
    `SELECT 1 FROM (SELECT ${DASHES} || name AS x FROM customers) q JOIN (SELECT ${DASHES} || name AS x FROM customers) r USING (x)`,
    'limit: size',
  ],
  [
    'a named window by long runs',
    `SELECT rank() OVER w FROM customers WINDOW w AS (ORDER BY ${DASHES} || name)`,
    'limit: size',
  ],
  ['a window by long runs', `SELECT rank() OVER (ORDER BY ${DASHES} || name) FROM customers`, 'limit: size'],
  ['a group of long runs', `SELECT count(*) FROM customers GROUP BY ${DASHES} || name`, 'limit: size'],
  ['DISTINCT of long runs', `SELECT DISTINCT ${DASHES} || name FROM customers`, 'limit: size'],
  [
    'to_jsonb of a made json document',
    `SELECT ${list(16, () => "jsonb_typeof(to_jsonb(('[' || x || '0]')::json))")} FROM (SELECT ${COMMAS} AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'fields of a made json document',
    `SELECT ${list(16, () => "('[' || x || '0]')::json -> 'z'")} FROM (SELECT ${COMMAS} AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'a cast to an array of names',
    `SELECT ${list(16, () => "cardinality(('{' || x || '0}')::name[])")} FROM (SELECT ${COMMAS} AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'a cast to an array of tsvector',
    `SELECT cardinality(('{' || x || '0}')::tsvector[]) FROM (SELECT ${COMMAS} AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'regexp_matches that keeps a hundred groups of each match',
    `SELECT regexp_matches(x, '.|${'(a)'.repeat(100)}', 'g') FROM (SELECT ${MEGABYTE} AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'regexp_match that returns each group of a nest',
    `SELECT regexp_match(x, '${'('.repeat(90)}x*${')'.repeat(90)}') FROM (SELECT ${MEGABYTE} AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'regexp_substr with a hundred groups',
    `SELECT regexp_substr(x, '.|${'(a)'.repeat(100)}', 1, 1, '', 1) FROM (SELECT ${MEGABYTE} AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'regexp_instr with a pattern that the query makes',
    `SELECT regexp_instr(x, repeat('(a)', 100), 1, 1, 0, '', 1) FROM (SELECT ${MEGABYTE} AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'regexp_replace with references',
    again(8, 'name', (x) => `regexp_replace(${x}, '(.*)', '\\1\\1\\1\\1', 'g')`).replace(/^/, 'SELECT ') +
      ' FROM customers',
    'limit: size',
  ],
  [
    'format that repeats an argument',
    again(4, 'name', (x) => `format('${'%1$s'.repeat(30)}', ${x})`).replace(/^/, 'SELECT ') + ' FROM customers',
    'limit: size',
  ],
  [
    'a row of long values',
    `SELECT ${Array.from({ length: 300 }, () => "repeat('x', 10000) || repeat('0123456789012345678901234', 10000)").join(', ')}`,
    'limit: size',
  ],
  [
    'a recursion that doubles',
    "WITH RECURSIVE t(n, s) AS (SELECT 1, 'x'::text UNION ALL SELECT n + 1, s || s FROM t WHERE n < 40) SELECT length(s) FROM t",
    'limit: size',
  ],
  [
    'a recursion that doubles through another column',
    "WITH RECURSIVE t(n, a, b) AS (SELECT 1, 'x'::text, 'y'::text UNION ALL SELECT n + 1, a || b, b || a FROM t WHERE n < 40) SELECT length(a) FROM t",
    'limit: size',
  ],
  [
    'a recursion that doubles an array',
    'WITH RECURSIVE t(n, s) AS (SELECT 1, ARRAY[1] UNION ALL SELECT n + 1, array_cat(s, s) FROM t WHERE n < 40) SELECT cardinality(s) FROM t',
    'limit: size',
  ],
  [
    'a recursion that doubles in a sub-select',
    "WITH RECURSIVE t(n, s) AS (SELECT 1, 'x'::text UNION ALL SELECT n, r FROM (SELECT n + 1 AS n, s || s AS r FROM t) q WHERE n < 40) SELECT length(s) FROM t",
    'limit: size',
  ],
  ['a long text to normalize', `SELECT normalize('${'\u0301\u0316'.repeat(1025)}')`, 'limit: normalize'],
  ['a random count', "SELECT repeat('x', (random() * 1e9)::int)", 'limit: repeat'],
  [
    'too many points',
    'SELECT polygon(20000, circle(point(0,0), 1)) <-> polygon(20000, circle(point(9,0), 1))',
    'limit: polygon',
  ],
  [
    'a comparison of two collections',
    'SELECT array_agg(id) @> (SELECT array_agg(id) FROM orders) FROM customers',
    'limit: size',
  ],
  ['named arguments', "SELECT repeat(text => 'x', count => 10)", 'limit: repeat'],
  ['a cast to json[]', `SELECT x::json[] IS NULL FROM ${made('0,', 300_000)}`, 'limit: size'],
  ['a cast of an array to json[]', `SELECT x::text[]::json[] IS NULL FROM ${made('0,', 300_000)}`, 'limit: size'],
  ['a cast to a multirange', `SELECT x::int4multirange IS NULL FROM ${made('[1,2),', 60_000)}`, 'limit: size'],
  [
    'a function that is a cast to a multirange',
    `SELECT int4multirange(x) IS NULL FROM ${made('[1,2),', 60_000)}`,
    'limit: size',
  ],
  ['a cast to an array of ranges', `SELECT x::int4range[] IS NULL FROM ${made('"[1,2)",', 60_000)}`, 'limit: size'],
  [
    'a parameter that is cast to a multirange often',
    `SELECT ${list(40, () => 'x::int4multirange IS NULL')} FROM (SELECT $1::text AS x OFFSET 0) q`,
    'limit: size',
  ],
  [
    'a multirange in the columns of a document',
    `SELECT r.m IS NULL FROM (SELECT json_build_object('m', x) AS j FROM ${made('[1,2),', 60_000)}) z, json_to_record(j) AS r(m int4multirange)`,
    'limit: size',
  ],
  [
    'a parameter that is cast to jsonb[] often',
    `SELECT ${list(30, () => 'x::jsonb[] IS NULL')} FROM (SELECT $1::text AS x OFFSET 0) q`,
    'limit: size',
  ],
  ['parse_ident', `SELECT parse_ident(x) IS NULL FROM ${made('a.', 300_000)}`, 'limit: size'],
  [
    'arrays that become jsonb',
    `SELECT ${list(60, () => 'to_jsonb(x) IS NULL')} FROM (SELECT x::text[] AS x FROM ${made('0,', 600_000)} OFFSET 0) r`,
    'limit: size',
  ],
  [
    'a list of arguments that becomes jsonb',
    `SELECT ${list(60, () => 'jsonb_build_array(VARIADIC x) IS NULL')} FROM (SELECT x::text[] AS x FROM ${made('0,', 600_000)} OFFSET 0) r`,
    'limit: size',
  ],
  [
    'array_to_string',
    `SELECT ${list(60, () => "array_to_string(x, '') IS NULL")} FROM (SELECT x::text[] AS x FROM ${made('0,', 600_000)} OFFSET 0) r`,
    'limit: size',
  ],
  [
    'concat of a list of arguments',
    `SELECT ${list(60, () => 'concat(VARIADIC x) IS NULL')} FROM (SELECT x::text[] AS x FROM ${made('0,', 600_000)} OFFSET 0) r`,
    'limit: size',
  ],
  ['casts to varbit[]', `SELECT x::varbit[] IS NULL FROM ${made('0,', 1_000_000)}`, 'limit: size'],
  ['casts to bpchar[]', `SELECT x::bpchar[] IS NULL FROM ${made('0,', 1_000_000)}`, 'limit: size'],
  ['casts to text[]', `SELECT x::text[] IS NULL FROM ${made('0,', 1_000_000)}`, 'limit: size'],
  [
    'control characters in json',
    `SELECT ${list(40, () => 'to_json(x) IS NULL')} FROM ${made('\u0001', 1_000_000)}`,
    'limit: size',
  ],
  [
    'quotation marks that are split and joined',
    `SELECT length(x) FROM ${again(7, `(SELECT repeat('"', 1000) AS x OFFSET 0) q`, (q) => `(SELECT string_to_array(x, NULL)::text AS x FROM ${q} OFFSET 0) q`)}`,
    'limit: size',
  ],
]
for (const [name, sql, expected] of REFUSED) {
  test(`is refused: ${name}`, async () => {
    const verdict = await guard.judge(sql, shop())
    assert.equal(say(verdict), expected)
    assert.ok(verdict.kind === 'denied' && verdict.hint !== '')
  })
}

const COUNTED =
  /"set_config"\('vitrine\.collected', .* > *\) 268435456|"set_config"\('vitrine\.collected', .*>\) 268435456/

const PASSES: readonly (readonly [string, string, RegExp])[] = [
  ['an aggregate, with its bytes counted', "SELECT array_agg(repeat('x', 10000)) FROM customers", COUNTED],
  [
    'regexp_replace that replaces letters',
    `SELECT ${again(12, 'name', (inner) => `regexp_replace(${inner}, '^[^a-z]+|(?:\\s|-){2}$', '_', 'g')`)} FROM customers`,
    /regexp_replace/,
  ],
  [
    'ts_headline with options, by the words of the query and the bytes of the text',
    "SELECT ts_headline('english', name, plainto_tsquery('cat & dog'), 'MaxFragments=100, MaxWords=\"1000\", StartSel=<b>') FROM customers",
    /"numnode"\(.*>\) 8388608/s,
  ],
  ['ARRAY(), with its bytes counted', "SELECT ARRAY(SELECT repeat('x', 10000) FROM customers)", COUNTED],
  ['EXCEPT, with its bytes counted', 'SELECT id FROM customers EXCEPT SELECT id FROM orders', COUNTED],
  ['NOT IN, with its bytes counted', 'SELECT 1 FROM customers WHERE id NOT IN (SELECT id FROM orders)', COUNTED],
  ['IN, which PostgreSQL joins', 'SELECT 1 FROM customers WHERE id IN (SELECT id FROM orders)', /^(?!.*set_config)/],
  ['an aggregate that keeps one value', 'SELECT max(name), count(DISTINCT id) FROM customers', /^(?!.*set_config)/],
  [
    'lpad by the level of a recursion',
    "WITH RECURSIVE t(id, level) AS (SELECT id, 1 FROM customers UNION ALL SELECT t.id, level + 1 FROM t WHERE level < 3) SELECT lpad('', level * 2) || id FROM t",
    /"lpad"\('', CASE WHEN .*> *\) 10000\) THEN CAST\(.* AS "pg_catalog"\."int4"\) ELSE/s,
  ],
  [
    'a bar chart of stars',
    "SELECT repeat('*', (count(*) / 5)::int) FROM customers",
    /CASE WHEN .* THEN CAST\(.* AS "pg_catalog"\."int4"\) ELSE/,
  ],
  [
    'rpad by the length of a column',
    "SELECT rpad(name, length(name) + 3, '.') FROM customers",
    /"rpad"\("t1"\."name", CASE WHEN/,
  ],
  [
    'a sort by a text that is collected',
    "SELECT string_agg(name, '-') AS names FROM customers GROUP BY country ORDER BY names",
    /40960 collected_value/,
  ],
  [
    'a sort beside a text that is collected',
    "SELECT string_agg(name, '-') AS names FROM customers GROUP BY country ORDER BY country",
    /^(?!.*collected_value)/,
  ],
  [
    'a sort by a path',
    "WITH RECURSIVE t(id, path) AS (SELECT id, name FROM customers UNION ALL SELECT c.id, t.path || '/' || c.name FROM t JOIN customers c ON c.id = t.id + 1) SELECT * FROM t ORDER BY path",
    /40960 collected_value/,
  ],
  [
    'a sort by a text without its letters',
    "SELECT regexp_replace(name, '[a-z]', '', 'gi') FROM customers ORDER BY 1",
    /octet_length.* 134217728/,
  ],
  [
    'groups by a bar of stars',
    "SELECT repeat('*', id % 5) FROM customers GROUP BY 1 ORDER BY 1",
    /bound: 10000 repeat/,
  ],
  ['a bar of stars beside a sort', "SELECT repeat('*', id % 5), id FROM customers ORDER BY id", /^(?!.*16384)/],
  ['a sort by a text without dashes', "SELECT replace(name, '-', '') FROM customers ORDER BY 1", /^(?!.*octet_length)/],
  ['a few groups of each match', "SELECT regexp_matches(name, '(\\d+)-(\\d+)', 'g') FROM customers", /octet_length/],
  ['one match', `SELECT regexp_match(name, '${'(a)'.repeat(30)}') FROM customers`, /\* *\) 11\)/],
  ['a text repeated a few times', 'SELECT repeat(name, 3) FROM customers', /"repeat"\("t1"\."name", 3\)/],
  [
    'a text repeated often',
    'SELECT repeat(name, 1000) FROM customers',
    /CASE WHEN \("pg_catalog"\."octet_length"\("t1"\."name"\) OPERATOR\("pg_catalog"\.>\) 262\) THEN CAST\(.* AS "pg_catalog"\."int4"\) ELSE 1000 END/,
  ],
  [
    'a path',
    "WITH RECURSIVE t(id, path) AS (SELECT id, name FROM customers UNION ALL SELECT c.id, t.path || '/' || c.name FROM t JOIN customers c ON c.id = t.id + 1) SELECT * FROM t",
    /RECURSIVE/,
  ],
  [
    'a path in an array',
    'WITH RECURSIVE t(id, path) AS (SELECT id, ARRAY[id] FROM customers UNION ALL SELECT c.id, path || c.id FROM t JOIN customers c ON c.id = t.id + 1 WHERE NOT c.id = ANY (path)) SELECT * FROM t',
    /RECURSIVE/,
  ],
  [
    'Fibonacci',
    'WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f WHERE b < 100) SELECT a FROM f',
    /RECURSIVE/,
  ],
  [
    'replace with constants',
    "SELECT replace(replace(replace(name, 'a', 'b'), 'c', '<br/>'), 'd', '&amp;') FROM customers",
    /^SELECT "pg_catalog"\."replace"\("pg_catalog"\."replace"/,
  ],
  [
    'JSON in JSON',
    "SELECT json_agg(json_build_object('a', name, 'b', (SELECT json_agg(json_build_object('id', o.id)) FROM orders o))) FROM customers",
    /json_agg/,
  ],
  ['a collection and a list', "SELECT array_agg(name) @> ARRAY['a', 'b'] FROM customers", /@>/],
  ['LIKE with a constant', "SELECT 1 FROM customers WHERE name LIKE 'A%'", /"name" OPERATOR\("pg_catalog"\.~~\) 'A%'/],
  [
    'LIKE with another column',
    "SELECT 1 FROM customers a, customers b WHERE a.name LIKE '%' || b.name || '%'",
    /CASE WHEN .*"substring"\("t1"\."name", 1, CAST\("pg_catalog"\."concat"\(.* ELSE "t1"\."name" END OPERATOR\("pg_catalog"\.~~\)/,
  ],
  [
    'LIKE ANY',
    "SELECT 1 FROM customers WHERE name LIKE ANY (ARRAY['A%', name])",
    /ELSE "t1"\."name" END OPERATOR\("pg_catalog"\.~~\) ANY/,
  ],
  ['a search for a constant', "SELECT strpos(name, 'x') FROM customers", /"strpos"\("t1"\."name", 'x'\)/],
  [
    'an empty list of documents',
    'SELECT ARRAY[]::jsonb[] FROM customers',
    /^SELECT CAST\(ARRAY\[\] AS "pg_catalog"\."jsonb"\[\]\)/,
  ],
  ['normalize of a column', 'SELECT normalize(name) FROM customers', /> *\) 4096\) THEN/],
  ['stored texts that are concatenated', "SELECT string_agg(name || ': ' || id, E'\\n') FROM customers", /string_agg/],
]
for (const [name, sql, expected] of PASSES) {
  test(`passes: ${name}`, async () => {
    assert.match(say(await guard.judge(sql, shop())), expected)
  })
}

test('a CASE with a thousand branches is allowed', async () => {
  for (const count of [500, 1_000]) {
    const arms = Array.from({ length: count }, (_, n) => `WHEN id = ${n} THEN name || '${n}'`).join(' ')
    assert.match(say(await guard.judge(`SELECT CASE ${arms} END FROM customers`, shop())), /^SELECT CASE/)
  }
})

test('the printed text of nested JSON_ARRAYAGG grows with the depth, and does not double', async () => {
  const printed = async (depth: number): Promise<number> => {
    const sql = again(depth, "''", (x) => `(SELECT JSON_ARRAYAGG(JSON_OBJECT('a': ${x})) FROM customers)`)
    return say(await guard.judge(`SELECT ${sql}`, shop())).length
  }
  const [four, eight] = [await printed(4), await printed(8)]
  assert.ok(eight < 2.5 * four, `${four} and ${eight} characters`)
})

const columns = (count: number, of: (at: number) => string, from = ''): string =>
  `SELECT ${Array.from({ length: count }, (_, at) => of(at)).join(', ')} ${from}`
const collected = 'FROM (SELECT jsonb_agg(g) j FROM generate_series(1, 100000) g) q'

const LONG_TEXT = `concat(${Array.from({ length: 60 }, () => "repeat('x', 10000)").join(', ')})`

/** Returns the limits of one kind that the printed text contains, smallest first. */
async function limits(sql: string, what: string): Promise<number[]> {
  const text = say(await guard.judge(sql, shop()))
  const found = new Set(
    Array.from(text.matchAll(/vitrine bound: (\d+) ([a-zA-Z_]+)/g), (match) => `${match[1]} ${match[2]}`),
  )
  return [...found]
    .flatMap((each) => (each.endsWith(` ${what}`) ? [Number.parseInt(each, 10)] : []))
    .toSorted((a, b) => a - b)
}

/** Returns the longest value of the column of which the query makes most copies, if the others are empty. */
async function longest(sql: string): Promise<number | undefined> {
  const text = say(await guard.judge(sql, shop()))
  const [limit] = await limits(sql, 'stored_value')
  return limit === undefined ? undefined : Math.floor(limit / Math.max(...copiesIn(text)))
}

/** Returns the copies of columns in a printed text, smallest first. */
function copiesIn(text: string): number[] {
  const found = text.matchAll(/"int8"\) OPERATOR\("pg_catalog"\.\*\) (\d+)\)/g)
  return [...new Set(Array.from(found, ([, count]) => Number(count)))].toSorted((a, b) => a - b)
}

test('what all expressions of a row make from constants is bounded', async () => {
  const chain = Array.from({ length: 380 }, () => "repeat('aaaa', 10000)").join(' || ')
  for (const sql of [
    `SELECT length(name || ${chain}) FROM customers`,
    `SELECT length(${chain})`,
    columns(400, (at) => `length(x || ${at})`, `FROM (SELECT ${LONG_TEXT} AS x OFFSET 0) q`),
    columns(60, (at) => `sign(div(1e131000::numeric + 7, 3e60000 + ${at}))`),
    columns(
      60,
      (at) => `sign(div(power(id + 9::numeric, 130000), power(id + 9::numeric, 60000) + ${at}))`,
      'FROM orders',
    ),
    columns(60, (at) => `sign(sqrt(1e131000::numeric + ${at}))`),
  ]) {
    assert.equal(say(await guard.judge(sql, shop())), 'limit: size', sql.slice(0, 100))
  }
})

const each = (count: number, of: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => of(at)).join(' OR ')
const same = (column: string): string => each(300, (at) => `${column} = '${at}'`)

const STORED_LIMITS: readonly (readonly [string, string, number | undefined])[] = [
  ['two calls', 'SELECT upper(name), lower(name) FROM customers', undefined],
  ['some calls', 'SELECT upper(name), lower(name), length(name) FROM customers', 14_913_080],
  ['columns that are sent', 'SELECT * FROM customers', undefined],
  ['calls on numbers', columns(300, (at) => `round(total / ${at + 1} * 100, 2)`, 'FROM orders'), undefined],
  // Each md5() reads a value that || makes from a decompressed copy.
  ['copies', columns(1_000, (at) => `md5(name || ${at})`, 'FROM customers'), 67_108],
  ['reads', columns(1_000, () => 'length(name)', 'FROM customers'), 134_217],
  [
    'reads of a computed column',
    columns(1_000, () => 'length(x)', 'FROM (SELECT lower(name) AS x FROM customers) q'),
    44_739,
  ],
  [
    'reads of a computed column that is kept',
    `WITH q AS MATERIALIZED (SELECT lower(name) AS x FROM customers) ${columns(1_000, () => 'length(x)', 'FROM q')}`,
    133_816,
  ],
  [
    'one branch of CASE',
    `SELECT length(CASE ${Array.from({ length: 300 }, (_, at) => `WHEN id = ${at} THEN name || ${at}`).join(' ')} END) FROM customers`,
    undefined,
  ],
  ['a column that is sent often', columns(100, () => 'name', 'FROM customers'), 671_088],
  [
    'fields of a document, which are parts of it',
    columns(100, (at) => `upper(meta->>'k${at}')`, 'FROM orders'),
    645_277,
  ],
  [
    'all levels of a document',
    columns(10, () => "jsonb_array_length(jsonb_path_query_array(meta, '$.**'))", 'FROM orders'),
    516_222,
  ],
  ['one field of a document', columns(100, () => "upper(meta->>'k')", 'FROM orders'), 134_217],
  ['patterns', columns(100, (at) => `name LIKE '%word ${100 + at}'`, 'FROM customers'), 671_088],
  [
    'patterns from the start of the text',
    columns(30, (at) => `name LIKE 'the word number ${at}%'`, 'FROM customers'),
    4_473_924,
  ],
  [
    'searches for constants',
    columns(100, (at) => `strpos(name, 'word number ${100 + at}')`, 'FROM customers'),
    357_913,
  ],
  ['slow functions', columns(20, () => "to_tsvector('simple', name)", 'FROM customers'), 1_073_741],
  ['a column that is passed on', columns(1_000, () => "length(coalesce(name, 'x'))", 'FROM customers'), 134_217],
  [
    'a column of UNION in a condition',
    `SELECT 1 FROM (SELECT lower(name) AS x FROM customers UNION ALL SELECT upper(name) FROM customers) q WHERE ${same('x')}`,
    223_696,
  ],
  [
    'a column of VALUES in a condition',
    `SELECT 1 FROM customers, LATERAL (VALUES (lower(name))) v(x) WHERE ${same('x')}`,
    217_532,
  ],
  [
    'a column of USING in a condition',
    `SELECT 1 FROM (SELECT lower(name) AS x FROM customers) q LEFT JOIN (SELECT name AS x FROM customers) r USING (x) WHERE ${same('x')}`,
    108_766,
  ],
  [
    'a grouped column in a condition',
    `SELECT 1 FROM (SELECT lower(name) AS x FROM customers GROUP BY 1) q WHERE ${same('x')}`,
    216_480,
  ],
  [
    'an aggregate in a condition, which is computed once',
    `SELECT 1 FROM (SELECT country, max(name) AS x FROM customers GROUP BY 1) q WHERE ${same('x')}`,
    undefined,
  ],
  [
    'texts that are checked for unique keys',
    `SELECT 1 FROM customers WHERE ${each(100, (at) => `(name IS JSON WITH UNIQUE KEYS) = (id = ${at})`)}`,
    55_924,
  ],
  ['numbers, which are no copies', columns(1_000, (at) => `amount * ${at} + id - total`, 'FROM orders'), undefined],
  ['whole rows', columns(1_000, () => 'q IS NULL', 'FROM (SELECT name FROM customers OFFSET 0) q'), 134_217],
  [
    'slices',
    columns(300, (at) => `cardinality(q.x[1:${at}])`, 'FROM (SELECT ARRAY[name] AS x FROM customers OFFSET 0) q'),
    222_953,
  ],
  [
    'sub-selects',
    columns(90, () => 'length((SELECT q.x OFFSET 0))', 'FROM (SELECT name AS x FROM customers OFFSET 0) q'),
    1_491_308,
  ],
  [
    'BETWEEN, which computes its left side twice',
    `SELECT 1 FROM customers WHERE ${each(200, () => 'lower(name) BETWEEN name AND country')}`,
    134_217,
  ],
  [
    'IN of columns, which computes its left side for each',
    `SELECT 1 FROM customers WHERE ${each(100, () => 'lower(name) IN (name, country)')}`,
    191_739,
  ],
  [
    'rows of grouping sets, which are no values',
    `SELECT count(*) FROM customers GROUP BY GROUPING SETS (${Array.from({ length: 40 }, () => '(name, country)').join(', ')})`,
    undefined,
  ],
]

for (const [name, sql, expected] of STORED_LIMITS) {
  test(`the length of stored values is limited by what the query makes of them: ${name}`, async () => {
    assert.equal(await longest(sql), expected)
  })
}

test('the rows that a query collects are limited by the copies of them that it makes', async () => {
  assert.deepEqual(await limits(`SELECT (j || '1')::text IS NULL ${collected}`, 'jsonb_agg'), [67_108_864])
  assert.deepEqual(
    await limits(
      columns(300, (at) => `length((j || '${at}')::text)`, collected),
      'jsonb_agg',
    ),
    [223_696],
  )
  // Different lists are together no larger than what the query collects. Each is measured, which copies it once more.
  const lists = columns(40, (at) => `upper(string_agg(name, ',') FILTER (WHERE id = ${at}))`, 'FROM customers')
  assert.deepEqual(await limits(lists, 'string_agg'), [134_217_728])
})

/** A text of so many bytes, as another type. */
const madeAs = (type: string, unit: string, bytes: number, first = '', last = ''): string =>
  `(SELECT x::${type} AS x FROM (SELECT '${first}' || x || '${last}' AS x FROM ${made(unit, bytes)}) p OFFSET 0) q`
const given = (type: string): string => `(SELECT $1::${type} AS x OFFSET 0) q`
const CONTROL = `(SELECT to_jsonb(x) AS x FROM ${made('\u0001', 400_000)} OFFSET 0) q`
const INTEGERS = madeAs('int4[]', '1,', 200_000, '{', '1}')
const POINTS = madeAs('point[]', '"1,1",', 40_000, '{', '"1,1"}')

/** A value, the row that has it, and how often the value takes more than 500 MB. */
const KEEPS: readonly (readonly [string, string, number])[] = [
  ['x::text', CONTROL, 101],
  ['ROW(x)::text', CONTROL, 101],
  ["x || ''::text", CONTROL, 101],
  ["x #>> '{}'", CONTROL, 101],
  ["'b' = ANY (x)", madeAs('varchar[]', 'a,', 750_000, '{', 'a}'), 170],
  ['2.5 = ANY (x)', INTEGERS, 76],
  ["x = '{}'::numeric[]", INTEGERS, 76],
  ["CASE x WHEN '{}'::numeric[] THEN 1 END", INTEGERS, 76],
  ["x IN (SELECT '{}'::numeric[])", INTEGERS, 76],
  ["COALESCE(x, '{}'::numeric[])", INTEGERS, 76],
  ["GREATEST(x, '{}'::numeric[])", INTEGERS, 76],
  ["NULLIF(x, '{}'::numeric[])", INTEGERS, 76],
  ["x || '{1}'::numeric[]", INTEGERS, 76],
  ["(SELECT count(*) FROM (SELECT x UNION ALL SELECT '{}'::numeric[]) z)", INTEGERS, 76],
  ["(SELECT count(*) FROM (VALUES (x), ('{}'::numeric[])) z)", INTEGERS, 76],
  ["x = 'a'::text", madeAs('bpchar', 'a', 900_000), 560],
  ["translate(x, '', '')", madeAs('bpchar', 'a', 900_000), 220],
  ["regexp_split_to_array(x, '')", made('a ', 240_000), 48],
  ["regexp_split_to_array(x, '')", given('text'), 200],
  ['x::text', madeAs('varbit', 'F', 900_000, 'X'), 70],
  ['x::varbit::text', given('text'), 1_000],
  ['x::text[]', POINTS, 80],
  ["array_to_string(x, ',')", POINTS, 80],
  ["array_to_string(x, ',')", given('point[]'), 140],
  ['to_jsonb(x)', POINTS, 80],
  ['2.5 = ANY (x)', given('int4[]'), 600],
  ["jsonb_path_query_array(x, '$[*].keyvalue()')", given('jsonb'), 260],
  ["jsonb_path_query_array(x, '$[*]')", given('jsonb'), 160],
  ['x || x', given('jsonb'), 170],
  ["x - 'z'", given('jsonb'), 370],
  ["jsonb_set(x, '{0}', '1')", given('jsonb'), 370],
  ['to_jsonb(x)', given('text[]'), 270],
  ['x::interval[]', given('text'), 1_000],
  ['jsonb_build_array(VARIADIC x)', "(SELECT array_fill(''::text, ARRAY[10000]) AS x OFFSET 0) q", 700],
]

for (const [value, from, count] of KEEPS) {
  test(`what PostgreSQL keeps for a value counts, whoever makes it long: ${value} of ${from}`, async () => {
    const params = from.includes('$1') ? { params: ['a'.repeat(60_000)] } : {}
    const judged = async (count: number): Promise<string> =>
      say(
        await guard.judge(
          columns(count, () => `(${value}) IS NULL`, `FROM ${from}`),
          shop(),
          params,
        ),
      )
    assert.match(await judged(1), /^SELECT/)
    assert.equal(await judged(count), 'limit: size')
  })
}

test('a path with keyvalue() over stored documents limits their length, and other paths do not', async () => {
  const path = (path: string): string => `SELECT jsonb_path_query_array(meta, '${path}') FROM orders`
  assert.equal(await longest(path('$[*].keyvalue()')), 798_915)
  assert.equal(await longest(path('$[*].a')), undefined)
})

test('a text and what is put into it are limited together', async () => {
  const judged = async (sql: string): Promise<string> => say(await guard.judge(sql, shop(), { params: ['a', 'b'] }))
  for (const [name, sql] of [
    ['replace', "SELECT replace($1, 'a', $2)"],
    ['regexp_replace', "SELECT regexp_replace($1, 'a', $2, 'g')"],
    ['concat_ws', 'SELECT concat_ws($2, VARIADIC $1::text[])'],
  ] as const) {
    assert.match(await judged(sql), new RegExp(`${name}.*33554432`), sql)
  }
  assert.doesNotMatch(await judged("SELECT replace($1, $2, '-')"), /33554432/)
})

const TWO_TEXTS = "FROM (SELECT string_agg(name, '') x, string_agg(upper(name), '') y FROM customers) q"

const READS: readonly (readonly [string, string, number])[] = [
  ['a few lengths', columns(2, (at) => `length(x) + ${at}`, TWO_TEXTS), 268_435_456],
  ['lengths', columns(20, (at) => `length(x) + ${at}`, TWO_TEXTS), 26_843_545],
  ['lengths of CASE', columns(20, () => 'char_length(CASE WHEN x IS NULL THEN x ELSE x END)', TWO_TEXTS), 26_843_545],
  ['constants that are compared', columns(90, (at) => `x = '${at}'`, TWO_TEXTS), 268_435_456],
  ['texts that are compared', columns(20, () => 'x <> y', TWO_TEXTS), 53_687_091],
  ['CASE of a text', `SELECT CASE x ${'WHEN y THEN 1 '.repeat(20)} END ${TWO_TEXTS}`, 53_687_091],
  ['bytes', columns(90, (at) => `octet_length(x) + ${at}`, TWO_TEXTS), 268_435_456],
]

for (const [name, sql, expected] of READS) {
  test(`the length of collected values is limited by the calls that read all of it: ${name}`, async () => {
    assert.deepEqual(await limits(sql, 'string_agg'), [expected])
  })
}

test('a list of collected values that ANY searches often is limited', async () => {
  const lists = columns(20, (at) => `${at} = ANY (t)`, 'FROM (SELECT array_agg(id) t FROM customers) q')
  assert.deepEqual(await limits(lists, 'array_agg'), [2_236_962])
})

test('the calls that take a collected value share a limit', async () => {
  const calls = (count: number): string => columns(count, (at) => `md5(x) = '${at}'`, TWO_TEXTS)
  assert.deepEqual(await limits(calls(64), 'collected_value'), [4_194_304])
  assert.deepEqual(await limits(calls(1_000), 'collected_value'), [268_435])
  const json = columns(80, () => 'json_array_length(x)', 'FROM (SELECT json_agg(id) x FROM customers) q')
  assert.deepEqual(await limits(json, 'collected_value'), [419_430])
  const levels = columns(
    20,
    () => "jsonb_path_query_array(x, '$.**')",
    'FROM (SELECT jsonb_agg(id) x FROM customers) q',
  )
  assert.deepEqual(await limits(levels, 'collected_value'), [1_342_177])
})

test('collected texts have a lower limit if a row compares many of them', async () => {
  const compared = (count: number): string =>
    columns(count, (at) => `x || ${at} < x || 'A'`, "FROM (SELECT string_agg(name, '-') AS x FROM customers) q")
  assert.deepEqual(await limits(compared(1), 'collected_value'), [40_960])
  assert.deepEqual(await limits(compared(16), 'collected_value'), [10_240])
})

const PARAM = 'FROM (SELECT $1 AS x, $2 AS y OFFSET 0) q'
/** Expressions that keep much of a parameter, and so many of them that a long parameter is too much. */
const KEEP_PARAMS: readonly (readonly [string, number])[] = [
  ["($1 || '')::int4multirange", 20],
  ['$1::int4multirange', 20],
  ['x::text::jsonb[]', 5],
  ['x::text::tsvector[]', 5],
  ['x::text::interval[]', 400],
  ["regexp_split_to_array(x, '')", 100],
  ['x::jsonb || x::jsonb', 60],
  ["x::jsonb - 'z'", 60],
  ["jsonb_set(x::jsonb, '{0}', '1')", 60],
  ["jsonb_path_query_array(x::jsonb, '$[*]')", 60],
  ['to_jsonb(x::text[])', 100],
  ["replace($1, 'a', $2)", 1],
  ["regexp_replace($1, 'a', $2, 'g')", 1],
  ['concat_ws($2, VARIADIC $1::text[])', 1],
  ['array_to_string($1::text[], $2)', 1],
  ["'a'::tsvector @@ $1", 16],
]
for (const [value, count] of KEEP_PARAMS) {
  test(`${count} times ${value} of long parameters is refused, and of short ones is not`, async () => {
    const sql = `SELECT ${list(count, () => `${value} IS NULL`)}, $1 IS NULL, $2 IS NULL ${PARAM}`
    const judged = async (bytes: number): Promise<string> =>
      say(await guard.judge(sql, shop(), { params: ['a'.repeat(bytes), 'b'] }))
    assert.equal(await judged(60_000), 'limit: size')
    assert.match(await judged(1_000), /^SELECT/)
    assert.equal(await judged(60_000), 'limit: size')
  })
}

test('a text that a recursion makes has a lower limit if calls keep much of it', async () => {
  const asked = (count: number): string =>
    `WITH RECURSIVE t AS (SELECT 1 AS a, '' AS p UNION ALL SELECT a + 1, p || repeat('a.', 500) FROM t WHERE a < 9) SELECT ${list(count, () => 'parse_ident(p) IS NULL')} FROM t`
  const [one = 0] = await limits(asked(1), 'collected_value')
  const [ten = 0] = await limits(asked(10), 'collected_value')
  assert.equal(one, 4_194_304)
  assert.ok(ten < 700_000)
})

test('a number that is read from a parameter counts as long', async () => {
  const from = "FROM (SELECT div(x::numeric, 7) AS y FROM (SELECT $1 || '' AS x OFFSET 0) p OFFSET 0) q"
  const judged = async (sql: string): Promise<string> => say(await guard.judge(sql, shop(), { params: ['1e65000'] }))
  assert.equal(await judged(columns(400, (at) => `y * y = ${at}`, from)), 'limit: size')
  assert.equal(
    await judged(columns(400, (at) => `y / y = ${at}`, 'FROM (SELECT $1::numeric AS y OFFSET 0) q')),
    'limit: size',
  )
  assert.match(await judged(columns(4, (at) => `y * y = ${at}`, from)), /^SELECT/)
  assert.match(await judged(columns(100, (at) => `total / $1::numeric = ${at}`, 'FROM orders')), /^SELECT/)
})

test('long values from constants are not read often', async () => {
  const from = `FROM (SELECT ${LONG_TEXT} AS x, ${LONG_TEXT} AS y, id FROM customers OFFSET 0) q`
  for (const read of ['length(x)', "md5(x) = 'a'", 'x <> y', "x > 'a'", "x ~ 'a'"]) {
    const asked = (count: number): string => `SELECT count(*) ${from} WHERE ${each(count, () => read)}`
    assert.notEqual(say(await guard.judge(asked(10), shop())), 'limit: size', read)
    assert.equal(say(await guard.judge(asked(1_000), shop())), 'limit: size', read)
  }
})

test('elements of collected arrays can be subtracted, if their type is no collection', async () => {
  const at = (order: string): string => `(array_agg(total ORDER BY id ${order}))[1]`
  for (const sql of [
    `SELECT status, ${at('DESC')} - ${at('')} FROM orders GROUP BY 1`,
    `SELECT x - y FROM (SELECT ${at('')} x, ${at('DESC')} y FROM orders) q`,
    'SELECT t[array_length(t, 1)] - t[1] FROM (SELECT array_agg(total) t FROM orders) q',
    'SELECT u.x - lag(u.x) OVER (ORDER BY u.n) FROM (SELECT array_agg(total) a FROM orders) q, unnest(a) WITH ORDINALITY u(x, n)',
    "SELECT (jsonb_object_agg(id, total) -> '3')::numeric - (jsonb_object_agg(id, total) -> '2')::numeric FROM orders",
  ]) {
    assert.match(say(await guard.judge(sql, shop())), /^SELECT/, sql)
  }
  for (const sql of [
    'SELECT array_agg(id) && array_agg(id) FROM orders',
    'SELECT (array_agg(meta))[1] - array_agg(status)::text[] FROM orders',
    'SELECT (array_agg(meta))[1] @> (array_agg(meta))[2] FROM orders',
  ]) {
    assert.equal(say(await guard.judge(sql, shop())), 'limit: size', sql)
  }
})

test('calls with a bound share it', async () => {
  const searches = (count: number): string => columns(count, (at) => `strpos(name, country || ${at})`, 'FROM customers')
  assert.deepEqual(await limits(searches(4), 'strpos'), [536_870_912])
  assert.deepEqual(await limits(searches(100), 'strpos'), [21_474_836])
  assert.deepEqual(
    await limits(
      columns(16, () => 'normalize(name)', 'FROM customers'),
      'normalize',
    ),
    [4_096],
  )
  assert.deepEqual(
    await limits(
      columns(64, () => 'normalize(name)', 'FROM customers'),
      'normalize',
    ),
    [2_048],
  )
})

test('multiplications of long numbers are refused like divisions', async () => {
  const dense = 'FROM (SELECT div(1e65000::numeric, 7) AS x FROM customers OFFSET 0) q'
  const sql = columns(20, () => 'x * x = 1', dense)
  assert.equal(say(await guard.judge(sql, shop())), 'limit: size')
  const powers = columns(20, (at) => `power(id + 9::numeric, ${130_000 + at}) = 1`, 'FROM customers')
  assert.equal(say(await guard.judge(powers, shop())), 'limit: size')
  const ordinary = columns(
    100,
    (at) => `total * total * power(total, 2) * power(1 + total / 100, ${at % 4})`,
    'FROM orders',
  )
  assert.notEqual(say(await guard.judge(ordinary, shop())), 'limit: size')
})

const NUMBER_OF_A_PARAMETER = '7'
const squares = (number: string, from: string): string => columns(9, (at) => `${number} * ${number} = ${at}`, from)
const RECURSIVE = `WITH RECURSIVE t AS (
  SELECT 1 AS a, 1::numeric AS n, '7' AS s UNION ALL SELECT a + 1, n * div(1e1000, 7), s || '7777777777' FROM t WHERE a < 64)`

for (const [name, sql, ...params] of [
  ['a recursive query multiplies', `${RECURSIVE} ${squares('n', 'FROM t')}`],
  [
    'a recursive query makes as text',
    `${RECURSIVE} ${squares('y', 'FROM (SELECT s::numeric AS y FROM t OFFSET 0) q')}`,
  ],
  [
    'a query collects',
    squares('y', `FROM (SELECT string_agg('7', '')::numeric AS y FROM generate_series(1, 60000)) q`),
  ],
  [
    'a query collects from numbers',
    squares('y', `FROM (SELECT array_to_string(array_agg(id), '')::numeric AS y FROM orders) q`),
  ],
  ['of a document', squares('r.y', 'FROM json_to_record($1) AS r(y numeric)'), `{"y":${NUMBER_OF_A_PARAMETER}}`],
  ['of a list', squares('y', 'FROM unnest($1) AS y'), { type: 'numeric[]', value: '{7}' }],
  ['of an element', squares('x[1]', 'FROM (SELECT $1 AS x OFFSET 0) q'), { type: 'numeric[]', value: '{7}' }],
  ['beside a number in VALUES', squares('y', 'FROM (VALUES (1.5), ($1)) v(y)'), NUMBER_OF_A_PARAMETER],
  ['beside a number in UNION', squares('y', 'FROM (SELECT 1.5 AS y UNION ALL SELECT $1) q'), NUMBER_OF_A_PARAMETER],
  [
    'beside a number in CASE',
    squares('y', 'FROM (SELECT CASE WHEN id = 1 THEN $1 ELSE 1.5 END AS y FROM orders OFFSET 0) q'),
    NUMBER_OF_A_PARAMETER,
  ],
  [
    'beside a number of a window',
    squares('y', 'FROM (SELECT lag(1.5, 1, $1) OVER () AS y FROM orders) q'),
    NUMBER_OF_A_PARAMETER,
  ],
  ['beside a number in ARRAY', squares('(ARRAY[1.5, $1])[2]', ''), NUMBER_OF_A_PARAMETER],
] as const) {
  test(`eight products of two numbers of any length are refused: a number ${name}`, async () => {
    assert.equal(say(await guard.judge(sql, shop(), { params })), 'limit: size')
  })
}

for (const [name, sql, ...params] of [
  ['products of whole numbers', squares('y', 'FROM unnest($1) AS y'), { type: 'int4[]', value: '{7}' }],
  ['products of collected whole numbers', squares('x[1]', 'FROM (SELECT array_agg(id) AS x FROM orders) q')],
  [
    'products of a recursive column',
    `WITH RECURSIVE t AS (SELECT id, id AS root FROM orders UNION ALL SELECT o.id, root FROM orders o JOIN t ON o.customer_id = t.id)
     ${squares('root', 'FROM t')}`,
  ],
  [
    'interest',
    `WITH RECURSIVE t AS (SELECT 1 AS y, 1000.00::numeric AS b UNION ALL SELECT y + 1, round(b * 1.05, 2) FROM t WHERE y < 30)
     SELECT y, b, b / 12, b - lag(b) OVER (ORDER BY y), b / lag(b) OVER (ORDER BY y) FROM t`,
  ],
  [
    "Newton's method",
    `WITH RECURSIVE t AS (SELECT 1 AS i, 1.0::numeric AS x UNION ALL SELECT i + 1, x - (x * x - 2) / (2 * x) FROM t WHERE i < 6)
     SELECT i, x, x * x, round(x * x - 2, 10) FROM t`,
  ],
  [
    'numbers in ARRAY',
    'SELECT width_bucket(total, ARRAY[0, 100, 250, 500, 900]::numeric[]), ARRAY[[1, id], [total, 2.5]]::numeric[] FROM orders',
  ],
] as const) {
  test(`ordinary numbers are answered: ${name}`, async () => {
    assert.match(say(await guard.judge(sql, shop(), { params })), /^(?:SELECT|WITH)/)
  })
}

test('the copies of all columns of a table are limited together, with a share for each table', async () => {
  const keys = (name: string, count: number): string =>
    `(${columns(count, (at) => `md5(${name} || ${at}) AS k${at}`, 'FROM customers')}) AS ${name}`
  const shown = say(
    await guard.judge(
      columns(100, (at) => `md5(country || ${at})`, 'FROM customers').replace('SELECT', 'SELECT name,'),
      shop(),
    ),
  )
  assert.deepEqual(copiesIn(shown), [2, 200])
  assert.match(shown, /\("pg_catalog"\."octet_length"\("name"\), 0\) AS "pg_catalog"\."int8"\)/)
  const joined = `SELECT * FROM ${keys('name', 3)} CROSS JOIN ${keys('country', 300)}`
  assert.deepEqual(await limits(joined, 'stored_value'), [67_108_864, 132_888_839])
})

test('a table without long columns gets no condition', async () => {
  const sql = columns(200, (at) => `to_char(total * ${at}, 'FM999')`, 'FROM orders')
  assert.doesNotMatch(say(await guard.judge(sql, shop())), /stored_value|WHERE/)
})

const LONG = `(SELECT repeat(repeat(repeat('x', 1000), 100), 16) AS x, g FROM generate_series(1, 16) g OFFSET 0) q`
const LONGEST = `(SELECT x || x AS x, g FROM ${LONG} OFFSET 0) q`
const COLLECTED = `(SELECT string_agg(name, '') AS x FROM customers) q`
const windows = (count: number): string => list(count, (at) => `sum(1) OVER (ROWS ${at} PRECEDING)`)
const levels = (count: number, from: string, around: (from: string) => string): string =>
  again(count, from, (inner) => `(${around(inner)} OFFSET 0) q`)

for (const [name, sql] of [
  ['windows', `SELECT length(x), ${windows(60)} FROM ${LONG}`],
  ['DISTINCT', `SELECT count(x) FROM ${levels(30, LONGEST, (from) => `SELECT DISTINCT x, g FROM ${from}`)}`],
  ['GROUP BY', `SELECT count(x) FROM ${levels(30, LONGEST, (from) => `SELECT x, g FROM ${from} GROUP BY x, g`)}`],
  [
    'grouping sets',
    `SELECT ${list(3, (at) => `max(x || ${at})`)} FROM ${LONG} GROUP BY ROLLUP (${list(40, (at) => `g + ${at}`)})`,
  ],
  ['sorts', `SELECT ${list(6, (at) => `x || ${at}`)} FROM ${LONG} ORDER BY g`],
  ['UNION', `SELECT count(x) FROM (${Array<string>(60).fill(`SELECT x FROM ${LONG}`).join(' UNION ')}) r`],
  [
    'aggregates with ORDER BY',
    `SELECT min(${list(6, (at) => `x || ${at}`).replaceAll(', ', ' || ')} ORDER BY g) FROM ${LONG}`,
  ],
  ['arms of UNION ALL', Array<string>(40).fill(`(SELECT x FROM ${LONGEST} ORDER BY g)`).join(' UNION ALL ')],
] as const) {
  test(`a query is refused if steps of its plan keep too many long rows: ${name}`, async () => {
    assert.equal(say(await guard.judge(sql, shop())), 'limit: size')
  })
}

const BY_CUSTOMER = `WITH g AS (
  SELECT customer_id, string_agg(status, ',' ORDER BY id) x, max(id) m FROM orders GROUP BY 1)`
const BY_ID = 'FROM customers c JOIN g ON g.customer_id = c.id'

/** The limit of all collected rows, and the limit of each collected value if it has its own. */
const KEPT: readonly (readonly [string, string, number, number?])[] = [
  ['none', `SELECT length(x) FROM ${COLLECTED}`, 268_435_456],
  ['a sort of groups', `SELECT id, string_agg(name, '') AS x FROM customers GROUP BY id ORDER BY id`, 76_695_844],
  ['windows', `SELECT length(x), ${windows(6)} FROM ${COLLECTED}`, 268_435_456, 14_128_181],
  [
    'DISTINCT',
    `SELECT count(x) FROM ${levels(6, COLLECTED, (from) => `SELECT DISTINCT x FROM ${from}`)}`,
    44_739_242,
    40_960,
  ],
  [
    'readers of a WITH',
    `WITH q AS MATERIALIZED (SELECT x FROM ${COLLECTED}) SELECT 1 FROM q a, q b, q c, q d`,
    268_435_456,
    3_677_198,
  ],
  ['a sort of joined rows', `SELECT x FROM ${COLLECTED}, customers ORDER BY id`, 268_435_456, 14_913_080],
  ['a join by the key', `${BY_CUSTOMER} SELECT c.name, x ${BY_ID} ORDER BY c.name`, 134_217_728, 12_782_640],
  [
    'groups of a join',
    `${BY_CUSTOMER} SELECT c.country, count(*) ${BY_ID} WHERE x <> 'paid' GROUP BY 1`,
    134_217_728,
    11_184_810,
  ],
  [
    'windows over a join',
    `${BY_CUSTOMER} SELECT x, rank() OVER (PARTITION BY c.country ORDER BY m) ${BY_ID}`,
    134_217_728,
    6_100_805,
  ],
  ['groups of a WITH', `${BY_CUSTOMER} SELECT x, count(*) FROM g GROUP BY 1`, 89_478_485, 26_843_545],
  ['windows that collect', `SELECT string_agg(status, ',') OVER (), ${windows(6)} FROM orders`, 13_421_772],
]

for (const [name, sql, all, each] of KEPT) {
  test(`collected values have limits if steps of the plan keep several copies of them: ${name}`, async () => {
    assert.deepEqual(await limits(sql, 'string_agg'), [all])
    assert.deepEqual(await limits(sql, 'collected_value'), each === undefined ? [] : [each])
  })
}
