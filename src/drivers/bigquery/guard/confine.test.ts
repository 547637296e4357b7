// Tests how the guard rewrites a query, which queries it refuses, and which blocked name the refusal has.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CAPS, confined, judge, SHOP, outcomeOf, catalogOf } from '../../../../test/support/bigquery-guard.ts'
import { mayReport } from '../confined-query.ts'
import { confine } from './confine.ts'

const C = 'FROM `lake-1.shop.customers` AS _vt'
const O = 'FROM `lake-1.shop.orders` AS _vt'
const WHOLE_C = `(SELECT _vt.\`id\`, _vt.\`name\`, _vt.\`address\` ${C})`
const WHOLE_O = `(SELECT _vt.\`id\`, _vt.\`customer_id\`, _vt.\`items\`, _vt.\`total\` ${O})`

/** Title, SQL, printed SQL. */
type Case = readonly [string, string, string]

function prints(cases: readonly Case[]): void {
  for (const [name, sql, wanted] of cases) test(name, () => assert.equal(outcomeOf(SHOP, sql), wanted, sql))
}

describe('a table in FROM becomes a sub-select of its exposed columns', () => {
  const id = `SELECT id FROM (SELECT _vt.\`id\` ${C}) AS`
  prints([
    ['named by two parts', 'SELECT id FROM shop.customers', `${id} \`customers\``],
    ['named by three parts', 'SELECT id FROM `lake-1`.shop.customers', `${id} \`customers\``],
    ['with dashes in the project', 'SELECT id FROM lake-1.shop.customers c', `${id} c`],
    ['in one pair of backquotes', 'SELECT id FROM `lake-1.shop.customers` AS `c d`', `${id} \`c d\``],
    ['in two pairs of backquotes', 'SELECT id FROM `lake-1.shop`.`customers`', `${id} \`customers\``],
    ['with blanks and comments in the path', 'SELECT id FROM shop /**/ . \n customers', `${id} \`customers\``],
    [
      'with a sample',
      'SELECT id FROM shop.customers c TABLESAMPLE SYSTEM (10 PERCENT)',
      `SELECT id FROM (SELECT _vt.\`id\` ${C} TABLESAMPLE SYSTEM ( 10 PERCENT )) AS c`,
    ],
    ['with a star', 'SELECT * FROM shop.customers', `SELECT * FROM ${WHOLE_C} AS \`customers\``],
    [
      'with a star of the alias',
      'SELECT c.* EXCEPT (name) FROM shop.customers c, shop.orders o',
      `SELECT c . * EXCEPT (name) FROM ${WHOLE_C} AS c , (SELECT _vt.\`id\` ${O}) AS o`,
    ],
    [
      'whole if its alias is used as a value',
      'SELECT TO_JSON_STRING(c) FROM shop.customers c',
      `SELECT TO_JSON_STRING ( c ) FROM ${WHOLE_C} AS c`,
    ],
    [
      'whole for a sub-query that reads the row',
      'SELECT (SELECT c) FROM shop.customers c',
      `SELECT (SELECT c) FROM ${WHOLE_C} AS c`,
    ],
    [
      'with one column if the query names none',
      'SELECT COUNT(*) FROM shop.customers',
      `SELECT COUNT ( * ) FROM (SELECT _vt.\`id\` ${C}) AS \`customers\``,
    ],
    [
      'whole and without an alias before PIVOT',
      "SELECT * FROM shop.customers PIVOT(COUNT(id) FOR name IN ('a' AS x)) AS p",
      `SELECT * FROM ${WHOLE_C} PIVOT ( COUNT ( id ) FOR name IN ( 'a' AS x ) ) AS p`,
    ],
    [
      'before UNPIVOT',
      'SELECT 1 FROM shop.customers c UNPIVOT INCLUDE NULLS (v FOR k IN (id, name))',
      `SELECT 1 FROM ${WHOLE_C} AS c UNPIVOT INCLUDE NULLS ( v FOR k IN ( id , name ) )`,
    ],
    [
      'with NATURAL JOIN',
      'SELECT 1 FROM shop.customers NATURAL JOIN shop.orders',
      `SELECT 1 FROM ${WHOLE_C} AS \`customers\` NATURAL JOIN ${WHOLE_O} AS \`orders\``,
    ],
    [
      'in parentheses and joins',
      'SELECT 1 FROM (shop.customers a LEFT OUTER JOIN (shop.orders b CROSS JOIN shop.orders c) ON a.id = b.id)',
      `SELECT 1 FROM ((SELECT _vt.\`id\` ${C}) AS a LEFT OUTER JOIN ((SELECT _vt.\`id\` ${O}) AS b CROSS JOIN (SELECT _vt.\`id\` ${O}) AS c) ON a . id = b . id)`,
    ],
    [
      'in joins whose conditions come at the end',
      'SELECT 1 FROM shop.orders a JOIN shop.orders b JOIN shop.orders c USING (id) ON a.id = b.id',
      `SELECT 1 FROM (SELECT _vt.\`id\` ${O}) AS a JOIN (SELECT _vt.\`id\` ${O}) AS b JOIN (SELECT _vt.\`id\` ${O}) AS c USING ( id ) ON a . id = b . id`,
    ],
  ])
})

describe('an array of a visible item becomes UNNEST, never a table', () => {
  const items = `(SELECT _vt.\`items\` ${O})`
  prints([
    [
      'by alias',
      'SELECT 1 FROM shop.orders o, o.items',
      `SELECT 1 FROM ${items} AS o , UNNEST(o . items) AS \`items\``,
    ],
    [
      'by implicit alias, in any case',
      'SELECT 1 FROM shop.orders JOIN Orders.items i WITH OFFSET AS p ON TRUE',
      `SELECT 1 FROM ${items} AS \`orders\` JOIN UNNEST(Orders . items) AS i WITH OFFSET AS p ON TRUE`,
    ],
    [
      'by a column',
      'SELECT 1 FROM shop.orders, items.parts',
      `SELECT 1 FROM ${items} AS \`orders\` , UNNEST(items . parts) AS \`parts\``,
    ],
    [
      'of an outer item',
      'SELECT (SELECT COUNT(*) FROM o.items) FROM shop.orders o',
      `SELECT (SELECT COUNT ( * ) FROM UNNEST(o . items) AS \`items\`) FROM ${items} AS o`,
    ],
    [
      'of an earlier array',
      'SELECT 1 FROM shop.orders o, o.items i, i.parts',
      `SELECT 1 FROM ${items} AS o , UNNEST(o . items) AS i , UNNEST(i . parts) AS \`parts\``,
    ],
    [
      'of a column of a sub-query',
      'SELECT 1 FROM (SELECT [STRUCT([1] AS b)] AS a) t, UNNEST(a) x, x.b',
      'SELECT 1 FROM (SELECT [ STRUCT ( [ 1 ] AS b ) ] AS a) AS t , UNNEST(a) AS x , UNNEST(x . b) AS `b`',
    ],
    [
      'an alias named like a dataset hides the dataset',
      'SELECT 1 FROM shop.orders shop, shop.customers',
      `SELECT 1 FROM (SELECT _vt.\`id\` ${O}) AS shop , UNNEST(shop . customers) AS \`customers\``,
    ],
  ])
  test('a sub-query in parentheses in FROM does not see the items before the parentheses', () => {
    assert.equal(outcomeOf(SHOP, 'SELECT 1 FROM shop.orders o, (shop.customers c CROSS JOIN o.items)'), 'table o.items')
    assert.match(
      outcomeOf(SHOP, 'SELECT 1 FROM (shop.customers c CROSS JOIN shop.orders o), o.items'),
      /UNNEST\(o \. items\)/,
    )
  })
  test('a sub-query in FROM does not see its neighbours', () => {
    assert.equal(outcomeOf(SHOP, 'SELECT 1 FROM shop.orders o, (SELECT 1 FROM o.items)'), 'table o.items')
  })
  test('the name of a WITH query means an item only after FROM names it', () => {
    assert.equal(outcomeOf(SHOP, 'WITH o AS (SELECT 1) SELECT 1 FROM o.items'), 'table o.items')
    assert.match(
      outcomeOf(SHOP, 'WITH o AS (SELECT [1] AS items) SELECT 1 FROM o, o.items'),
      /FROM o , UNNEST\(o \. items\)/,
    )
  })
})

describe('WITH queries', () => {
  prints([
    [
      'are visible to later queries',
      'WITH a AS (SELECT 1 AS x), B AS (SELECT * FROM A) SELECT x FROM b',
      'WITH a AS (SELECT 1 AS x), B AS (SELECT * FROM A) SELECT x FROM b',
    ],
    [
      'see themselves with RECURSIVE',
      'WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT n FROM a',
      'WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT n FROM a',
    ],
    [
      'may shadow a table',
      'WITH a AS (SELECT 1 AS x) SELECT (WITH a AS (SELECT 2 AS x) SELECT x FROM a), x FROM a',
      'WITH a AS (SELECT 1 AS x) SELECT (WITH a AS (SELECT 2 AS x) SELECT x FROM a), x FROM a',
    ],
    [
      'do not stand for a qualified table',
      'WITH customers AS (SELECT 1 AS id) SELECT id FROM shop.customers',
      `WITH customers AS (SELECT 1 AS id) SELECT id FROM (SELECT _vt.\`id\` ${C}) AS \`customers\``,
    ],
  ])
  test('a WITH query is not visible to earlier WITH queries, to itself, or outside the query with the WITH clause', () => {
    assert.equal(outcomeOf(SHOP, 'WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT 1 FROM a'), 'table b')
    assert.equal(outcomeOf(SHOP, 'WITH a AS (SELECT * FROM a) SELECT 1 FROM a'), 'table a')
    assert.equal(outcomeOf(SHOP, 'SELECT (WITH a AS (SELECT 1) SELECT 1 FROM a) FROM a'), 'table a')
  })
  test('a WITH query does not see the row of an outer query', () => {
    assert.equal(
      outcomeOf(SHOP, 'SELECT (WITH a AS (SELECT 1 FROM o.items) SELECT 1 FROM a) FROM shop.orders o'),
      'table o.items',
    )
  })
})

describe('structure', () => {
  prints([
    [
      'set operations',
      'SELECT 1 UNION ALL (SELECT 2 INTERSECT DISTINCT SELECT 3) EXCEPT DISTINCT SELECT 4 ORDER BY 1 LIMIT 2 OFFSET 1',
      'SELECT 1 UNION ALL (SELECT 2 INTERSECT DISTINCT SELECT 3) EXCEPT DISTINCT SELECT 4 ORDER BY 1 LIMIT 2 OFFSET 1',
    ],
    [
      'set operations by name',
      'SELECT 1 AS a LEFT OUTER UNION ALL BY NAME ON (a) SELECT 2 AS a FULL UNION DISTINCT STRICT CORRESPONDING SELECT 3 AS a',
      'SELECT 1 AS a LEFT OUTER UNION ALL BY NAME ON ( a ) SELECT 2 AS a FULL UNION DISTINCT STRICT CORRESPONDING SELECT 3 AS a',
    ],
    [
      'a query in parentheses that continues',
      'SELECT * FROM ((SELECT 1 AS a) UNION ALL (SELECT 2)) AS t WHERE a IN ((SELECT 1) UNION ALL (SELECT 2))',
      'SELECT * FROM ((SELECT 1 AS a) UNION ALL (SELECT 2)) AS t WHERE a IN ((SELECT 1) UNION ALL (SELECT 2))',
    ],
    [
      'an argument that begins with a query in parentheses',
      'SELECT ARRAY_AGG((SELECT 1) ORDER BY 1 LIMIT 2)',
      'SELECT ARRAY_AGG ( (SELECT 1) ORDER BY 1 LIMIT 2 )',
    ],
    [
      'the FROM in EXTRACT and in IS DISTINCT FROM',
      'SELECT EXTRACT(DAYOFWEEK FROM d AT TIME ZONE "UTC"), a IS NOT DISTINCT FROM b, a IS DISTINCT FROM b',
      'SELECT EXTRACT ( DAYOFWEEK FROM d AT TIME ZONE "UTC" ), a IS NOT DISTINCT FROM b, a IS DISTINCT FROM b',
    ],
    [
      'WITH as an operator',
      'SELECT WITH(a AS 1, b AS a + 1, a * b), (WITH(x AS 2, x))',
      'SELECT WITH ( a AS 1 , b AS a + 1 , a * b ), ( WITH ( x AS 2 , x ) )',
    ],
    [
      'types stay unchanged',
      "SELECT CAST(a AS TIMESTAMP), SAFE_CAST(a AS NUMERIC(10, 2)), BIGNUMERIC '1e30', CAST(x AS ARRAY<STRUCT<a INT64>>), LAST_DAY(d, WEEK(MONDAY)), RANGE<DATE> '[2020-01-01, UNBOUNDED)'",
      "SELECT CAST ( a AS TIMESTAMP ), SAFE_CAST ( a AS NUMERIC ( 10 , 2 ) ), BIGNUMERIC '1e30', CAST ( x AS ARRAY < STRUCT < a INT64 >> ), LAST_DAY ( d , WEEK ( MONDAY ) ), RANGE < DATE > '[2020-01-01, UNBOUNDED)'",
    ],
    [
      'lambdas, subscripts, named arguments',
      'SELECT ARRAY_FILTER(a, e -> e > 1), a[SAFE_OFFSET(0)], JSON_QUERY(j, "$.x"), SEARCH(t, "x", analyzer => "LOG_ANALYZER")',
      'SELECT ARRAY_FILTER ( a , e -> e > 1 ), a [ SAFE_OFFSET ( 0 ) ], JSON_QUERY ( j , "$.x" ), SEARCH ( t , "x" , analyzer => "LOG_ANALYZER" )',
    ],
    [
      'windows',
      'SELECT SUM(x) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM UNNEST([1]) x WHERE TRUE GROUP BY ROLLUP (x), GROUPING SETS ((x), ()) HAVING TRUE QUALIFY TRUE WINDOW w AS (PARTITION BY x ORDER BY x DESC NULLS LAST)',
      'SELECT SUM ( x ) OVER ( w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW ) FROM UNNEST([ 1 ]) AS x WHERE TRUE GROUP BY ROLLUP ( x ) , GROUPING SETS ( ( x ) , ( ) ) HAVING TRUE QUALIFY TRUE WINDOW w AS ( PARTITION BY x ORDER BY x DESC NULLS LAST )',
    ],
    [
      'AS STRUCT, AS VALUE, a comma that ends a list',
      'SELECT ARRAY(SELECT AS STRUCT 1 AS a, 2 AS b,), (SELECT AS VALUE STRUCT(1 AS x)),',
      'SELECT ARRAY (SELECT AS STRUCT 1 AS a, 2 AS b), (SELECT AS VALUE STRUCT ( 1 AS x ))',
    ],
    [
      'stars with EXCEPT and REPLACE',
      'SELECT * EXCEPT (a) REPLACE (b + 1 AS b), f.x.* FROM (SELECT 1 AS a, 2 AS b, STRUCT(STRUCT(1 AS y) AS x) AS f)',
      'SELECT * EXCEPT (a) REPLACE ( b + 1 AS b ), f . x . * FROM (SELECT 1 AS a, 2 AS b, STRUCT ( STRUCT ( 1 AS y ) AS x ) AS f)',
    ],
    [
      'LEFT and IF as functions',
      'SELECT LEFT(a, 1), RIGHT(a, 1), IF(a, 1, 2), SAFE.LEFT(a, 1), (a).UPPER()',
      'SELECT LEFT ( a , 1 ), RIGHT ( a , 1 ), IF ( a , 1 , 2 ), SAFE . `LEFT` ( a , 1 ), ( a ) . UPPER ( )',
    ],
    [
      'sub-queries in expressions and ORDER BY',
      'SELECT 1 FROM shop.orders o WHERE EXISTS(SELECT 1 FROM shop.customers c WHERE c.id = o.id) ORDER BY (SELECT MAX(id) FROM shop.customers)',
      `SELECT 1 FROM (SELECT _vt.\`id\` ${O}) AS o WHERE EXISTS (SELECT 1 FROM (SELECT _vt.\`id\` ${C}) AS c WHERE c . id = o . id) ORDER BY (SELECT MAX ( id ) FROM (SELECT _vt.\`id\` ${C}) AS \`customers\`)`,
    ],
  ])
})

describe('pipes', () => {
  prints([
    [
      'shape the rows of FROM',
      'FROM shop.customers |> WHERE id > 1 |> EXTEND name AS n |> AGGREGATE COUNT(*) AS c GROUP AND ORDER BY n DESC |> SELECT * EXCEPT (n) |> LIMIT 3 OFFSET 1',
      `FROM ${WHOLE_C} AS \`customers\` |> WHERE id > 1 |> EXTEND name AS n |> AGGREGATE COUNT ( * ) AS c GROUP AND ORDER BY n DESC |> SELECT * EXCEPT ( n ) |> LIMIT 3 OFFSET 1`,
    ],
    [
      'joined tables are confined too',
      'FROM shop.orders o |> LEFT JOIN shop.customers c USING (id) |> CROSS JOIN o.items i',
      `FROM ${WHOLE_O} AS o |> LEFT JOIN ${WHOLE_C} AS c USING ( id ) |> CROSS JOIN UNNEST(o . items) AS i`,
    ],
    [
      'take queries as operands',
      'SELECT 1 AS a |> UNION ALL (SELECT 2), (FROM shop.orders |> SELECT id),',
      `SELECT 1 AS a |> UNION ALL (SELECT 2), (FROM ${WHOLE_O} AS \`orders\` |> SELECT id)`,
    ],
    ['give a query an alias', '(SELECT 1 AS a) AS t |> WHERE t.a = 1', 'FROM (SELECT 1 AS a) AS t |> WHERE t . a = 1'],
    [
      'add WITH queries',
      'SELECT 1 AS a |> WITH w AS (SELECT 2 AS a) |> UNION ALL (FROM w) |> DISTINCT',
      'SELECT 1 AS a |> WITH w AS (SELECT 2 AS a) |> UNION ALL (FROM w) |> DISTINCT',
    ],
    [
      'pivot',
      "FROM shop.customers |> SELECT id, name |> PIVOT(COUNT(id) FOR name IN ('a'))",
      `FROM ${WHOLE_C} AS \`customers\` |> SELECT id , name |> PIVOT ( COUNT ( id ) FOR name IN ( 'a' ) )`,
    ],
  ])
  for (const operator of [
    'TABLESAMPLE SYSTEM (1 PERCENT)',
    'CALL f()',
    'ASSERT TRUE',
    'TEE (|> WHERE TRUE)',
    'FORK ()',
    'INSERT INTO shop.x',
    'EXPORT DATA',
  ])
    test(`the pipe operator |> ${operator} is refused by name`, () => {
      assert.equal(
        outcomeOf(SHOP, `FROM shop.customers |> ${operator}`),
        `statement |> ${operator.split(' ')[0] ?? ''}`,
      )
    })
})

describe('wildcards', () => {
  const from = (table: string, filter: string, columns = '_vt.`event_name`') =>
    `(SELECT ${columns} FROM \`lake-1.shop.${table}\` AS _vt WHERE ${filter})`
  const regex = (pattern: string) => `REGEXP_CONTAINS(_vt._TABLE_SUFFIX, r'${pattern}')`
  prints([
    [
      'get a filter for a whole family',
      'SELECT event_name FROM `shop.events_*`',
      `SELECT event_name FROM ${from('events_*', regex('^[0-9]{8}$'))} AS \`events_*\``,
    ],
    [
      'get a filter for a part of a family',
      'SELECT event_name FROM `lake-1.shop.events_2024*` e',
      `SELECT event_name FROM ${from('events_2024*', regex('^[0-9]{4}$'))} AS e`,
    ],
    [
      'are different from a single shard, which gets no filter',
      'SELECT event_name FROM shop.events_20231231',
      'SELECT event_name FROM (SELECT _vt.`event_name` FROM `lake-1.shop.events_20231231` AS _vt) AS `events_20231231`',
    ],
    [
      'rename the suffix',
      "SELECT event_name, t._table_suffix AS s FROM `shop.events_*` t WHERE _TABLE_SUFFIX > '2'",
      `SELECT event_name, t . _vt_suffix AS s FROM ${from('events_*', regex('^[0-9]{8}$'), '_vt.`event_name`, _vt._TABLE_SUFFIX AS _vt_suffix')} AS t WHERE _vt_suffix > '2'`,
    ],
    [
      'leave the suffix out of stars',
      'SELECT *, t.* EXCEPT (ts), c.* FROM `shop.events_*` t, shop.customers c WHERE _TABLE_SUFFIX = "x"',
      `SELECT * EXCEPT (_vt_suffix), t . * EXCEPT (ts, _vt_suffix), c . * FROM ${from('events_*', regex('^[0-9]{8}$'), '_vt.`event_name`, _vt.`ts`, _vt._TABLE_SUFFIX AS _vt_suffix')} AS t , ${WHOLE_C} AS c WHERE _vt_suffix = "x"`,
    ],
    [
      'leave the suffix out of a star of an outer row',
      'SELECT (SELECT AS STRUCT t.*) FROM `shop.events_*` t WHERE _TABLE_SUFFIX = "x"',
      `SELECT (SELECT AS STRUCT t . * EXCEPT (_vt_suffix)) FROM ${from('events_*', regex('^[0-9]{8}$'), '_vt.`event_name`, _vt.`ts`, _vt._TABLE_SUFFIX AS _vt_suffix')} AS t WHERE _vt_suffix = "x"`,
    ],
  ])
  test('a wildcard is refused if it matches hidden tables or no exposed tables, or lacks backquotes', () => {
    for (const name of [
      'events*',
      'e*',
      '*',
      'events_s*',
      'events_secret*',
      'events_2024x*',
      'events_202401011*',
      'nothing*',
      "events_'*",
    ])
      assert.equal(outcomeOf(SHOP, `SELECT 1 FROM \`shop.${name}\``), `table shop.${name}`)
    assert.equal(outcomeOf(SHOP, 'SELECT 1 FROM shop.events_secret'), 'table shop.events_secret')
    assert.match(outcomeOf(SHOP, 'SELECT 1 FROM shop.events_*'), /^malformed.*backquotes/)
  })
  test('a wildcard over tables outside of families gets a list of suffixes, if all matching tables are exposed', () => {
    const years = (others: string[]) =>
      catalogOf(
        [
          { name: 'w.gsod1929', columns: ['stn', 'temp'], hidden: ['max'], detail: { createdAt: 1 } },
          { name: 'w.gsod2020', columns: ['stn', 'temp', 'dew', 'max'], detail: { createdAt: 2 } },
        ],
        others,
      )
    assert.equal(
      outcomeOf(years([]), 'SELECT * FROM `w.gsod*`'),
      "SELECT * FROM (SELECT _vt.`stn`, _vt.`temp`, _vt.`dew` FROM `lake-1.w.gsod*` AS _vt WHERE _vt._TABLE_SUFFIX IN ('1929', '2020')) AS `gsod*`",
    )
    assert.equal(outcomeOf(years(['w.gsod_hidden']), 'SELECT * FROM `w.gsod*`'), 'table w.gsod*')
    assert.match(outcomeOf(years(['w.gsod_hidden']), 'SELECT stn FROM `w.gsod19*`'), /IN \('29'\)/)
  })
  test('one wildcard may read families and single tables', () => {
    const both = catalogOf(
      [
        { name: 'w.ev_*', columns: ['a', 'b'], digits: 8 },
        { name: 'w.ev_live_*', columns: ['a'], hidden: ['b'], digits: 8 },
        { name: 'w.ev_x', columns: ['a'] },
      ],
      ['w.ev_20240101', 'w.ev_live_20240101'],
    )
    const filter =
      "REGEXP_CONTAINS(_vt._TABLE_SUFFIX, r'^[0-9]{8}$') OR REGEXP_CONTAINS(_vt._TABLE_SUFFIX, r'^live_[0-9]{8}$') OR _vt._TABLE_SUFFIX IN ('x')"
    assert.equal(
      outcomeOf(both, 'SELECT * FROM `w.ev_*`'),
      `SELECT * FROM (SELECT _vt.\`a\` FROM \`lake-1.w.ev_*\` AS _vt WHERE ${filter}) AS \`ev_*\``,
    )
  })
})

describe('pseudo columns', () => {
  test('a pseudo column is read only if the query names it, and gets a generated name that `names` maps back', () => {
    const query = confined(
      SHOP,
      'SELECT *, _PARTITIONTIME AS t, _PARTITIONDATE FROM shop.daily JOIN shop.customers USING (id)',
    )
    assert.equal(
      query.text,
      `SELECT * EXCEPT (_vt_ptime, _vt_pdate), _vt_ptime AS t, _vt_pdate FROM (SELECT _vt.\`id\`, _vt.\`day\`, _vt._PARTITIONTIME AS _vt_ptime, _vt._PARTITIONDATE AS _vt_pdate FROM \`lake-1.shop.daily\` AS _vt) AS \`daily\` JOIN ${WHOLE_C} AS \`customers\` USING ( id )`,
    )
    assert.deepEqual(
      [...query.names],
      [
        ['_vt_ptime', '_PARTITIONTIME'],
        ['_vt_pdate', '_PARTITIONDATE'],
      ],
    )
    assert.equal(confined(SHOP, 'SELECT * FROM shop.daily').names.size, 0)
  })
  test('a pseudo column can be hidden like a column', () => {
    const detail = { pseudoColumns: ['_PARTITIONTIME', '_PARTITIONDATE'] } as const
    const half = catalogOf([{ name: 'd.t', columns: ['a'], hidden: ['_PARTITIONTIME'], detail }])
    const wanted =
      'SELECT _PARTITIONTIME, _vt_pdate FROM (SELECT _vt.`a`, _vt._PARTITIONDATE AS _vt_pdate FROM `lake-1.d.t` AS _vt) AS `t`'
    assert.equal(outcomeOf(half, 'SELECT _PARTITIONTIME, _PARTITIONDATE FROM d.t'), wanted)
  })
  test('a wildcard has only the pseudo columns that all its tables expose', () => {
    const days = (hidden: string[]) =>
      catalogOf(
        [
          { name: 'd.t1', columns: ['a'] },
          { name: 'd.t2', columns: ['a'], hidden },
        ].map((each) => ({
          ...each,
          detail: { pseudoColumns: ['_PARTITIONTIME'] },
        })),
      )
    assert.match(outcomeOf(days([]), 'SELECT _PARTITIONTIME FROM `d.t*`'), /^SELECT _vt_ptime FROM/)
    assert.match(
      outcomeOf(days(['_PARTITIONTIME']), 'SELECT _PARTITIONTIME FROM `d.t*`'),
      /^SELECT _PARTITIONTIME FROM/,
    )
  })
  test('a pseudo column may be part of a STRUCT under another name', () => {
    assert.match(
      outcomeOf(SHOP, 'SELECT STRUCT(_PARTITIONTIME AS t, MAX(_PARTITIONTIME)) FROM shop.daily'),
      /^SELECT STRUCT \( _vt_ptime AS t/,
    )
  })
  test('pseudo columns may join tables if no star shows them', () => {
    assert.match(
      outcomeOf(SHOP, 'SELECT a.id, b.* FROM shop.daily a JOIN shop.daily b USING (_PARTITIONTIME)'),
      /^SELECT a \. id, b \. \* EXCEPT \(_vt_ptime\) FROM .* USING \( _vt_ptime \)$/,
    )
  })
  test('a field of a value with the name of a pseudo column is no pseudo column', () => {
    assert.match(
      outcomeOf(
        SHOP,
        `SELECT JSON '{"_PARTITIONTIME":1}'._PARTITIONTIME, d.id._PARTITIONTIME, d._PARTITIONTIME FROM shop.daily d`,
      ),
      /^SELECT JSON '\{"_PARTITIONTIME":1\}' \. _PARTITIONTIME, d \. id \. _PARTITIONTIME, d \. _vt_ptime FROM/,
    )
    assert.match(
      outcomeOf(SHOP, 'SELECT id._PARTITIONTIME AS field FROM shop.daily WHERE _PARTITIONTIME IS NULL'),
      /^SELECT id \. _PARTITIONTIME AS field FROM .* WHERE _vt_ptime IS NULL$/,
    )
  })
  test('if no table has a pseudo column, its name is an ordinary name', () => {
    assert.match(outcomeOf(SHOP, 'SELECT _PARTITIONTIME FROM shop.customers'), /^SELECT _PARTITIONTIME FROM/)
  })
  for (const sql of [
    'SELECT _PARTITIONTIME, TO_JSON_STRING(d) FROM shop.daily d',
    'SELECT _PARTITIONTIME FROM shop.daily NATURAL JOIN shop.customers',
    'FROM shop.daily |> SELECT _PARTITIONTIME',
    'FROM shop.customers |> JOIN shop.daily USING (id) |> SELECT _PARTITIONTIME',
    "SELECT * FROM (SELECT 's' AS _table_suffix) s, `shop.events_*` e WHERE e._TABLE_SUFFIX > ''",
    'WITH w AS (SELECT _PARTITIONTIME, id FROM shop.daily) SELECT * FROM w JOIN shop.daily d ON d._PARTITIONTIME = w._PARTITIONTIME',
    'SELECT * FROM shop.daily a JOIN shop.daily b USING (_PARTITIONTIME)',
    'SELECT TO_JSON_STRING((SELECT AS STRUCT _PARTITIONTIME, 1 AS x)) FROM shop.daily',
    'SELECT STRUCT(1 AS a, daily._PARTITIONTIME) FROM shop.daily',
    "SELECT * FROM shop.daily PIVOT(COUNT(id) FOR _PARTITIONTIME IN ('a'))",
    'SELECT * FROM shop.daily c, (shop.daily a JOIN shop.daily b USING (_PARTITIONTIME))',
    'SELECT w FROM (SELECT _PARTITIONTIME, id FROM shop.daily) w',
    'WITH w AS (SELECT * FROM (SELECT _PARTITIONTIME, id FROM shop.daily)) SELECT TO_JSON_STRING(w) FROM w',
    'SELECT ARRAY(SELECT AS STRUCT * FROM (SELECT _PARTITIONTIME, id FROM shop.daily))',
    'SELECT * FROM (SELECT _PARTITIONDATE, day FROM shop.daily) UNPIVOT (v FOR k IN (_PARTITIONDATE, day))',
  ])
    test(`a query whose meaning a pseudo column would change is refused: ${sql}`, () =>
      assert.equal(outcomeOf(SHOP, sql), 'statement _TABLE_SUFFIX'))
})

describe('a refusal', () => {
  for (const [sql, wanted] of [
    ['SELECT * FROM hr.salaries', 'table hr.salaries'],
    ['SELECT * FROM qx.nothing', 'table qx.nothing'],
    ['SELECT * FROM shop.Customers', 'table shop.Customers'],
    ['SELECT * FROM Shop.customers', 'table Shop.customers'],
    ['SELECT * FROM `other-project.shop.customers`', 'table other-project.shop.customers'],
    ['SELECT * FROM `lake-1.shop.customers.id`', 'table lake-1.shop.customers.id'],
    ['SELECT * FROM shop.`customers$20240101`', 'table shop.customers$20240101'],
    ['SELECT * FROM `shop.customers@1`', 'table shop.customers@1'],
    ['SELECT * FROM shop.INFORMATION_SCHEMA.TABLES', 'table shop.INFORMATION_SCHEMA.TABLES'],
    ['SELECT * FROM `region-eu`.INFORMATION_SCHEMA.JOBS', 'table region-eu.INFORMATION_SCHEMA.JOBS'],
    ['SELECT 1 FROM shop.orders o, UNNEST(shop.orders.secrets)', 'column shop'],
    ['SELECT 1 FROM UNNEST(`lake-1.hr`.salaries.list)', 'column lake-1'],
    ['SELECT 1 FROM UNNEST(`lake-1.hr`.nothing.list)', 'column lake-1'],
    ['SELECT 1 FROM UNNEST(qx.nothing.list)', 'column qx'],
    ['SELECT 1 FROM shop.orders o, UNNEST(qx.nothing.list)', 'column qx'],
    ['SELECT * FROM `constructor.x*`', 'table constructor.x*'],
    ['SELECT * FROM `__proto__.*`', 'table __proto__.*'],
    ['SELECT * FROM constructor.prototype', 'table constructor.prototype'],
    ['SELECT * FROM shop.__TABLES__', 'table shop.__TABLES__'],
    ['SELECT * FROM customers', 'table customers'],
    ['SELECT * FROM (TABLE hr.salaries)', 'malformed: unexpected .: ) is missing'],
    ['SELECT (TABLE hr.salaries)', 'statement TABLE'],
    ['SELECT ARRAY(TABLE hr.salaries)', 'statement TABLE'],
    ['SELECT COUNT(x => MODEL hr.m)', 'statement MODEL'],
    ['SELECT (GRAPH g MATCH (n) RETURN n)', 'statement GRAPH'],
    ['TABLE hr.salaries', 'statement TABLE'],
    ['SELECT * FROM shop.all_customers()', 'function shop.all_customers'],
    ['SELECT * FROM EXTERNAL_QUERY("c", "SELECT 1")', 'function EXTERNAL_QUERY'],
    ['SELECT * FROM ML.PREDICT(MODEL shop.m, TABLE shop.customers)', 'function ML.PREDICT'],
    ['SELECT shop.peek(id) FROM shop.customers', 'function shop.peek'],
    ['SELECT `lake-1.shop.peek`(1)', 'function lake-1.shop.peek'],
    ['SELECT SESSION_USER()', 'function SESSION_USER'],
    ['SELECT SAFE.SESSION_USER()', 'function SAFE.SESSION_USER'],
    ['SELECT `SESSION_USER`()', 'function SESSION_USER'],
    ['SELECT KEYS.NEW_KEYSET("x")', 'function KEYS.NEW_KEYSET'],
    ['SELECT NET.NOTHING("x")', 'function NET.NOTHING'],
    ['SELECT (x).peek()', 'function peek'],
    ['SELECT (x).a.UPPER()', 'function a.UPPER'],
    ['SELECT t.UPPER() FROM UNNEST([1]) t', 'function t.UPPER'],
    ['SELECT constructor(1), __proto__(1)', 'function constructor'],
    ['SELECT constructor.x(1)', 'function constructor.x'],
    ['SELECT * FROM shop.customers FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()', 'statement FOR SYSTEM_TIME'],
    ['SELECT * FROM shop.customers FOR UPDATE', 'statement FOR UPDATE'],
    ['SELECT WITH DIFFERENTIAL_PRIVACY 1', 'statement SELECT WITH DIFFERENTIAL_PRIVACY'],
    ["SELECT WITH 'Ada' 1", 'statement SELECT WITH'],
    ["FROM shop.customers |> 'Ada'", "malformed: unexpected 'Ada': a pipe operator is missing"],
    ['SELECT * FROM shop.orders o, LATERAL (SELECT 1)', 'statement LATERAL'],
    ['SELECT * FROM shop.orders MATCH_RECOGNIZE (x)', 'statement MATCH_RECOGNIZE'],
    ['SELECT * FROM shop.v_new', 'table shop.v_new'],
    ['CREATE TEMP FUNCTION f() AS (1); SELECT f()', 'statement CREATE'],
    ['DECLARE x INT64; SELECT 1', 'statement DECLARE'],
    ['delete from shop.customers where true', 'statement DELETE'],
    ['SELECT 1; DROP TABLE shop.customers', 'statement a second statement'],
    ['SELECT * FROM shop.customers@{x=1}', 'statement @'],
    [`SELECT ${'('.repeat(70)}1${')'.repeat(70)}`, 'limit depth'],
    [`SELECT 1 FROM ${'('.repeat(70)}shop.customers${')'.repeat(70)}`, 'limit depth'],
    [`SELECT ${'(SELECT '.repeat(70)}1${')'.repeat(70)}`, 'limit depth'],
  ] as const)
    test(`a refusal has the blocked name: ${sql.slice(0, 90)}`, () => assert.equal(outcomeOf(SHOP, sql), wanted))
  for (const sql of [
    '',
    ';',
    'SELECT',
    'SELECT FROM shop.customers',
    'SELECT 1 FROM',
    'SELECT 1 FROM shop.customers shop.orders',
    'SELECT 1 FROM shop.customers AS x (a, b)',
    'SELECT 1, FROM hr.salaries JOIN',
    'SELECT (1',
    'SELECT 1)',
    'SELECT (FROM)',
    'SELECT x FROM (SELECT 1 JOIN hr.salaries)',
    'SELECT UNNEST(x)',
    'SELECT JOIN',
    'SELECT 1 UNION SELECT 2',
    'SELECT 1 WHERE x, hr.salaries',
    'SELECT EXTRACT(DAY FROM a FROM b)',
    'SELECT f FROM x FROM y',
    'WITH a AS SELECT 1 SELECT 1',
    'WITH `a.b` AS (SELECT 1) SELECT 1',
    'SELECT 1 FROM shop.customers WITH OFFSET',
    'SELECT a-1.b',
    'VALUES (1)',
    '(SELECT 1',
    'SELECT 1 FROM shop.orders o, o.items TABLESAMPLE SYSTEM (1 PERCENT)',
  ])
    test(`a text that is not a query is refused: ${sql}`, () => assert.match(outcomeOf(SHOP, sql), /^malformed/))
})

describe('a verdict', () => {
  test('a verdict that denies a query has a position and a hint', () => {
    const sql = "SELECT '😀', 1 FROM customers"
    const verdict = judge(SHOP, sql)
    assert.ok(verdict.kind === 'denied')
    assert.equal(verdict.position, sql.indexOf('customers'))
    assert.match(verdict.hint, /shop\.customers/)
  })
  test('a hidden name and a missing name get the same verdict', () => {
    const verdictFor = (sql: string, name: string) => JSON.stringify(judge(SHOP, sql)).replaceAll(name, '…')
    for (const [sql, hidden, none] of [
      ['SELECT * FROM shop.§', 'notez', 'notex'],
      ['SELECT * FROM §.salaries', 'hr', 'xx'],
      ['SELECT * FROM `shop.§*`', 'events_secr', 'events_nothi'],
      ['SELECT shop.§(1)', 'peek', 'pook'],
    ] as const) {
      assert.equal(verdictFor(sql.replace('§', hidden), hidden), verdictFor(sql.replace('§', none), none))
    }
  })
  test('a confined query knows which tables its dry run may report', () => {
    const query = confined(
      SHOP,
      'SELECT * FROM shop.v_notes JOIN shop.customers USING (id) JOIN (SELECT 1 AS id FROM `shop.events_2024*`) USING (id)',
    )
    for (const table of [
      'lake-1.shop.customers',
      'lake-1.shop.v_notes',
      'lake-1.shop.notes',
      'other.x.y',
      'lake-1.shop.events_20240101',
      'lake-1.shop.events_2024*',
    ])
      assert.ok(mayReport(query, table), table)
    for (const table of [
      'lake-1.hr.salaries',
      'lake-1.shop.events_secret',
      'lake-1.shop.orders',
      'lake-1.shop.events_2024010',
      'lake-1.shop.events_2024010١',
    ])
      assert.ok(!mayReport(query, table), table)
    assert.deepEqual(
      query.reads.map(({ table, columns }) => [table, columns.length]),
      [
        ['v_notes', 1],
        ['customers', 3],
        ['events_2024*', 1],
      ],
    )
  })
  test('a query without a limit gets the row cap, and a lower limit is accepted', () => {
    assert.equal(confined(SHOP, 'SELECT 1').rowCap, 1_000)
    const verdict = confine({ text: 'SELECT 1', limit: 7 }, SHOP, CAPS)
    assert.equal(verdict.kind, 'confined')
  })
})

describe('generated names', () => {
  test("generated names differ from the caller's names and from all columns, even hidden ones", () => {
    assert.match(
      outcomeOf(SHOP, 'SELECT id AS _vt FROM shop.customers'),
      /SELECT _vt100000\.`id` FROM .* AS _vt100000\)/,
    )
    const odd = catalogOf([{ name: 'd.t', columns: ['a'], hidden: ['_VT'] }])
    assert.match(outcomeOf(odd, 'SELECT a FROM d.t'), /AS _vt100000\)/)
    assert.match(outcomeOf(SHOP, 'SELECT _vt1000005, _vt100001 FROM shop.customers'), /AS _vt100002\)/)
  })
  test('a column that cannot be quoted is hidden, and so is a table with only such columns', () => {
    const odd = catalogOf([
      { name: 'd.t', columns: ['a`b', 'c'] },
      { name: 'd.u', columns: ['a\\'] },
    ])
    assert.match(outcomeOf(odd, 'SELECT * FROM d.t'), /SELECT _vt\.`c` FROM/)
    assert.equal(outcomeOf(odd, 'SELECT * FROM d.u'), 'table d.u')
  })
})

describe('the project', () => {
  test('in a query, the id of the project may contain a domain', () => {
    const scoped = catalogOf([{ name: 'd.t', columns: ['a'] }], [], { project: 'example.com:lake' })
    const wanted = 'SELECT a FROM (SELECT _vt.`a` FROM `example.com:lake.d.t` AS _vt) AS `t`'
    assert.equal(outcomeOf(scoped, 'SELECT a FROM `example.com:lake.d.t`'), wanted)
    assert.equal(outcomeOf(scoped, 'SELECT a FROM `example.com:lake`.d.t'), wanted)
    assert.equal(outcomeOf(scoped, 'SELECT a FROM `com:lake.d.t`'), 'table com:lake.d.t')
  })
  test('the project may contain datasets that ignore case', () => {
    const any = catalogOf([{ name: 'd.Tab', columns: ['a'] }], [], { caseInsensitiveDatasets: ['d'] })
    assert.match(outcomeOf(any, 'SELECT a FROM d.tAB'), /FROM `lake-1\.d\.Tab` AS _vt\) AS `tAB`/)
    assert.equal(outcomeOf(any, 'SELECT a FROM D.Tab'), 'table D.Tab')
  })
  test('a project whose stored facts have another version must be introspected again', () => {
    const stale = catalogOf([], [], { version: 0 })
    assert.throws(() => judge(stale, 'SELECT 1'), { code: 'SCHEMA_STALE' })
    assert.throws(() => judge({ ...stale, capture: {} }, 'SELECT 1'), TypeError)
  })
})

describe('size', () => {
  const wide = catalogOf([
    { name: 'd.wide', columns: Array.from({ length: 5_000 }, (_, n) => `a_rather_long_column_name_${n}`) },
  ])
  test('a short query whose printed SQL would be too long is refused', () => {
    const sql = `SELECT * FROM ${Array.from({ length: 2_000 }, (_, n) => `d.wide t${n}`).join(', ')}`
    assert.equal(outcomeOf(wide, sql), 'limit length')
    assert.match(outcomeOf(wide, sql.replace('*', 'COUNT(*)')), /^SELECT/)
  })
  test('a query may read at most fifty different tables', () => {
    const names = Array.from({ length: 51 }, (_, n) => `d.t${n}`)
    const many = catalogOf(names.map((name) => ({ name, columns: ['a'] })))
    assert.match(outcomeOf(many, `SELECT 1 FROM ${names.slice(1).join(', ')}, \`d.t1\` AS again`), /^SELECT/)
    assert.equal(outcomeOf(many, `SELECT 1 FROM ${names.join(', ')}`), 'limit tables')
  })
})
