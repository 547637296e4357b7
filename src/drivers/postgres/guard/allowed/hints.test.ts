// Each hint must name what is allowed instead, or the nearest exposed name, quoted as a caller must type it.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { catalog, shop, table, type } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, type Guard } from '../../../../../test/support/postgres-guard.ts'
import type { Catalog, Verdict } from '../../../driver.ts'
import { identifier, typed } from '../../quote.ts'
import { FUNCTIONS_ELSEWHERE, TYPES_ELSEWHERE } from './other-dialects.ts'
import { FUNCTIONS } from './allowed-functions.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const billing = (): Catalog =>
  catalog(
    [
      table('invoices', ['id int4', 'Total numeric', 'order int4', 'status public.order_status'], {
        schema: 'Billing',
      }),
      table('customers', ['id int4', 'first_name text', 'country text']),
      table('order', ['id int4']),
    ],
    { types: [type('public.order_status', 'enum')] },
  )

function hintOf(verdict: Verdict): string {
  return verdict.kind === 'confined' ? 'nothing: it is allowed' : (verdict.hint ?? '')
}

const HINTS: Readonly<Record<string, readonly (readonly [string, RegExp])[]>> = {
  'the nearest tables, quoted as they must be typed': [
    ['SELECT * FROM customer', /^Did you mean customers\? Exposed tables: "Billing"\.invoices, customers, "order"\.$/],
    ['SELECT * FROM Billing.invoices', /^Did you mean "Billing"\.invoices\?/],
    ['SELECT * FROM invoice', /^Did you mean "Billing"\.invoices\?/],
    ['SELECT * FROM orders', /^Did you mean "order"\?/],
    ['SELECT 1 FROM dual', /^Leave FROM out/],
  ],
  'the nearest columns, quoted as they must be typed': [
    [
      'SELECT firstname FROM customers',
      /^Did you mean first_name\? FROM shows customers \(id, first_name, country\)\.$/,
    ],
    [
      'SELECT total FROM "Billing".invoices',
      /^Did you mean "Total"\? FROM shows invoices \(id, "Total", "order", status\)\.$/,
    ],
    ['SELECT c.contry FROM customers c', /^Did you mean country\?/],
    ['SELECT 1 FROM customers a JOIN customers b USING (idd)', /^Did you mean id\?/],
    ['SELECT id FROM customers WHERE country = "DE"', /^If you mean a string, write straight single quotes/],
    ["SELECT date_trunc('month', id), date_trunc(MONTH, id) FROM customers", /date_trunc\('month', x\)/],
  ],
  'where the tables are listed': [
    ...['pg_tables', 'pg_class', 'pg_catalog.pg_class', 'information_schema.columns', 'pg_stat_activity'].map(
      (name) => [`SELECT * FROM ${name}`, /GET …\/schema/] as const,
    ),
    ...['SHOW TABLES', 'SHOW search_path', 'DESCRIBE customers', 'DESC customers', '\\d customers', 'USE shop'].map(
      (sql) => [sql, /GET …\/schema/] as const,
    ),
    ['EXPLAIN SELECT 1', /without EXPLAIN/],
    ["SELECT obj_description('customers'::regclass)", /GET …\/schema/],
  ],
  'the function to call instead': [
    ['SELECT DATEADD(day, 1, now())', /INTERVAL '1 day'/],
    ['SELECT DATEDIFF(day, now(), now())', /a - b/],
    ['SELECT GETDATE()', /now\(\)/],
    ['SELECT IFNULL(1, 2), NVL(1, 2)', /coalesce/],
    ["SELECT LEN('a')", /length/],
    ["SELECT CHARINDEX('a', 'b')", /strpos/],
    ["SELECT INSTR('a', 'b')", /strpos/],
    ['SELECT GROUP_CONCAT(country) FROM customers', /string_agg/],
    ["SELECT LISTAGG(country, ',') FROM customers", /string_agg/],
    ["SELECT IF(1 > 2, 'a', 'b')", /CASE WHEN/],
    ["SELECT IIF(1 > 2, 'a', 'b')", /CASE WHEN/],
    ["SELECT STR_TO_DATE('1', '2')", /to_date/],
    ["SELECT DATE_FORMAT(now(), '%Y')", /to_char/],
    ["SELECT FORMAT_DATE('%Y', now())", /to_char/],
    ['SELECT UNIX_TIMESTAMP(now())', /extract\(epoch/],
    ['SELECT YEAR(now())', /extract\(year/],
    ['SELECT MONTH(now())', /extract\(month/],
    ["SELECT JSON_EXTRACT('{}', '$.a')", /->>/],
    ['SELECT RAND()', /random\(\)/],
    ["SELECT ISNUMERIC('1')", /~/],
    ['SELECT APPROX_COUNT_DISTINCT(id) FROM customers', /count\(DISTINCT/],
    ['SELECT MEDIAN(id) FROM customers', /percentile_cont\(0\.5\)/],
    ['SELECT current_user', /cannot read anything about the server/],
    ['SELECT version()', /cannot read anything about the server/],
    ["SELECT pg_read_file('x')", /cannot read files/],
    ["SELECT lenght('a')", /^Did you mean length\(\)/],
    ["SELECT nothing_like_it('a')", /^You can call/],
  ],
  'the type to name instead': [
    ["SELECT '1'::string", /CAST\(x AS text\)/],
    ["SELECT '1'::datetime", /CAST\(x AS timestamp\)/],
    ["SELECT '1'::number", /CAST\(x AS numeric\)/],
    ["SELECT '1'::tinyint", /CAST\(x AS smallint\)/],
    ["SELECT '1'::int64", /CAST\(x AS bigint\)/],
    ["SELECT '1'::float64", /CAST\(x AS double precision\)/],
    ["SELECT '1'::nvarchar(10)", /CAST\(x AS text\)/],
    ["SELECT '1'::nummeric", /^Did you mean numeric/],
    ["SELECT '1'::order_statu", /^Did you mean order_status/],
  ],
  'the operator to write instead': [
    ['SELECT 1 == 2', /Write = /],
    ['SELECT 1 <=> 2', /IS NOT DISTINCT FROM/],
    ["SELECT '{}'::jsonb ->>> 'a'", /^Did you mean ->>/],
  ],
  'what to write instead of a syntax error': [
    ['SELECT TOP 10 * FROM customers', /LIMIT n/],
    ['SELECT id FROM customers LIMIT 5, 10', /OFFSET/],
    ['SELECT `id` FROM `customers`', /double quotes/],
    ['SELECT * EXCEPT (id) FROM customers', /List the columns/],
    ['SELECT id FROM customers QUALIFY row_number() OVER () = 1', /sub-select/],
    ['SELECT id, FROM customers', /Remove the comma/],
    ['SELECT id FROM customers WHERE id IN (1, 2,)', /Remove the comma/],
    ["SELECT 'abc", /Close the string/],
    ['SELECT "abc', /Close the name/],
    ['SELECT /* abc', /Close the comment/],
    ["SELECT CONVERT(INT, '1')", /CAST/],
    ["SELECT SAFE_CAST('1' AS int)", /CAST/],
    ["SELECT TRY_CAST('1' AS int)", /CAST/],
    ['SELECT ISNULL(1, 2)', /coalesce/],
    ["SELECT GROUP_CONCAT(country SEPARATOR ',') FROM customers", /string_agg/],
    ['SELECT DATE_SUB(now(), INTERVAL 1 DAY)', /INTERVAL '1 day'/],
    ['SELECT [id] FROM customers', /double quotes/],
    ['SELECT id FROM customers WHERE id = :id', /Write \$1 and send the value/],
    ['SELECT id FROM customers WHERE', /missing part before/],
    ['SELECT count(id FROM customers', /./],
    ['SELECT id FROM order', /quote it/],
    ['SELECT ‘a’', /straight single quotes/],
    ['SELECT 1 FROM ‘a b’', /traight|Did you|Exposed/],
    ['', /Send one SELECT/],
    [`SELECT 1 ${'+-'.repeat(40)} 1`, /Put spaces between operators/],
    ['SELECT 1\0', /NUL/],
  ],
  'what to send instead of a refused statement': [
    ['INSERT INTO customers VALUES (1)', /Send one SELECT/],
    ['SET search_path = public', /runs by itself/],
    ['BEGIN', /its own read-only transaction/],
    ['SELECT 1; SELECT 2', /one by one/],
    ['SELECT id FROM customers FOR UPDATE', /locks nothing/],
    ['SELECT 1 INTO x', /Leave INTO out/],
  ],
}

for (const [title, rows] of Object.entries(HINTS)) {
  for (const [sql, expected] of rows) {
    test(`hints suggest ${title}: ${sql}`, async () => {
      assert.match(hintOf(await guard.judge(sql, billing())), expected)
    })
  }
}

interface Attack {
  readonly sql: string | null
}

test('every refusal has a hint, every syntax error has a position, and both are short', async () => {
  const folder = join(import.meta.dirname, '../../../../../test/attacks/postgres')
  const attacks = JSON.parse(readFileSync(join(folder, 'attacks.json'), 'utf8')) as readonly Attack[]
  const rows = Object.values(HINTS).flatMap((list) => list.map(([sql]) => sql))
  let refused = 0
  for (const sql of [...attacks.flatMap((attack) => attack.sql ?? []), ...rows]) {
    // A parameter without a value is a bad request, not a refusal.
    if (/\$\d+::int/.test(sql)) continue
    const verdict = await guard.judge(sql, shop())
    if (verdict.kind === 'confined') continue
    refused += 1
    assert.match(verdict.hint ?? '', /^\S.*[.\d]$/s, sql)
    if (verdict.kind === 'malformed') assert.ok(verdict.position !== undefined && verdict.position >= 0, sql)
    assert.ok(verdict.why.length + (verdict.hint ?? '').length < 9_000, sql)
  }
  assert.ok(refused > 200)
})

describe('a name or number of 60 kB is never repeated in full', () => {
  const long = 'a.'.repeat(30_000)
  for (const sql of [
    `SELECT ${long}a`,
    `SELECT ${long}a()`,
    `SELECT 1::${long}a`,
    `SELECT 1 OPERATOR(${long}+) 2`,
    `SELECT 1 COLLATE ${long}a`,
    `SELECT to_tsvector('${long}a', 'x')`,
    `SELECT * FROM customers TABLESAMPLE ${long}a (1)`,
    `SELECT ${'1'.repeat(60_000)}::nothing`,
  ]) {
    test(`a refusal does not repeat 60 kB in full: ${sql.slice(0, 40)}`, async () => {
      const verdict = await guard.judge(sql, shop())
      assert.notEqual(verdict.kind, 'confined')
      assert.ok(JSON.stringify(verdict).length < 6_000, JSON.stringify(verdict).slice(0, 200))
    })
  }
})

test('a hint quotes a name only if a caller must quote it', async () => {
  for (const name of [
    'id',
    'name',
    'time',
    'position',
    'interval',
    'value',
    'values',
    'row',
    'date',
    'user',
    'order',
  ]) {
    const text = (written: string): string => `SELECT x.${written}, ${written} FROM ${written} x`
    const exposed = catalog([table(name, [`${name} int4`])])
    assert.equal((await guard.judge(text(typed(name)), exposed)).kind, 'confined', name)
    if (typed(name) !== name) assert.notEqual((await guard.judge(text(name), exposed)).kind, 'confined', name)
  }
  for (const name of ['Id', 'a b', 'a"b', '1a', 'é', '', 'a.b', '$a']) assert.equal(typed(name), identifier(name))
})

test('no advice is given against a function that every server allows, or the type text', () => {
  const since = new Set(['regexp_like', 'regexp_count', 'regexp_substr', 'date_add'])
  for (const name of FUNCTIONS_ELSEWHERE.keys()) assert.ok(!FUNCTIONS.has(name) || since.has(name), name)
  assert.ok(!TYPES_ELSEWHERE.has('text'))
})
