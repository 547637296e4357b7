// Compares the text that the guard prints for a query, or the name of its refusal, with the expected one.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { catalog, shop, table, type } from '../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

/** Name, SQL, and the printed text or `kind: name`. */
type Row = readonly [string, string, string]

function each(title: string, rows: readonly Row[], exposed = shop()): void {
  for (const [name, sql, expected] of rows) {
    test(`${title}: ${name}`, async () => {
      const verdict = await guard.judge(sql, exposed)
      const said = say(verdict)
      if (verdict.kind === 'denied') assert.match(verdict.hint, /^\S.*[.\d]$/s)
      if (verdict.kind === 'malformed') assert.equal(typeof verdict.position, 'number')
      assert.equal(said.replace(/ LIMIT 1001$/, ''), expected)
      assert.deepEqual(guard.reported, [])
    })
  }
}

const customers = (columns: string, alias = 't1'): string =>
  `(SELECT ${columns
    .split(', ')
    .map((name) => `"${name}"`)
    .join(', ')} FROM "public"."customers" AS "t0") AS "${alias}" (${columns
    .split(', ')
    .map((name) => `"${name}"`)
    .join(', ')})`

each('the printed query reads only what is exposed', [
  ['a constant needs no table', "SELECT 'x'", `SELECT 'x' AS "?column?"`],
  [
    'a table becomes a sub-select of the columns that are read',
    'SELECT id, name FROM customers WHERE country = $$DE$$',
    `SELECT "t1"."id" AS "id", "t1"."name" AS "name" FROM ${customers('id, name, country')} WHERE ("t1"."country" OPERATOR("pg_catalog".=) 'DE')`,
  ],
  [
    '* expands to the exposed columns',
    'SELECT * FROM customers',
    `SELECT "t1"."id" AS "id", "t1"."name" AS "name", "t1"."country" AS "country", "t1"."created_at" AS "created_at" FROM ${customers('id, name, country, created_at')}`,
  ],
  [
    'count(*) reads no column at all',
    'SELECT count(*) FROM customers',
    'SELECT "pg_catalog"."count"(*) AS "count" FROM (SELECT FROM "public"."customers" AS "t0") AS "t1"',
  ],
  [
    'an exposed table takes precedence over a table of pg_catalog with the same name',
    'SELECT label FROM pg_class',
    'SELECT "t1"."label" AS "label" FROM (SELECT "label" FROM "public"."pg_class" AS "t0") AS "t1" ("label")',
  ],
  [
    'names are quoted, whatever they contain',
    'SELECT "Id", "select", "a.b", "Col""umn" FROM "Weird Table"',
    'SELECT "t1"."Id" AS "Id", "t1"."select" AS "select", "t1"."a.b" AS "a.b", "t1"."Col""umn" AS "Col""umn" FROM (SELECT "Id", "Col""umn", "select", "a.b" FROM "public"."Weird Table" AS "t0") AS "t1" ("Id", "Col""umn", "select", "a.b")',
  ],
  [
    'ONLY is kept',
    'SELECT id FROM ONLY customers',
    'SELECT "t1"."id" AS "id" FROM (SELECT "id" FROM ONLY "public"."customers" AS "t0") AS "t1" ("id")',
  ],
  [
    'TABLESAMPLE is printed inside the sub-select',
    'SELECT id FROM customers TABLESAMPLE system (5) REPEATABLE (1)',
    'SELECT "t1"."id" AS "id" FROM (SELECT "id" FROM "public"."customers" AS "t0" TABLESAMPLE "pg_catalog"."system" (5) REPEATABLE (1)) AS "t1" ("id")',
  ],
  [
    'a query may name its own database',
    'SELECT shop.public.customers.id FROM shop.public.customers',
    `SELECT "t1"."id" AS "id" FROM ${customers('id')}`,
  ],
])

each(
  'a column may be named like a function or a generated alias',
  [
    [
      'no column is qualified, because a dropped column would become a call on the whole row',
      'SELECT max FROM odd',
      'SELECT "_t1"."max" AS "max" FROM (SELECT "max" FROM "public"."odd" AS "_t0") AS "_t1" ("max")',
    ],
    [
      'a column that looks like a generated alias changes the generated aliases',
      'SELECT t1 FROM odd',
      'SELECT "_t1"."t1" AS "t1" FROM (SELECT "t1" FROM "public"."odd" AS "_t0") AS "_t1" ("t1")',
    ],
    [
      'a word of the query that looks like a generated alias changes the generated aliases too',
      'SELECT __c7.n FROM odd __c7',
      'SELECT "___t1"."n" AS "n" FROM (SELECT "n" FROM "public"."odd" AS "___t0") AS "___t1" ("n")',
    ],
  ],
  catalog([table('odd', ['max int4', 't1 int4', 'n int4'])]),
)

each('a dot reads a field of a known row, and never calls a function', [
  [
    'f.pg_read_file, where f is a function in FROM',
    "SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) AS f",
    'column: f.pg_read_file',
  ],
  [
    'f.pg_read_file, while another FROM item has a column of this name',
    "SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) f, (SELECT 1 AS pg_read_file) g",
    'column: f.pg_read_file',
  ],
  [
    'f.pg_read_file in a sub-select',
    "SELECT (SELECT f.pg_read_file FROM (SELECT 1) g) FROM unnest(ARRAY['/etc/passwd']) f",
    'column: f.pg_read_file',
  ],
  [
    'an alias list may name a column pg_read_file',
    "SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) f(pg_read_file)",
    `SELECT "t1"."pg_read_file" AS "pg_read_file" FROM "pg_catalog"."unnest"(ARRAY['/etc/passwd']) AS "t1" ("pg_read_file")`,
  ],
  ['(x).function', "SELECT ('work_mem').current_setting", 'column: current_setting'],
  ['(x).pg_sleep', 'SELECT (0.01::float8).pg_sleep', 'column: pg_sleep'],
  ['(x).type, which PostgreSQL reads as a cast', "SELECT ('pg_authid').regclass", 'column: regclass'],
  [
    'f.type, which PostgreSQL reads as a cast',
    "SELECT f.regclass FROM unnest(ARRAY['pg_authid']) f",
    'column: f.regclass',
  ],
  ['c.text, which PostgreSQL reads as a cast', 'SELECT c.text FROM customers c', 'column: c.text'],
  ['a function applied to a row by a dot', 'SELECT (c).customer_secret FROM customers c', 'column: customer_secret'],
  ['a function applied to (c.*) by a dot', 'SELECT (c.*).customer_secret FROM customers c', 'column: customer_secret'],
  ['a column called as a function of the row', 'SELECT ssn(c) FROM customers c', 'function: ssn'],
  ['(c).id is c.id', 'SELECT (c).id FROM customers c', `SELECT "t1"."id" AS "id" FROM ${customers('id')}`],
  [
    'a field of a row that a sub-select returns',
    'SELECT (x.c).name FROM (SELECT c FROM (SELECT id, name FROM customers) c) x',
    `SELECT ("t3"."c")."name" AS "name" FROM (SELECT "t2" AS "c" FROM (SELECT "t1"."id" AS "id", "t1"."name" AS "name" FROM ${customers('id, name')}) AS "t2" ("id", "name")) AS "t3" ("c")`,
  ],
  [
    'a hidden field of a row that a sub-select returns',
    'SELECT (x.c).ssn FROM (SELECT c FROM customers c) x',
    'column: ssn',
  ],
  [
    'fields of a function with named columns',
    `SELECT (jsonb_each(meta)).key FROM orders`,
    `SELECT ("pg_catalog"."jsonb_each"("t1"."meta"))."key" AS "key" FROM (SELECT "meta" FROM "public"."orders" AS "t0") AS "t1" ("meta")`,
  ],
  ['a field of a function without named columns', "SELECT (to_jsonb('x')).text", 'column: text'],
  ['a system column', 'SELECT ctid FROM customers', 'column: ctid'],
  ['a system column of a row', 'SELECT c.tableoid FROM customers c', 'column: c.tableoid'],
])

each('each name means what it means in PostgreSQL', [
  ['a caller cannot use the generated alias inside a sub-select', 'SELECT t0.ssn FROM customers', 'column: t0.ssn'],
  ['a caller cannot use the generated alias of a sub-select', 'SELECT t1.id FROM customers', 'column: t1.id'],
  ['a caller cannot read a generated alias as a row', 'SELECT to_jsonb(t0) FROM customers', 'column: t0'],
  [
    'a WITH query with a table’s name reads the table, and shows its exposed columns',
    'WITH customers AS (SELECT * FROM customers) SELECT ssn FROM customers',
    'column: ssn',
  ],
  ['a WITH query does not see itself', 'WITH secrets AS (SELECT token FROM secrets) SELECT 1', 'table: secrets'],
  [
    'a WITH RECURSIVE query sees itself',
    'WITH RECURSIVE secrets AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM secrets WHERE n < 3) SELECT n FROM secrets',
    'WITH RECURSIVE "c1" ("n") AS ((SELECT 1 AS "n") UNION ALL (SELECT ("t2"."n" OPERATOR("pg_catalog".+) 1) AS "?column?" FROM "c1" AS "t2" ("n") WHERE ("t2"."n" OPERATOR("pg_catalog".<) 3))) SELECT "t3"."n" AS "n" FROM "c1" AS "t3" ("n")',
  ],
  ['a WITH query sees only earlier WITH queries', 'WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT 1', 'table: b'],
  [
    'a WITH query is not visible outside its sub-select',
    'SELECT * FROM (WITH secrets AS (SELECT 2 z) TABLE secrets) q, secrets',
    'table: secrets',
  ],
  [
    'a name with a schema never refers to a WITH query',
    'WITH a AS (SELECT 1) SELECT * FROM public.a',
    'table: public.a',
  ],
  [
    'an alias hides the table’s name',
    'SELECT customers.id FROM orders AS customers, public.customers c WHERE customers.name = 1',
    'column: customers.name',
  ],
  [
    'a sub-select without LATERAL does not see its neighbour',
    'SELECT 1 FROM customers c, (SELECT c.id) x',
    'column: c.id',
  ],
  ['JOIN USING a hidden column', 'SELECT 1 FROM customers JOIN customers c USING (ssn)', 'column: ssn'],
  ['two tables with the same name', 'SELECT 1 FROM customers, customers', 'table: customers'],
  ['an unqualified column that two tables have', 'SELECT id FROM customers, orders', 'column: id'],
  ['another database', 'SELECT 1 FROM other.public.customers', 'table: other.public.customers'],
  ['a schema that is not the exposed one', 'SELECT 1 FROM private.orders', 'table: private.orders'],
  ['a name written with U&', 'SELECT U&"\\0071uery_to_xml"(1)', 'function: query_to_xml'],
  ['quotes preserve the case of a name', 'SELECT 1 FROM "Customers"', 'table: Customers'],
])

each('a column of a row is refused if PostgreSQL does not know the row', [
  ['a sub-query', 'SELECT ((SELECT c FROM customers c LIMIT 1)).name', 'column: name'],
  ['all columns of a sub-query', 'SELECT ((SELECT customers FROM customers LIMIT 1)).*', 'column: id'],
  ['an output of a sub-query', 'SELECT (q.r).name FROM (SELECT (SELECT c FROM customers c) AS r) q', 'column: name'],
  ['CASE', 'SELECT (CASE WHEN id = 1 THEN c END).name FROM customers c', 'column: name'],
  ['an element', 'SELECT ((array_agg(c))[1]).name FROM customers c', 'column: name'],
  ['an element of ARRAY', 'SELECT (ARRAY(SELECT c FROM customers c))[1].name', 'column: name'],
  ['a window', 'SELECT (lag(c) OVER ()).name FROM customers c', 'column: name'],
  ['unnest', 'SELECT (unnest(array_agg(c))).name FROM customers c', 'column: name'],
])

for (const sql of [
  'SELECT (q.r).name FROM (SELECT c AS r FROM customers c LIMIT 2) q',
  'WITH q AS (SELECT c AS r FROM customers c) SELECT (q.r).* FROM q',
  'SELECT (ROW(1, 2)).f1',
  "SELECT (json_each('{}')).key",
  "SELECT (unnest(to_tsvector('simple', name))).lexeme FROM customers",
]) {
  test(`a column of a row that PostgreSQL knows is read: ${sql}`, async () => {
    assert.equal((await guard.judge(sql, shop())).kind, 'confined')
  })
}

test('NATURAL JOIN joins on the exposed columns that both sides have', async () => {
  const exposed = catalog([table('a', ['id int4', 'x int4']), table('b', ['id int4', 'y int4'])])
  const { text } = await guard.confined('SELECT * FROM a NATURAL JOIN b', exposed)
  assert.match(text, /JOIN .* USING \("id"\) AS "t3"\)/)
  const hidden = catalog([table('a', ['x int4']), table('b', ['id int4', 'y int4'])])
  assert.match((await guard.confined('SELECT * FROM a NATURAL JOIN b', hidden)).text, /CROSS JOIN/)
  assert.match((await guard.confined('SELECT * FROM a NATURAL LEFT JOIN b', hidden)).text, /LEFT JOIN .* ON TRUE/)
})

describe('a query cannot read a hidden table', () => {
  const slots: readonly string[] = [
    'SELECT # ',
    'SELECT 1 ORDER BY #',
    'SELECT 1 LIMIT #',
    'SELECT 1 OFFSET #',
    'SELECT 1 FETCH FIRST # ROWS ONLY',
    'SELECT count(*) FILTER (WHERE #)',
    'SELECT count(*) OVER (PARTITION BY #)',
    'SELECT count(*) OVER (ORDER BY #)',
    'SELECT count(*) OVER (ROWS # PRECEDING)',
    'SELECT count(*) OVER (ORDER BY 1 ROWS BETWEEN CURRENT ROW AND # FOLLOWING)',
    'SELECT count(*) OVER w WINDOW w AS (PARTITION BY #)',
    'SELECT DISTINCT ON (#) 1',
    'SELECT 1 FROM customers GROUP BY #',
    'SELECT 1 FROM customers GROUP BY GROUPING SETS ((#), ())',
    'SELECT 1 FROM customers GROUP BY ROLLUP (#)',
    'SELECT grouping(#) FROM customers GROUP BY 1',
    'SELECT 1 FROM customers HAVING #',
    'VALUES (1), (#)',
    "SELECT ('{1}'::int[])[#]",
    "SELECT ('{1}'::int[])[1:#]",
    "SELECT ('{1}'::int[])[#:]",
    'SELECT 1 FROM customers TABLESAMPLE system (#)',
    'SELECT 1 FROM customers TABLESAMPLE system (1) REPEATABLE (#)',
    'SELECT percentile_cont(#) WITHIN GROUP (ORDER BY 1)',
    'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY #)',
    "SELECT string_agg('a', 'b' ORDER BY #)",
    'SELECT string_agg(#, 1)',
    'SELECT concat(VARIADIC #)',
    'SELECT make_interval(days => #)',
    'SELECT CASE # WHEN 1 THEN 2 END',
    'SELECT CASE WHEN # THEN 2 END',
    'SELECT CASE WHEN 1 = 1 THEN # END',
    'SELECT CASE WHEN 1 = 1 THEN 2 ELSE # END',
    'SELECT COALESCE(1, #)',
    'SELECT GREATEST(1, #)',
    'SELECT NULLIF(1, #)',
    'SELECT ROW(1, #)',
    'SELECT ARRAY[1, #]',
    'SELECT 1 IN (2, #)',
    'SELECT # IN (2)',
    'SELECT 1 BETWEEN 0 AND #',
    'SELECT 1 = ANY (#)',
    'SELECT 1 IS DISTINCT FROM #',
    'SELECT # IS NULL',
    'SELECT # IS TRUE',
    'SELECT NOT #',
    'SELECT true AND #',
    'SELECT - #',
    'SELECT #::text',
    'SELECT # COLLATE "C"',
    'SELECT # LIKE 1',
    "SELECT 'a' LIKE 'b' ESCAPE #",
    "SELECT 'a' SIMILAR TO #",
    "SELECT # AT TIME ZONE 'UTC'",
    'SELECT EXTRACT(year FROM #)',
    'SELECT # IS NORMALIZED',
    'SELECT (#, 1) OVERLAPS (1, 1)',
    'SELECT 1 FROM generate_series(1, #)',
    'SELECT 1 FROM ROWS FROM (generate_series(1, 2), generate_series(1, #))',
    'SELECT 1 FROM unnest(ARRAY[1], #)',
    'SELECT 1 FROM customers JOIN orders ON #',
    'SELECT 1 FROM customers WHERE #',
    'SELECT JSON_OBJECT(1: #)',
    'SELECT JSON_OBJECT(#: 1)',
    'SELECT JSON_ARRAY(1, #)',
    'SELECT JSON_ARRAYAGG(#)',
    'SELECT JSON_ARRAYAGG(1 ORDER BY #)',
    'SELECT JSON_OBJECTAGG(1: #)',
    'SELECT JSON_OBJECTAGG(1: 2) FILTER (WHERE #)',
    'SELECT # IS JSON',
    'SELECT JSON(#)',
    'SELECT JSON_SCALAR(#)',
    'SELECT JSON_SERIALIZE(#)',
    "SELECT JSON_QUERY(#, '$')",
    "SELECT JSON_VALUE('{}', #)",
    "SELECT JSON_VALUE('{}', '$' PASSING # AS x)",
    "SELECT JSON_VALUE('{}', '$' DEFAULT # ON EMPTY)",
    "SELECT JSON_VALUE('{}', '$' DEFAULT # ON ERROR)",
    "SELECT 1 FROM JSON_TABLE(#, '$' COLUMNS (a int))",
    "SELECT 1 FROM JSON_TABLE('{}', '$' PASSING # AS x COLUMNS (a int))",
    "SELECT 1 FROM JSON_TABLE('{}', '$' COLUMNS (a int DEFAULT # ON EMPTY))",
    "SELECT 1 FROM JSON_TABLE('{}', '$' COLUMNS (NESTED PATH '$' COLUMNS (a int DEFAULT # ON ERROR)))",
  ]
  const queries = ['(SELECT max(token) FROM secrets)', '(TABLE secrets)', 'EXISTS (SELECT 1 FROM secrets)']
  for (const slot of slots) {
    test(`no part of an expression can read a hidden table: ${slot}`, async () => {
      for (const query of queries)
        assert.equal(say(await guard.judge(slot.replace('#', query), shop())), 'table: secrets')
      assert.equal(say(await guard.judge(slot.replace('#', 'pg_read_file(1)'), shop())), 'function: pg_read_file')
    })
  }
  const whole: readonly string[] = [
    'TABLE secrets',
    'SELECT 1 UNION TABLE secrets',
    '(TABLE secrets) INTERSECT SELECT 1',
    'SELECT 1 FROM (TABLE secrets) s',
    'SELECT 1 FROM customers, LATERAL (TABLE secrets) s',
    'WITH s AS (TABLE secrets) SELECT 1',
    'WITH s AS MATERIALIZED (TABLE secrets) SELECT 1',
    'SELECT JSON_ARRAY(TABLE secrets)',
    'SELECT ARRAY(TABLE secrets)',
    'SELECT 1 IN (TABLE secrets)',
    'SELECT 1 = ALL (TABLE secrets)',
    'SELECT 1 FROM customers NATURAL JOIN secrets',
    'SELECT 1 FROM customers LEFT JOIN (orders CROSS JOIN secrets) ON true',
    'SELECT 1 FROM secrets TABLESAMPLE system (1)',
    'SELECT 1 FROM ONLY secrets',
    'WITH RECURSIVE r AS (SELECT 1 UNION SELECT 1 FROM r, secrets) SELECT 1',
  ]
  for (const sql of whole) {
    test(`no part of a query can read a hidden table: ${sql}`, async () => {
      assert.equal(say(await guard.judge(sql, shop())), 'table: secrets')
    })
  }
})

each('only one SELECT that only reads is allowed', [
  ['two statements', 'SELECT 1; SELECT 2', 'statement: more than one statement'],
  ['a trailing semicolon is fine', 'SELECT 1;', 'SELECT 1 AS "?column?"'],
  ['DELETE', 'DELETE FROM orders', 'statement: DELETE'],
  ['INSERT in WITH', 'WITH x AS (INSERT INTO orders VALUES (1) RETURNING *) SELECT 1', 'statement: INSERT'],
  ['FOR UPDATE', 'SELECT id FROM orders FOR UPDATE', 'statement: FOR UPDATE'],
  ['FOR SHARE in a sub-select', 'SELECT 1 FROM (SELECT id FROM orders FOR SHARE) x', 'statement: FOR UPDATE'],
  ['INTO', 'SELECT id INTO x FROM orders', 'statement: SELECT INTO'],
  ['a parameter zero', 'SELECT $0', 'statement: parameter $0'],
  ['EXPLAIN', 'EXPLAIN ANALYZE SELECT 1', 'statement: EXPLAIN'],
  ['SET', 'SET row_security = off', 'statement: SET'],
  ['DO', 'DO $$ BEGIN END $$', 'statement: DO'],
  ['MERGE_ACTION', 'SELECT merge_action()', 'function: merge_action'],
  ['XMLTABLE', "SELECT 1 FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS x int)", 'function: xmltable'],
  ['xmlelement', 'SELECT xmlelement(name a, 1)', 'function: xmlelement'],
  ['an empty text', ' \n\t ', 'malformed'],
  ['a NUL', 'SELECT 1\0; DROP TABLE x', 'malformed'],
  ['a text that is not SQL', 'SELEC 1', 'malformed'],
])

each('only listed functions, text search configurations, collations and operators may be named', [
  ['a user’s function', 'SELECT get_ssn(1)', 'function: get_ssn'],
  ['a user’s function with its schema', 'SELECT public.get_ssn(1)', 'function: public.get_ssn'],
  ['a listed name in another schema', 'SELECT public.lower($$A$$)', 'function: public.lower'],
  ['the listed name in pg_catalog', 'SELECT pg_catalog.lower($$A$$)', `SELECT "pg_catalog"."lower"('A') AS "lower"`],
  ['a name of three parts', 'SELECT shop.pg_catalog.pg_read_file(1)', 'function: shop.pg_catalog.pg_read_file'],
  ['pg_read_file in FROM', 'SELECT * FROM pg_read_file(1)', 'function: pg_read_file'],
  ['current_user', 'SELECT current_user', 'function: current_user'],
  ['current_schema in FROM', 'SELECT * FROM current_schema', 'function: current_schema'],
  [
    'EXTRACT',
    'SELECT EXTRACT(year FROM now())',
    `SELECT "pg_catalog"."extract"('year', "pg_catalog"."now"()) AS "extract"`,
  ],
  [
    'SQL inside a quoted unit stays a string',
    `SELECT extract('year FROM now()), (SELECT token FROM secrets), extract(year' FROM now())`,
    `SELECT "pg_catalog"."extract"('year FROM now()), (SELECT token FROM secrets), extract(year', "pg_catalog"."now"()) AS "extract"`,
  ],
  [
    'SQL inside the name of an argument stays a name',
    `SELECT make_interval("days => 1), (select 1), make_interval(days" => 1)`,
    `SELECT "pg_catalog"."make_interval"("days => 1), (select 1), make_interval(days" => 1) AS "make_interval"`,
  ],
  [
    'unnest of several arrays is printed without its schema, as the grammar requires',
    'SELECT * FROM unnest(ARRAY[1], ARRAY[2]) u(a, b)',
    'SELECT "t1"."a" AS "a", "t1"."b" AS "b" FROM "unnest"(ARRAY[1], ARRAY[2]) AS "t1" ("a", "b")',
  ],
  [
    'pg_typeof returns text',
    'SELECT pg_typeof(1)',
    'SELECT CAST("pg_catalog"."pg_typeof"(1) AS "pg_catalog"."text") AS "pg_typeof"',
  ],
  [
    'LIKE … ESCAPE is a plain operator',
    "SELECT 'a' NOT LIKE 'b' ESCAPE '!'",
    `SELECT ('a' OPERATOR("pg_catalog".!~~) "pg_catalog"."like_escape"('b', '!')) AS "?column?"`,
  ],
  ['json_to_record without column definitions', "SELECT * FROM json_to_record('{}')", 'function: json_to_record'],
  [
    'json_to_record with column definitions',
    "SELECT * FROM json_to_record('{}') AS t(a int)",
    `SELECT "t1"."a" AS "a" FROM "pg_catalog"."json_to_record"('{}') AS "t1" ("a" "pg_catalog"."int4")`,
  ],
  [
    'json_to_record with a column of a type that is not allowed',
    "SELECT * FROM json_to_record('{}') AS t(a regclass)",
    'type: regclass',
  ],
  ['a row type', 'SELECT * FROM json_populate_record(NULL::private.salaries, $${}$$)', 'type: private.salaries'],
  [
    'json_populate_record with an unknown row type',
    "SELECT * FROM json_populate_record(NULL, '{}')",
    'function: json_populate_record',
  ],
  [
    'a text search configuration of PostgreSQL itself',
    "SELECT to_tsvector('english'::regconfig, 'a')",
    `SELECT "pg_catalog"."to_tsvector"('pg_catalog.english', 'a') AS "to_tsvector"`,
  ],
  [
    'a text search configuration with a quoted schema',
    `SELECT to_tsquery('English', 'a'), to_tsquery(' "pg_catalog" . "german" ', 'a'), to_tsquery(' pg_catalog . german ', 'a')`,
    'function: to_tsquery',
  ],
  [
    'a text search configuration in capitals and with spaces',
    `SELECT to_tsquery(' pg_catalog . German ', 'a'), to_tsquery('"dutch"', 'a')`,
    `SELECT "pg_catalog"."to_tsquery"('pg_catalog.german', 'a') AS "to_tsquery", "pg_catalog"."to_tsquery"('pg_catalog.dutch', 'a') AS "to_tsquery"`,
  ],
  ['a user-defined text search configuration', "SELECT to_tsvector('public.cfg', 'a')", 'function: to_tsvector'],
  ['a text search configuration by its oid', "SELECT to_tsvector('16384', 'a')", 'function: to_tsvector'],
  ['a computed text search configuration', 'SELECT to_tsvector(name, country) FROM customers', 'function: to_tsvector'],
  [
    'the first argument of ts_headline is a document if options follow',
    "SELECT ts_headline('public.cfg', to_tsquery('a'), 'MaxWords=5')",
    `SELECT "pg_catalog"."ts_headline"(CAST('public.cfg' AS "pg_catalog"."text"), "pg_catalog"."to_tsquery"('a'), 'MaxWords=5') AS "ts_headline"`,
  ],
  [
    'the first argument of ts_headline is a configuration if a document follows',
    "SELECT ts_headline('public.cfg', name, to_tsquery('a')) FROM customers",
    'function: ts_headline',
  ],
  [
    'computed options of ts_headline',
    "SELECT ts_headline(name, to_tsquery('a'), 'a' || 'b') FROM customers",
    'limit: ts_headline',
  ],
  ['a user-defined collation', 'SELECT name COLLATE germanphones FROM customers', 'operator: germanphones'],
  [
    'a collation of the operating system',
    'SELECT name COLLATE "de_DE.utf8" FROM customers',
    `SELECT ("t1"."name" COLLATE "pg_catalog"."de_DE.utf8") AS "name" FROM ${customers('name')}`,
  ],
  ['an operator that PostgreSQL does not have', 'SELECT 1 @!! 2', 'operator: @!!'],
  ['a prefix operator that PostgreSQL does not have', 'SELECT ! true', 'operator: !'],
])

each('the memory that a function allocates is limited', [
  ['repeat', "SELECT repeat('x', 1000000000)", 'limit: repeat'],
  [
    'lpad of a column by a constant',
    "SELECT lpad(name, 5, '0') FROM customers",
    `SELECT "pg_catalog"."lpad"("t1"."name", 5, '0') AS "lpad" FROM ${customers('name')}`,
  ],
  ['rpad', "SELECT rpad('x', 10001)", 'limit: rpad'],
  ['array_fill', 'SELECT array_fill(1, ARRAY[1000, 1000])', 'limit: array_fill'],
  ['a width in a format string', "SELECT format('%10001s', 'x')", 'limit: format'],
  ['a width of format() from an argument', "SELECT format('%*s', 1000000, 'x')", 'limit: format'],
  ['a width of format() from a column', "SELECT format('%s %*s', 'a', id, 'x') FROM customers", 'limit: format'],
  [
    'a format string with a small width',
    "SELECT format('%-5s|%%', 'x')",
    `SELECT "pg_catalog"."format"('%-5s|%%', 'x') AS "format"`,
  ],
])

each(
  'a type may be named only if that reveals nothing hidden and runs no user-defined code',
  [
    ['regclass', "SELECT 'x'::regclass", 'type: regclass'],
    ['an array of regclass', "SELECT '{}'::regclass[]", 'type: regclass'],
    ['_regclass', "SELECT '{}'::_regclass", 'type: _regclass'],
    ['a row type of a table', 'SELECT NULL::customers', 'type: customers'],
    ['a domain with a CHECK', 'SELECT 5::public.leaky_dom', 'type: public.leaky_dom'],
    ['a domain without a CHECK', 'SELECT 5::plain_dom', 'SELECT CAST(5 AS "public"."plain_dom") AS "plain_dom"'],
    ['an enum that only a hidden column uses', 'SELECT enum_range(NULL::hidden_mood)', 'type: hidden_mood'],
    [
      'a composite type that only a hidden column uses',
      'SELECT (NULL::public.hidden_pair).*',
      'type: public.hidden_pair',
    ],
    ['an enum', "SELECT 'paid'::order_status[]", `SELECT CAST('paid' AS "public"."order_status"[]) AS "order_status"`],
    ['numeric(10, 2)', 'SELECT 1::numeric(10, 2)', 'SELECT CAST(1 AS "pg_catalog"."numeric"(10, 2)) AS "numeric"'],
    ['INTERVAL YEAR', "SELECT INTERVAL '1' YEAR", `SELECT CAST('1' AS "pg_catalog"."interval"(4)) AS "interval"`],
    ['SETOF', 'SELECT 1::SETOF int', 'statement: setof'],
    [
      'a field of a composite',
      'SELECT (home).city FROM people',
      'SELECT ("t1"."home")."city" AS "city" FROM (SELECT "home" FROM "public"."people" AS "t0") AS "t1" ("home")',
    ],
    ['a field that the composite type does not have', 'SELECT (home).pg_read_file FROM people', 'column: pg_read_file'],
    [
      'all fields of a composite',
      'SELECT (p.home).* FROM people p',
      'SELECT ("t1"."home")."city" AS "city", ("t1"."home")."zip" AS "zip" FROM (SELECT "home" FROM "public"."people" AS "t0") AS "t1" ("home")',
    ],
    [
      'a field of an element of an array',
      'SELECT (homes[1]).city, (homes[1:2])[1].zip FROM people',
      'SELECT (("t1"."homes")[1])."city" AS "city", (("t1"."homes")[1:2])[1]."zip" AS "zip" FROM (SELECT "homes" FROM "public"."people" AS "t0") AS "t1" ("homes")',
    ],
    [
      'unnest of an array of composites shows its fields',
      'SELECT u.city FROM people, unnest(homes) u',
      'SELECT "t2"."city" AS "city" FROM (SELECT "homes" FROM "public"."people" AS "t0") AS "t1" ("homes"), "pg_catalog"."unnest"("t1"."homes") AS "t2" ("city", "zip")',
    ],
    [
      'json_populate_record of a composite type',
      "SELECT city FROM json_populate_record(NULL::address, '{}')",
      `SELECT "t1"."city" AS "city" FROM "pg_catalog"."json_populate_record"(CAST(NULL AS "public"."address"), '{}') AS "t1" ("city", "zip")`,
    ],
  ],
  shop(
    {
      types: [
        type('public.order_status', 'enum'),
        type('public.address', 'composite', { attributes: ['city text', 'zip text'] }),
        type('public._address', 'array', { of: 'public.address' }),
        type('public.plain_dom', 'domain', { of: 'int4' }),
        type('public.hidden_mood', 'enum'),
        type('public.hidden_pair', 'composite', { attributes: ['a text', 'b text'] }),
        type('public.leaky_dom', 'domain', { of: 'int4', refused: 'A cast would run its CHECK.' }),
        type('public.customers', 'composite', { attributes: ['ssn text'], refused: 'It is the row type of a table.' }),
      ],
    },
    [table('people', ['id int4', 'home public.address', 'homes public._address', 'n public.plain_dom'])],
  ),
)

each('numbers and strings are printed in a form that every server reads alike', [
  [
    'hexadecimal',
    'SELECT 0xFFFFFFFFFF, 0b101, 0o17',
    'SELECT 1099511627775 AS "?column?", 5 AS "?column?", 15 AS "?column?"',
  ],
  ['underscores', 'SELECT 1_000_000_000_000, 1_0.5_0', 'SELECT 1000000000000 AS "?column?", 10.50 AS "?column?"'],
  [
    'negative numbers',
    'SELECT -1, -1.5, 2 - -3',
    'SELECT (-1) AS "?column?", (-1.5) AS "?column?", (2 OPERATOR("pg_catalog".-) (-3)) AS "?column?"',
  ],
  ['backslashes', String.raw`SELECT 'a\'`, String.raw`SELECT E'a\\' AS "?column?"`],
  ['quotes', `SELECT 'it''s', E'\\'x'`, `SELECT 'it''s' AS "?column?", '''x' AS "?column?"`],
  ['bits', `SELECT B'101', X'1f'`, `SELECT B'101' AS "?column?", X'1f' AS "?column?"`],
  ['dollars', 'SELECT $x$;--$x$', `SELECT ';--' AS "?column?"`],
])

describe('GROUP BY of a table’s key', () => {
  const rows: readonly Row[] = [
    [
      'the key covers the other columns',
      'SELECT id, name, count(*) FROM customers GROUP BY id',
      'GROUP BY "t1"."id", "t1"."name"',
    ],
    ['by position', 'SELECT id, name FROM customers GROUP BY 1', 'GROUP BY 1, "t1"."name"'],
    ['by an output’s name', 'SELECT id AS k, name FROM customers GROUP BY k', 'GROUP BY 1, "t1"."name"'],
    [
      'a column inside an aggregate needs no grouping',
      'SELECT id, max(name) FROM customers GROUP BY id',
      'GROUP BY "t1"."id"',
    ],
    ['in HAVING', 'SELECT id FROM customers GROUP BY id HAVING country = $$x$$', 'GROUP BY "t1"."id", "t1"."country"'],
    ['in ORDER BY', 'SELECT id FROM customers GROUP BY id ORDER BY country', 'GROUP BY "t1"."id", "t1"."country"'],
    [
      'in a window',
      'SELECT id, rank() OVER (ORDER BY name) FROM customers GROUP BY id',
      'GROUP BY "t1"."id", "t1"."name"',
    ],
    [
      'from a sub-select',
      'SELECT id, (SELECT max(o.id) FROM orders o WHERE o.status::text = c.name) FROM customers c GROUP BY id',
      'GROUP BY "t1"."id", "t1"."name"',
    ],
    ['half a key covers nothing', 'SELECT country, label FROM regions GROUP BY country', 'GROUP BY "t1"."country"'],
    [
      'the whole key covers the other columns',
      'SELECT label FROM regions GROUP BY (country, code)',
      'GROUP BY ("t1"."country", "t1"."code"), "t1"."label"',
    ],
    [
      'a key in grouping sets covers nothing',
      'SELECT id, name FROM customers GROUP BY ROLLUP (id)',
      'GROUP BY ROLLUP ("t1"."id")',
    ],
    [
      'a key that is a merged column of USING',
      'SELECT id, name FROM customers JOIN stores USING (id) GROUP BY id',
      'GROUP BY "t3"."id", "t1"."name"',
    ],
    ['a row as a whole', 'SELECT to_jsonb(c) FROM customers c GROUP BY id', 'GROUP BY "t1"."id", "t1"'],
  ]
  for (const [name, sql, expected] of rows) {
    test(`GROUP BY of a primary key is printed so that the server accepts it: ${name}`, async () => {
      const { text } = await guard.confined(sql, shop())
      assert.equal(/GROUP BY .*?(?= HAVING| ORDER BY (?!"t1"."name"\))| LIMIT|$)/.exec(text)?.[0], expected)
    })
  }

  test('a json column, which has no equality operator, is read from any row of the group', async () => {
    const sql = 'SELECT id, doc FROM products GROUP BY id'
    const { text } = await guard.confined(sql, shop({ serverVersion: 160_000 }))
    assert.match(text, /"any_value"\("t1"\."doc"\) AS "doc".* GROUP BY "t1"\."id" LIMIT/)
    // array_agg() keeps all rows of the group, so they are counted.
    const { text: older } = await guard.confined(sql, shop({ serverVersion: 150_000 }))
    assert.match(older, /"array_agg"\("t1"\."doc"\) FILTER \(WHERE .*collected.*\)\)\[1\] AS "doc"/)
  })

  test('GROUP BY of a key with a hidden column covers no other columns', async () => {
    const exposed = catalog([table('regions', ['country text', 'label text'], { key: ['country', 'code'] })])
    const { text } = await guard.confined('SELECT country, label FROM regions GROUP BY country', exposed)
    assert.match(text, /GROUP BY "t1"\."country" LIMIT/)
  })
})

describe('the row cap', () => {
  const rows: readonly Row[] = [
    ['no limit', 'SELECT 1', 'LIMIT 1001'],
    ['a lower limit', 'SELECT 1 LIMIT 5', 'LIMIT 5'],
    ['a higher limit', 'SELECT 1 LIMIT 5000', 'LIMIT 1001'],
    ['ALL', 'SELECT 1 LIMIT ALL', 'LIMIT 1001'],
    ['an expression', 'SELECT 1 LIMIT 2 + 3', 'LIMIT LEAST((2 OPERATOR("pg_catalog".+) 3), 1001)'],
    ['with an offset', 'SELECT 1 OFFSET 3', 'LIMIT 1001 OFFSET 3'],
    ['around UNION', 'SELECT 1 UNION SELECT 2', 'LIMIT 1001'],
    ['VALUES', 'VALUES (1), (2)', 'LIMIT 1001'],
  ]
  for (const [name, sql, expected] of rows) {
    test(`the printed query returns at most one row more than the answer may have: ${name}`, async () => {
      const { text } = await guard.confined(sql, shop())
      assert.ok(text.endsWith(expected), text)
    })
  }

  test('a query WITH TIES keeps its LIMIT, and an outer query gets the row cap', async () => {
    const sql = 'SELECT name FROM customers ORDER BY country FETCH FIRST 2 ROWS WITH TIES'
    const { text } = await guard.confined(sql, shop())
    assert.match(
      text,
      /^SELECT "t2"\."name" AS "name" FROM \(.* FETCH FIRST \(2\) ROWS WITH TIES\) AS "t2" \("name"\) LIMIT 1001$/,
    )
  })

  test('the caller’s limit can lower the team’s limit, but not raise it', async () => {
    const query = await guard.confined('SELECT 1', shop(), { limit: 7 })
    assert.deepEqual([query.rowCap, query.text.endsWith('LIMIT 8')], [7, true])
    assert.equal((await guard.confined('SELECT 1', shop(), { limit: 1e6 })).rowCap, 1_000)
  })
})

test('queries share a list of columns if and only if they read the same columns', async () => {
  const exposed = shop()
  const reads = async (sql: string) => (await guard.confined(sql, exposed)).reads
  const list = await reads('SELECT id AS a, name FROM customers')
  assert.equal(await reads('SELECT name AS b FROM customers WHERE id > 5'), list)
  assert.equal(await reads('SELECT c.id FROM customers c JOIN customers d ON c.name = d.name'), list)
  const others = [
    'SELECT id FROM customers',
    'SELECT id, name, country FROM customers',
    'SELECT count(*) FROM customers',
    'SELECT c.id, c.name FROM customers c, orders',
    'SELECT c.id, c.name FROM orders, customers c',
  ]
  const lists = new Set([list])
  for (const sql of others) lists.add(await reads(sql))
  assert.equal(lists.size, 6)
  assert.deepEqual(list, (await guard.confined('SELECT id, name FROM customers', shop())).reads)
})

test('a confined query names its tables and generated aliases, and says whether a table’s size bounds its cost', async () => {
  const query = await guard.confined('SELECT upper(name) FROM customers AS people WHERE id > 5 ORDER BY 1', shop())
  assert.deepEqual(query.reads, [
    {
      schema: 'public',
      table: 'customers',
      oid: 1,
      columns: [
        { name: 'id', number: 1, typeOid: 25 },
        { name: 'name', number: 2, typeOid: 25 },
      ],
    },
  ])
  assert.deepEqual(
    [...query.names],
    [
      ['t1', 'people'],
      ['t2', 'the query'],
    ],
  )
  assert.equal(query.bound?.table, 'customers')
  assert.equal(query.bound.sorts, true)
  const unbounded = [
    'SELECT 1 FROM customers, orders',
    'SELECT generate_series(1, id) FROM customers',
    'SELECT (SELECT 1) FROM customers',
    'WITH x AS (SELECT 1) SELECT 1 FROM customers',
    'SELECT 1 FROM customers UNION ALL SELECT 1',
    'SELECT 1 FROM customers c, generate_series(1, 9)',
  ]
  for (const sql of unbounded) assert.equal((await guard.confined(sql, shop())).bound, null, sql)
})

test('a hidden name and one that does not exist are refused with the same words', async () => {
  const pairs: readonly (readonly [string, string, string])[] = [
    ['SELECT ssn FROM customers', 'ssn', 'ssm'],
    ['SELECT c.ssn FROM customers c', 'ssn', 'ssm'],
    ['SELECT id FROM customers ORDER BY email', 'email', 'emayl'],
    ['SELECT 1 FROM customers JOIN orders USING (ssn)', 'ssn', 'ssm'],
    ['SELECT * FROM private.salaries', 'salaries', 'salaryes'],
    ['SELECT * FROM private.salaries', 'private', 'privatx'],
    ['SELECT get_ssn(1)', 'get_ssn', 'get_ssm'],
    ['SELECT 5::public.leaky_dom', 'leaky_dom', 'leaky_don'],
    ['SELECT 1 OPERATOR(public.@!!) 2', '@!!', '@!@'],
  ]
  const exposed = shop({ types: [type('public.leaky_dom', 'domain', { of: 'int4', refused: 'A CHECK.' })] })
  for (const [sql, hidden, none] of pairs) {
    const [one, other] = [await guard.judge(sql, exposed), await guard.judge(sql.replace(hidden, none), exposed)]
    assert.equal(one.kind, 'denied')
    assert.equal(JSON.stringify(one).replaceAll(hidden, '*'), JSON.stringify(other).replaceAll(none, '*'))
  }
})

test('a refusal has the blocked name, a hint and a position', async () => {
  const verdict = await guard.judge("SELECT 'ü😀', ssn FROM customers", shop())
  assert.deepEqual(verdict, {
    kind: 'denied',
    blocked: { kind: 'column', name: 'ssn' },
    why: 'column ssn does not exist or is not exposed',
    hint: 'FROM shows customers (id, name, country, created_at).',
    position: 14,
  })
  const malformed = await guard.judge("SELECT 'ü😀' FROM", shop())
  assert.deepEqual(malformed, {
    kind: 'malformed',
    why: 'syntax error at end of input',
    position: 17,
    hint: 'Add the missing part before this position.',
  })
})

describe('features that the server does not have yet', () => {
  const older: readonly Row[] = [
    [
      'a function',
      'SELECT regexp_count($$a$$, $$a$$)',
      "regexp_count() needs PostgreSQL 15, this server is 14. Write (SELECT count(*) FROM regexp_matches(x, 'pattern', 'g')).",
    ],
    [
      'an arity',
      "SELECT regexp_replace('a', 'b', 'c', 1, 2)",
      'regexp_replace() needs PostgreSQL 15, this server is 14',
    ],
    ['a constructor', 'SELECT JSON_OBJECT(1: 2)', 'JSON_OBJECT needs PostgreSQL 16, this server is 14'],
    ['IS JSON', 'SELECT $$a$$ IS JSON', 'IS JSON needs PostgreSQL 16, this server is 14'],
    [
      'JSON_TABLE',
      "SELECT 1 FROM JSON_TABLE('{}', '$' COLUMNS (a int))",
      'JSON_TABLE needs PostgreSQL 17, this server is 14',
    ],
    ['a collation', 'SELECT $$a$$ COLLATE pg_c_utf8', 'collation pg_c_utf8 needs PostgreSQL 17, this server is 14.'],
  ]
  for (const [name, sql, hint] of older) {
    test(`a feature that the server does not have yet is refused: ${name}`, async () => {
      const verdict = await guard.judge(sql, shop({ serverVersion: 140_023 }))
      assert.equal(verdict.kind === 'denied' && verdict.hint, hint)
      assert.equal((await guard.judge(sql, shop())).kind, 'confined')
    })
  }

  test('before PostgreSQL 15, the output of TRUE is named bool', async () => {
    assert.match((await guard.confined('SELECT TRUE', shop({ serverVersion: 140_023 }))).text, /AS "bool"/)
    assert.match((await guard.confined('SELECT TRUE', shop())).text, /AS "\?column\?"/)
  })
})

describe('the weight of a query', () => {
  const doubling = (n: number, how: string): string =>
    `WITH a0 AS (SELECT 1 AS x)${Array.from({ length: n }, (_, i) => `, a${i + 1} AS ${how} (SELECT l.x FROM a${i} l, a${i} r)`).join('')} SELECT * FROM a${n}`

  test('30 WITH queries that each read the previous one twice are refused, and so are 102 WITH queries', async () => {
    assert.equal(say(await guard.judge(doubling(30, 'NOT MATERIALIZED'), shop())), 'limit: WITH')
    assert.equal(say(await guard.judge(doubling(101, ''), shop())), 'limit: WITH')
  })

  test('a WITH query that is not inlined counts once, and six inlined doublings are allowed', async () => {
    assert.match(say(await guard.judge(doubling(30, ''), shop())), /^WITH/)
    assert.match(say(await guard.judge(doubling(6, 'NOT MATERIALIZED'), shop())), /^WITH/)
  })

  test('a UNION of 501 SELECTs is allowed, and a UNION of 1,501 is refused', async () => {
    assert.match(say(await guard.judge(`SELECT 1${' UNION ALL SELECT 1'.repeat(500)}`, shop())), /^\(SELECT/)
    assert.equal(say(await guard.judge(`SELECT 1${' UNION ALL SELECT 1'.repeat(1_500)}`, shop())), 'limit: UNION')
  })

  test('expressions and sub-selects that nest too deeply are refused', async () => {
    assert.equal(say(await guard.judge(`SELECT ${'NOT '.repeat(500)}true`, shop())), 'limit: depth')
    assert.equal(
      say(await guard.judge(`${'SELECT * FROM ('.repeat(70)}SELECT 1${') x'.repeat(70)}`, shop())),
      'limit: nesting',
    )
    assert.equal(say(await guard.judge(`SELECT ${'('.repeat(10_000)}1${')'.repeat(10_000)}`, shop())), 'limit: depth')
  })
})
