// Tests which queries run without hash joins or hashed groups. Ordinary queries keep both.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, type Guard } from '../../../../../test/support/postgres-guard.ts'
import { parseText } from '../syntax/parse-text.ts'
import { readStatement } from '../syntax/read-tree.ts'
import { switchedOff } from './unhashed.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const LONG = 'repeat(name, 100)'
const JOINS = 'enable_hashjoin'
const GROUPS = 'enable_hashagg'
const BOTH = 'enable_hashjoin enable_hashagg'
const totals = 'SELECT customer_id AS id, sum(total) AS n, max(status) AS s FROM orders GROUP BY customer_id'

const CASES: readonly (readonly [string, string, string])[] = [
  // Ordinary queries.
  ['a join', 'SELECT c.name, o.total FROM customers c JOIN orders o ON o.customer_id = c.id', ''],
  [
    'a join by USING',
    'SELECT a.name FROM customers a JOIN regions b USING (country) JOIN stores s USING (country)',
    '',
  ],
  [
    'a join by WHERE',
    'SELECT c.name FROM customers c, orders o, order_items i WHERE o.customer_id = c.id AND i.order_id = o.id',
    '',
  ],
  ['a join by an expression', 'SELECT 1 FROM customers c JOIN regions r ON upper(c.country) = r.country', ''],
  [
    'a join by equalities in each arm of OR',
    "SELECT 1 FROM customers c, orders o WHERE (c.id = o.customer_id AND c.name = 'a') OR (o.customer_id = c.id AND c.name = 'b')",
    '',
  ],
  [
    'two grouped queries',
    `WITH a AS (${totals}), b AS (${totals}) SELECT a.id, a.n / b.n FROM a JOIN b ON a.id = b.id`,
    '',
  ],
  [
    'percentages',
    'WITH a AS (SELECT customer_id, round(100.0 * count(*) / sum(total)::numeric, 2) AS share, round(avg(total)::numeric, 2) AS mean FROM orders GROUP BY 1) SELECT c.name, a.share FROM customers c JOIN a ON a.customer_id = c.id',
    '',
  ],
  [
    'one row of totals',
    'SELECT o.id, o.total / t.sum FROM orders o JOIN customers c ON c.id = o.customer_id, (SELECT sum(total) FROM orders) t',
    '',
  ],
  [
    'a row of parameters',
    'WITH p AS (SELECT 5 AS most) SELECT c.name FROM customers c JOIN orders o ON o.customer_id = c.id, p WHERE o.total < p.most',
    '',
  ],
  [
    'a calendar',
    "SELECT d, count(o.id) FROM generate_series('2024-01-01'::date, '2024-12-31', interval '1 day') d LEFT JOIN customers o ON o.created_at = d GROUP BY d",
    '',
  ],
  [
    'a calendar of ten years beside a list',
    "SELECT d, v.n, count(o.id) FROM generate_series('2015-01-01'::date, '2024-12-31', interval '1 day') d, (VALUES (1), (2)) v(n) LEFT JOIN customers o ON o.id = v.n GROUP BY d, v.n",
    '',
  ],
  [
    'a list of names and rows of a table with a limit',
    "SELECT 1 FROM unnest('{a,b,c}'::text[]) n, (SELECT id FROM customers LIMIT 1000) c JOIN orders o ON o.customer_id = c.id",
    '',
  ],
  [
    'months of some years',
    'SELECT y, m FROM generate_series(2015, 2025) y, generate_series(1, 12) m LEFT JOIN customers c ON c.id = m',
    '',
  ],
  ['a high limit', 'SELECT 1 FROM (SELECT id FROM customers LIMIT 50000) c JOIN orders o ON o.customer_id = c.id', ''],
  ['a list of values', "SELECT 1 FROM customers c JOIN unnest(string_to_array('a;b;c', ';')) n ON n = c.name", ''],
  [
    'elements of JSON',
    `SELECT 1 FROM customers c JOIN jsonb_array_elements_text('["a","b"]'::jsonb) n ON n = c.name`,
    '',
  ],
  ['elements of a column', 'SELECT p.sku, tag FROM products p, unnest(p.tags) tag JOIN regions r ON r.code = tag', ''],
  [
    'a hierarchy',
    'WITH RECURSIVE t AS (SELECT id, customer_id FROM orders UNION ALL SELECT o.id, o.customer_id FROM orders o JOIN t ON o.customer_id = t.id) SELECT count(*) FROM t JOIN customers c ON c.id = t.id',
    '',
  ],
  [
    'IN and EXISTS',
    'SELECT 1 FROM customers c WHERE id IN (SELECT customer_id FROM orders) AND EXISTS (SELECT FROM orders o WHERE o.customer_id = c.id)',
    '',
  ],
  [
    'labels',
    `SELECT ${Array.from({ length: 30 }, (_, n) => `sum(CASE WHEN status = 'a' THEN total ELSE 0 END) AS s${n}`).join()} FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name`,
    '',
  ],
  [
    'max of a stored text in groups',
    'SELECT c.country, max(c.name) FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.country',
    '',
  ],
  ['long values without a join', `SELECT max(length(n)) FROM (SELECT ${LONG} AS n FROM customers) q`, ''],
  ['a cross join of numbers alone', 'SELECT count(*) FROM generate_series(1, 100) a', ''],
  // Queries that make many rows or long values.
  [
    'long values in a joined sub-select',
    `SELECT 1 FROM customers a JOIN (SELECT id, ${LONG} AS n FROM customers) b ON a.id = b.id`,
    JOINS,
  ],
  [
    'long values in a joined WITH',
    `WITH b AS (SELECT id, repeat('x', 5000) AS n FROM customers) SELECT 1 FROM customers a LEFT JOIN b ON a.id = b.id`,
    JOINS,
  ],
  ['long values in IN', `SELECT 1 FROM customers WHERE name IN (SELECT ${LONG} FROM customers)`, JOINS],
  [
    'long values in NOT EXISTS',
    `SELECT 1 FROM customers a WHERE NOT EXISTS (SELECT FROM (SELECT id, ${LONG} AS n FROM customers OFFSET 0) b WHERE b.id = a.id AND b.n > a.name)`,
    JOINS,
  ],
  [
    'long numbers',
    'SELECT 1 FROM customers a JOIN (SELECT id, id + 1e100000 AS n FROM customers) b ON a.id = b.id',
    JOINS,
  ],
  [
    'a number read from a text',
    "SELECT 1 FROM customers a JOIN (SELECT id, ('1e' || '99999')::numeric + id AS n FROM customers) b ON a.id = b.id",
    JOINS,
  ],
  [
    'a number that doubles',
    `SELECT 1 FROM customers c JOIN (${Array.from({ length: 9 }).reduce<string>((q) => `SELECT id, x * x AS x FROM (${q}) q`, 'SELECT id, id::numeric AS x FROM customers')}) q ON q.id = c.id`,
    JOINS,
  ],
  [
    'a join without equality',
    'SELECT 1 FROM customers a JOIN orders b ON b.id > a.id JOIN products p ON p.id = b.id',
    JOINS,
  ],
  [
    'a join by two expressions',
    'SELECT 1 FROM customers a JOIN orders b ON b.id * 0 = a.id * 0 JOIN products p ON p.id = b.id',
    JOINS,
  ],
  [
    'a join by an equality in one arm of OR',
    'SELECT 1 FROM customers c, orders o WHERE c.id = o.customer_id OR c.name > o.status::text',
    JOINS,
  ],
  ['a series', 'SELECT 1 FROM customers a JOIN generate_series(1, (SELECT 100000000)) b ON a.id = b * 0', JOINS],
  ['a series of many numbers', 'SELECT 1 FROM customers a JOIN generate_series(1, 9000000) b ON a.id = b * 0', JOINS],
  [
    'a series of small steps',
    "SELECT 1 FROM customers a JOIN generate_series('2024-01-01'::timestamptz, '2034-01-01', '1 ms') b ON a.created_at = b",
    JOINS,
  ],
  ['a series of fractions', 'SELECT 1 FROM customers a JOIN generate_series(1, 2, 0.0000001) b ON a.id = b', JOINS],
  [
    'a series in a select list',
    'SELECT 1 FROM customers a JOIN (SELECT id, generate_series(1, id) FROM orders) b ON a.id = b.id',
    JOINS,
  ],
  [
    'a recursion that counts',
    'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 1 FROM customers a JOIN n ON n.i = a.id',
    JOINS,
  ],
  [
    'two short series',
    'SELECT 1 FROM customers c JOIN (SELECT 0 * x AS k FROM generate_series(1, 5000) x, generate_series(1, 500) y OFFSET 0) q ON q.k = c.id',
    JOINS,
  ],
  [
    'two series in a query of EXISTS',
    'SELECT 1 FROM customers c WHERE NOT EXISTS (SELECT FROM (SELECT 0 * x AS k, y FROM generate_series(1, 5000) x, generate_series(1, 500) y OFFSET 0) q WHERE q.k = c.id AND q.y > c.id)',
    JOINS,
  ],
  [
    'two rows with a limit',
    'SELECT 1 FROM customers c JOIN (SELECT a.id FROM (SELECT id FROM orders LIMIT 1000) a, (SELECT id FROM orders LIMIT 1000) b) q ON q.id = c.id',
    JOINS,
  ],
  [
    'nested sub-selects of few rows',
    'SELECT 1 FROM customers c JOIN (SELECT 1 AS k FROM (SELECT 1 FROM generate_series(1, 1000) a OFFSET 0) x, (SELECT 1 FROM generate_series(1, 1000) b OFFSET 0) y) q ON q.k = c.id',
    JOINS,
  ],
  [
    'WITH queries of few rows',
    'WITH a AS (SELECT x FROM generate_series(1, 1000) x) SELECT 1 FROM a JOIN customers c ON c.id = a.x, a b',
    JOINS,
  ],
  [
    'a list and a series',
    "SELECT 1 FROM customers c JOIN (SELECT n FROM unnest('{1,2,3,4,5,6,7,8,9,10,11}'::int[]) n, generate_series(1, 1000)) q ON q.n = c.id",
    JOINS,
  ],
  [
    'a calendar of millennia',
    "SELECT 1 FROM customers c JOIN generate_series('0001-01-01'::date, '9999-12-31', interval '1 day') d ON c.created_at = d",
    JOINS,
  ],
  [
    'a repeated text that is split',
    "SELECT 1 FROM customers c JOIN string_to_table(repeat('a,', 10000), ',') t ON t = c.name",
    JOINS,
  ],
  [
    'a text that is split into many letters, and a series',
    `SELECT 1 FROM customers c JOIN (SELECT t FROM string_to_table('${'a'.repeat(900)}', NULL) t, generate_series(1, 100)) q ON q.t = c.name`,
    JOINS,
  ],
  [
    'arrays of the columns of each row, multiplied',
    `SELECT 1 FROM customers c JOIN orders o ON o.customer_id = c.id, ${['x', 'y', 'z'].map((name) => `unnest(ARRAY[${Array(30).fill('c.name').join()}]) ${name}`).join()}`,
    JOINS,
  ],
  [
    'an array of the columns of each row',
    'SELECT x FROM customers c JOIN orders o ON o.customer_id = c.id, unnest(ARRAY[c.name, c.country]) x',
    '',
  ],
  ['groups of long values', `SELECT id, max(${LONG}) FROM customers GROUP BY id`, GROUPS],
  ['groups of an array of long values', `SELECT id, max(ARRAY[${LONG}]) FROM customers GROUP BY id`, GROUPS],
  ['groups of long numbers', 'SELECT id, sum(1e100000 + id) FROM customers GROUP BY id', GROUPS],
  ['grouping sets of long values', `SELECT id, min(${LONG}) FROM customers GROUP BY CUBE (id, name)`, GROUPS],
  [
    'an aggregate of the outer query',
    `SELECT (SELECT max(q.n)) FROM (SELECT id, ${LONG} AS n FROM customers) q GROUP BY q.id`,
    GROUPS,
  ],
  ['groups of a stored text for many rows', 'SELECT b.id, max(a.name) FROM customers a, orders b GROUP BY b.id', BOTH],
  [
    'groups of numbers of a fixed type',
    "SELECT id, max(length(repeat(name, 100))), count(name), bool_and(name > 'a') FROM customers GROUP BY id",
    '',
  ],
]
for (const [name, sql, expected] of CASES) {
  test(`a query runs ${expected === '' ? 'with all hash tables' : `without ${expected}`}: ${name}`, async () => {
    assert.equal((await guard.confined(sql, shop())).switchedOff, expected)
  })
}

test('a chain of 60 EXCEPT is judged in less than a second', async () => {
  const before = process.threadCpuUsage()
  await guard.judge(Array.from({ length: 60 }, () => 'SELECT id FROM orders').join(' EXCEPT '), shop())
  const { user, system } = process.threadCpuUsage(before)
  // Without a memory of counted queries, 60 arms blocked the main thread for 3.3 s.
  assert.ok(user + system < 1_000_000, `${user + system} µs`)
})

test('a second cast of a parameter switches hash joins off only if it may make the text longer', async () => {
  const settings = async (sql: string, type: string, value: string): Promise<string> =>
    (
      await guard.confined(`SELECT c.name FROM customers c JOIN ${sql} x ON x = c.name`, shop(), {
        params: [{ type, value }],
      })
    ).switchedOff
  assert.equal(await settings("unnest(string_to_array($1::text, ',')::text[])", 'text', 'a,b'), '')
  assert.equal(await settings('unnest($1::text[])', 'text[]', '{a,b}'), '')
  // The text of a number may be long.
  assert.equal(await settings('string_to_table($1::text, NULL)', 'numeric', '1e100000'), JOINS)
  assert.equal(await settings('string_to_table($1::text, NULL)', 'numeric[]', '{1e900}'), JOINS)
})

test('a cached query with other numbers gets the planner settings for these numbers', async () => {
  const exposed = shop()
  const many = 'SELECT count(*) FROM customers a JOIN generate_series(1, NUMBER) b ON a.id = b'
  const settings = async (number: number): Promise<string> =>
    (await guard.confined(many.replace('NUMBER', String(number)), exposed)).switchedOff
  for (const number of [5, 6, 5, 7]) assert.equal(await settings(number), '')
  for (const number of [9_000_000, 8_000_000, 9_000_000]) assert.equal(await settings(number), JOINS)
})

/** Returns the value with its parts, and counts in `steps` how often the list of its parts is read. */
function counted<T extends object>(value: T, steps: { count: number }): T {
  return new Proxy(value, {
    get: (target, key) => {
      const part: unknown = Reflect.get(target, key)
      return typeof part === 'object' && part !== null ? counted(part, steps) : part
    },
    ownKeys: (target) => {
      steps.count += 1
      return Reflect.ownKeys(target)
    },
  })
}

test('the work for nested aggregates is proportional to their number', async () => {
  const stepsFor = async (levels: number): Promise<number> => {
    const { text } = await guard.confined(`SELECT ${'json_agg('.repeat(levels)}1${')'.repeat(levels)}`, shop())
    const parsed = parseText(text)
    assert.ok(parsed.kind === 'tree')
    const steps = { count: 0 }
    switchedOff(
      counted(readStatement(parsed.tree).select, steps),
      {
        hasLongRows: false,
        comparesOpen: false,
        keepsOpen: false,
        states: undefined,
        digitsMax: undefined,
        copies: undefined,
      },
      false,
    )
    return steps.count
  }
  const [few, many] = [await stepsFor(12), await stepsFor(24)]
  assert.ok(many < 2.5 * few, `${few} steps for 12 levels, ${many} for 24`)
})
