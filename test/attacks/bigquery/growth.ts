// Families of queries that grow with a size: deep, wide or repeated. The guard must refuse a query that is too large,
// and never throw.
import { catalogOf } from '../../support/bigquery-guard.ts'

const times = (count: number, make: (n: number) => string, joiner = ', ') =>
  Array.from({ length: count }, (_, n) => make(n)).join(joiner)

const WIDE = Array.from({ length: 2_000 }, (_, n) => `column_${n}`)
const SHARDS = Array.from({ length: 3_000 }, (_, n) => `log.events_${20100101 + n}`)
const SINGLE = Array.from({ length: 1_500 }, (_, n) => `log.part_${n}x`)

/** Three small tables, a wide table, a wildcard table, and 1,500 tables whose names begin alike. */
export const GROWN = catalogOf(
  [
    { name: 'shop.customers', columns: ['id', 'name', 'address'], hidden: ['ssn'] },
    { name: 'shop.orders', columns: ['id', 'customer_id', 'items', 'total'], hidden: ['margin'] },
    { name: 'shop.daily', columns: ['id', 'day'], detail: { pseudoColumns: ['_PARTITIONTIME', '_PARTITIONDATE'] } },
    { name: 'shop.wide', columns: WIDE, hidden: ['secret'] },
    { name: 'log.events_*', columns: ['id', 'at'], digits: 8 },
    ...SINGLE.map((name) => ({ name, columns: ['id', 'at'] })),
  ],
  SHARDS,
)

export const FAMILIES: Readonly<Record<string, (size: number) => string>> = {
  // There are 20 levels. Each repeats the columns of the level below.
  'stars of stars': (n) => {
    let sql = 'SELECT * FROM shop.customers'
    for (let level = 0; level < 20; level++) sql = `SELECT ${times(Math.ceil(n / 20), () => 'a.*')} FROM (${sql}) a`
    return sql
  },
  // Each level looks up every `at.b` of the innermost query. `at` is a column of the outermost tables.
  'arrays of a far table, beside many tables': (n) => {
    let sql = `SELECT 1 FROM ${times(n, () => 'at.b')}`
    for (let level = 0; level < 50; level++)
      sql = `SELECT (${sql}) FROM ${level === 49 ? times(45, (k) => `log.part_${k}x`) : `(SELECT 1 AS a${level}) t${level}`}`
    return sql
  },
  'stars of one table': (n) => `SELECT ${times(n, () => 'a.*')} FROM shop.wide a`,
  'bare stars': (n) => `SELECT ${times(n, () => '*')} FROM shop.wide a, shop.orders b`,
  'stars beside a pseudo column': (n) =>
    `SELECT ${times(n, () => '*')} FROM ${times(n, (k) => `shop.daily d${k}`)} WHERE d0._PARTITIONTIME IS NULL`,
  'stars in WITH, each of the previous query': (n) =>
    `WITH c0 AS (SELECT * FROM shop.wide)${times(n, (k) => `, c${k + 1} AS (SELECT *, ${k} AS x${k} FROM c${k})`, '')} SELECT * FROM c${n}`,
  'stars in WITH, doubled': (n) =>
    `WITH c0 AS (SELECT * FROM shop.customers)${times(n, (k) => `, c${k + 1} AS (SELECT a.*, b.* FROM c${k} a, c${k} b)`, '')} SELECT * FROM c${n}`,
  'arrays of columns of WITH queries': (n) =>
    `WITH c0 AS (SELECT 1 AS y0)${times(n, (k) => `, c${k + 1} AS (SELECT *, 1 AS y${k + 1} FROM c${k}, y${k}.z)`, '')} SELECT 1 FROM c${n}`,
  'many WITH queries, the first read often': (n) =>
    `WITH ${times(n, (k) => `c${k} AS (SELECT ${k} AS x)`)} SELECT 1 FROM ${times(n, () => 'c0')}`,
  'WITH in pipes': (n) => `FROM shop.orders ${times(n, (k) => `|> WITH c${k} AS (SELECT ${k} AS x)`, ' ')} |> CROSS JOIN c0`,
  'WITH RECURSIVE': (n) =>
    `WITH RECURSIVE ${times(n, (k) => `c${k} AS (SELECT x FROM c${n - 1 - k})`)} SELECT * FROM c0`,
  'tables by comma': (n) => `SELECT 1 FROM ${times(n, (k) => `shop.orders t${k}`)}`,
  'natural joins': (n) => `SELECT 1 FROM shop.orders t${times(n, (k) => ` NATURAL JOIN shop.customers t${k}`, '')}`,
  'joins with conditions': (n) =>
    `SELECT 1 FROM shop.orders t0${times(n, (k) => ` JOIN shop.orders t${k + 1} ON t${k}.id = t${k + 1}.id`, '')}`,
  'joins USING': (n) => `SELECT 1 FROM shop.orders t${times(n, (k) => ` JOIN shop.orders t${k} USING (id)`, '')}`,
  'pipe joins': (n) => `FROM shop.orders${times(n, (k) => ` |> CROSS JOIN shop.customers AS t${k}`, '')}`,
  'pipe aliases': (n) => `FROM shop.orders${times(n, (k) => ` |> AS t${k} |> EXTEND 1 AS x${k}`, '')}`,
  'joins in parentheses': (n) =>
    `SELECT 1 FROM ${'('.repeat(40)}${times(n, (k) => `shop.orders t${k}`, ' CROSS JOIN ')}${')'.repeat(40)}`,
  'joins in parentheses, on the right': (n) =>
    `SELECT 1 FROM ${'(shop.orders CROSS JOIN '.repeat(40)}(${times(n, (k) => `shop.orders t${k}`, ' CROSS JOIN ')})${')'.repeat(40)}`,
  'arms of a UNION': (n) => times(n, (k) => `SELECT ${k} AS x${k}`, ' UNION ALL '),
  'arms of a UNION over a wide table': (n) => times(n, () => 'SELECT * FROM shop.wide', ' UNION ALL '),
  'many sub-queries in one list': (n) => `SELECT ${times(n, () => '(SELECT id FROM shop.orders)')}`,
  'names deep inside': (n) => {
    const inner = times(n, (k) => `t${k % 40}.id + x${k}`, ' + ')
    let sql = `(SELECT ${inner} FROM shop.orders t0)`
    for (let level = 1; level < 60; level++) sql = `(SELECT ${sql} FROM shop.orders t${level})`
    return `SELECT ${sql}`
  },
  'paths with calls': (n) => `SELECT x${'.y'.repeat(n)}(1)`,
  'fields of a struct': (n) => `SELECT STRUCT(${times(n, (k) => `${k} AS f${k}`)})`,
  'many calls in one sum': (n) => `SELECT ${times(n, () => 'ABS(1)', ' + ')}`,
  'IN lists': (n) => `SELECT 1 FROM shop.orders WHERE id IN (${times(n, String)})`,
  'PIVOT lists': (n) => `SELECT * FROM shop.orders PIVOT (SUM(total) FOR id IN (${times(n, String)}))`,
  'UNPIVOT lists': (n) => `SELECT * FROM shop.wide UNPIVOT (v FOR k IN (${times(n, (k) => `column_${k % 2000}`)}))`,
  'EXCEPT and REPLACE lists': (n) =>
    `SELECT * EXCEPT (${times(n, (k) => `a${k}`)}) REPLACE (${times(n, (k) => `1 AS b${k}`)}) FROM shop.orders`,
  'UNNEST of fields of an item of FROM': (n) =>
    `SELECT 1 FROM shop.orders shop, ${times(n, (k) => `UNNEST(shop.items.x${k})`)}`,
  'chains of UNNEST': (n) => `SELECT 1 FROM shop.orders t0${times(n, (k) => `, t${k}.items AS t${k + 1}`, '')}`,
  'wildcards': (n) => `SELECT 1 FROM ${times(Math.min(n, 45), (k) => `\`log.events_20${10 + (k % 10)}*\` w${k}`)}`,
  'a wildcard over many tables, used many times': (n) => `SELECT 1 FROM ${times(n, (k) => `\`log.part_*\` w${k}`)}`,
  'comments': (n) => `SELECT 1 ${'/**/'.repeat(n)}${'--\n'.repeat(n)}`,
  'blanks': (n) => `SELECT${' \t\n'.repeat(n)}1`,
  'a long string': (n) => `SELECT '${'\\\''.repeat(n)}'`,
  'a long triple string, not closed': (n) => `SELECT '''${"''a".repeat(n)}`,
  'strings': (n) => `SELECT ${times(n, () => "'a''b'".slice(0, 3))}`,
  'a long number': (n) => `SELECT ${'1'.repeat(n)}`,
  'names in backquotes': (n) => `SELECT ${times(n, (k) => `\`a b ${k}\``)}`,
  'a name in backquotes, of many parts': (n) => `SELECT 1 FROM \`${'a.'.repeat(n)}b\``,
  'UNNEST of a name in backquotes, of many parts': (n) => `SELECT 1 FROM shop.orders t, UNNEST(\`${'a.'.repeat(n)}b\`)`,
  'semicolons': (n) => `SELECT 1${';'.repeat(n)}`,
  'dots': (n) => `SELECT t${'.a'.repeat(n)} FROM shop.orders t`,
  'names like the generated alias': (n) => `SELECT ${times(n, (k) => `_vt${100_000 + k}`)} FROM shop.orders`,
  'parentheses': (n) => `SELECT ${'('.repeat(60)}${times(n, () => '(1)', ' + ')}${')'.repeat(60)}`,
  'brackets': (n) => `SELECT ${'['.repeat(60)}${times(n, () => '[1]')}${']'.repeat(60)}`,
  'CASE': (n) => `SELECT ${'CASE WHEN TRUE THEN '.repeat(n)}1${' END'.repeat(n)}`,
  'NOT': (n) => `SELECT ${'NOT '.repeat(n)}TRUE`,
}

export const DEEP: Readonly<Record<string, (depth: number) => string>> = {
  'parentheses': (n) => `SELECT ${'('.repeat(n)}1${')'.repeat(n)}`,
  'brackets': (n) => `SELECT ${'['.repeat(n)}1${']'.repeat(n)}`,
  'queries in parentheses': (n) => `${'('.repeat(n)}SELECT 1${')'.repeat(n)}`,
  'groups that become queries': (n) => `SELECT ${'('.repeat(n)}SELECT 1${') UNION ALL SELECT 1'.repeat(n - 1)})`,
  'scalar sub-queries': (n) => `${'SELECT ('.repeat(n)}SELECT 1${')'.repeat(n)}`,
  'sub-queries in FROM': (n) => `${'SELECT * FROM ('.repeat(n)}SELECT 1${')'.repeat(n)}`,
  'joins in parentheses': (n) => `SELECT * FROM ${'('.repeat(n)}shop.orders${')'.repeat(n)}`,
  'calls': (n) => `SELECT ${'ABS('.repeat(n)}1${')'.repeat(n)}`,
  'EXTRACT': (n) => `SELECT ${'EXTRACT(DAY FROM '.repeat(n)}d${')'.repeat(n)}`,
  'UNNEST': (n) => `SELECT 1 FROM ${'UNNEST(ARRAY(SELECT x FROM '.repeat(n)}shop.orders${'))'.repeat(n)}`,
  'WITH in WITH': (n) => `${'WITH a AS ('.repeat(n)}SELECT 1${') SELECT 1'.repeat(n)}`,
  'pipes in pipes': (n) => `${'FROM shop.orders |> UNION ALL ('.repeat(n)}SELECT 1${')'.repeat(n)}`,
  'REPLACE': (n) => `${'SELECT * REPLACE (('.repeat(n)}SELECT 1${') AS x) FROM shop.orders'.repeat(n)}`,
  'types': (n) => `SELECT CAST(NULL AS ${'ARRAY<STRUCT<a '.repeat(n)}INT64${'>>'.repeat(n)})`,
}
