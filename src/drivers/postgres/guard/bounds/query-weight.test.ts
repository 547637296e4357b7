// Tests that short texts that cause much work are refused immediately, before the database is used.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop, table, extension } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

function nested(count: number, innermost: string, around: (query: string) => string): string {
  let query = innermost
  for (let n = 0; n < count; n++) query = around(query)
  return query
}

/** Asserts that the process used little CPU time since `before`. Other load does not change its CPU time. */
function assertQuick(before: NodeJS.CpuUsage): void {
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 3_000_000, `it took ${(user + system) / 1000} ms of CPU time`)
}

const list = (count: number, item: (n: number) => string | number, separator = ', '): string =>
  Array.from({ length: count }, (_, n) => item(n)).join(separator)

const wide = shop({}, [
  table(
    'wide',
    Array.from({ length: 1_500 }, (_, n) => `column_${n} int4`),
  ),
])

const SORTED = 'SELECT id FROM customers ORDER BY name'
for (const [name, sql, expected] of [
  [
    'sorts of a WITH that is copied',
    `WITH a AS NOT MATERIALIZED (${SORTED}) ${list(200, () => 'SELECT id FROM a', ' UNION ALL ')}`,
    'limit: sorts',
  ],
  [
    'sorts of WITH queries that are copied into each other',
    `WITH a AS NOT MATERIALIZED (${SORTED}), b AS NOT MATERIALIZED (${list(20, () => 'SELECT id FROM a', ' UNION ALL ')}) ${list(10, () => 'SELECT id FROM b', ' UNION ALL ')}`,
    'limit: sorts',
  ],
  ['sorts of a WITH that is kept', `WITH a AS (${SORTED}) ${list(90, () => 'SELECT id FROM a', ' UNION ALL ')}`, null],
  [
    'sorts of WITH queries in a row',
    `WITH a0 AS (${SORTED}), ${list(90, (n) => `a${n + 1} AS (SELECT * FROM a${n} ORDER BY 1)`)} TABLE a90`,
    null,
  ],
  [
    'sorts of a WITH that many WITH queries read',
    `WITH a AS (${list(10, () => `(${SORTED})`, ' UNION ALL ')}), ${list(50, (n) => `b${n} AS (SELECT * FROM a)`)} ${list(50, (n) => `SELECT id FROM b${n}`, ' UNION ALL ')}`,
    null,
  ],
] as const) {
  test(`the limit on sorts counts the copies that PostgreSQL makes: ${name}`, async () => {
    const said = say(await guard.judge(sql, shop()))
    if (expected === null) assert.match(said, /^\(*WITH/)
    else assert.equal(said, expected)
  })
}

for (const [name, sql, expected] of [
  [
    'stars that double',
    nested(40, 'SELECT * FROM orders', (query) => `SELECT a.*, a.* FROM (${query}) a`),
    'limit: columns',
  ],
  [
    'stars that double through WITH',
    `WITH c0 AS (SELECT * FROM orders), ${list(30, (n) => `c${n + 1} AS (SELECT a.*, b.* FROM c${n} a, c${n} b)`)} TABLE c30`,
    'limit: columns',
  ],
  [
    'fields of rows of fields',
    nested(14, 'SELECT 1 AS a, 2 AS b', (query) => `SELECT ((SELECT q FROM (${query}) q)).*`),
    'column: a',
  ],
  ['a row of stars', `SELECT ROW(${list(400, () => 'o.*')}) FROM orders o`, 'limit: columns'],
  ['rows of wide tables', `SELECT ${list(60, (n) => `a${n}`)} FROM ${list(60, (n) => `wide a${n}`)}`, 'limit: length'],
  ['joins of wide tables', `SELECT 1 FROM ${list(400, (n) => `wide a${n}`, ' CROSS JOIN ')}`, 'limit: sorts'],
  ['more tables than one join may have', `SELECT 1 FROM ${list(101, (n) => `orders a${n}`)}`, 'limit: JOIN'],
  [
    'more tables in a join through WITH',
    `WITH a AS NOT MATERIALIZED (SELECT 1 FROM ${list(6, (n) => `orders a${n}`)}) SELECT 1 FROM ${list(17, (n) => `a a${n}`)}`,
    'limit: JOIN',
  ],
  ['more sorts than the limit', `SELECT ${list(151, (n) => `count(DISTINCT id + ${n})`)} FROM orders`, 'limit: sorts'],
  ['more tables than the limit on the weight', `SELECT 1 FROM ${list(2_900, (n) => `orders a${n}`)}`, 'limit: WITH'],
  ['a list of too many columns', `SELECT 1 FROM (SELECT ${list(4_000, () => '1 a')}) q`, 'limit: columns'],
] as const) {
  test(`a query is refused immediately because of ${name}`, async () => {
    const before = process.cpuUsage()
    assert.equal(say(await guard.judge(sql, wide)), expected)
    assertQuick(before)
  })
}

for (const [name, clause] of [
  ['ORDER BY', 'ORDER BY'],
  ['GROUP BY', 'GROUP BY'],
] as const) {
  test(`an output that ${name} names thousands of times is resolved once`, async () => {
    const before = process.cpuUsage()
    const sql = `SELECT ${list(1_600, () => '1 AS x')} FROM orders ${clause} ${list(6_000, () => 'x')}`
    assert.match(say(await guard.judge(sql, wide)), /^SELECT 1 AS "x"/)
    assertQuick(before)
  })
}

const citext = extension('citext', '1.6', { functions: ['citext'], operators: ['=', '<', '>', '<=', '>=', '<>'] })
const mails = shop(
  {
    extensions: [citext],
    types: [
      {
        ...{ oid: 20_000, schema: 'public', name: 'citext', kind: 'base', extension: 'citext', of: null, ofOid: 0 },
        ...{ attributes: [], delimiter: ',', refused: null },
      },
    ],
  },
  [table('mails', ['id int4', 'mail public.citext'])],
)

for (const sql of [
  "SELECT id FROM mails WHERE (mail, id) = ('A', 1)",
  "SELECT id FROM mails WHERE (mail, id) IN (('A', 1), ('B', 2))",
  "SELECT id FROM mails WHERE (id, mail) IN (SELECT 1, 'A')",
  "SELECT id FROM mails WHERE ('A', 1) IN (SELECT mail, id FROM mails)",
  "SELECT CASE (mail, 1) WHEN ('A', 1) THEN 1 END FROM mails",
  "SELECT (mail, 1) IS DISTINCT FROM ('A', 1) FROM mails",
  "SELECT v.column1 = 'A' FROM (VALUES ('x'), ((SELECT mail FROM mails))) v",
]) {
  test(`a row comparison that would not use citext's operator is refused: ${sql}`, async () => {
    assert.equal(say(await guard.judge(sql, mails)), 'operator: =')
  })
}
