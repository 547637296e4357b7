// Tests which queries of partitioned tables are refused, because PostgreSQL would copy too much for each partition.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { shop, table } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const COLUMNS = ['id int4', 'w int4', 'x text', 'day date']
const exposed = shop({}, [
  table('months', COLUMNS, { kind: 'p', tables: 13, key: ['id'] }),
  table('days', COLUMNS, { kind: 'p', tables: 366, key: ['id'] }),
  table('hours', COLUMNS, { kind: 'p', tables: 2_001 }),
  table(
    'wide',
    Array.from({ length: 100 }, (_, n) => `c${n} int4`),
    { kind: 'p', tables: 366 },
  ),
  table('notes', COLUMNS, { tuples: 50_000 }),
  table('kinds', COLUMNS, { tuples: 1_000 }),
  table('fresh', COLUMNS, { tuples: -1 }),
])

const list = (count: number, item: (n: number) => string | number, by = ', '): string =>
  Array.from({ length: count }, (_, n) => item(n)).join(by)
const or = (count: number): string => list(count, (n) => `w + ${n} = 0`, ' OR ')
const numbers = (count: number): string => list(count, String)
const selfJoins = (count: number): string =>
  `days t0 ${list(count - 1, (n) => `JOIN days t${n + 1} ON t${n + 1}.id = t0.id`, ' ')}`

const ANSWERED: readonly (readonly [string, string])[] = [
  [
    '20 conditions and a list of 500',
    `SELECT id, w, x FROM days WHERE w IN (${numbers(500)}) AND ${list(20, (n) => `w <> ${n}`, ' AND ')}`,
  ],
  ['a list of 2,000', `SELECT id FROM days WHERE id IN (${numbers(2_000)})`],
  ['120 conditions in OR', `SELECT count(*) FROM days WHERE ${or(120)}`],
  ['300 conditions over 12 partitions', `SELECT count(*) FROM months WHERE ${or(300)}`],
  ['2,000 conditions without partitions', `SELECT count(*) FROM notes WHERE ${or(2_000)}`],
  [
    'a list of 250 over 2,000 partitions',
    `SELECT id, w, x FROM hours WHERE day > '2024-01-01' AND w IN (${numbers(250)}) ORDER BY id`,
  ],
  [
    '5 self-joins and 20 conditions',
    `SELECT t0.*, t4.x FROM ${selfJoins(5)} WHERE ${list(20, (n) => `t0.w <> ${n}`, ' AND ')}`,
  ],
  ['8 self-joins', `SELECT count(*) FROM ${selfJoins(8)}`],
  [
    '10 WITH queries',
    `WITH ${list(10, (n) => `c${n} AS (SELECT day, count(*) AS n, sum(w) AS s FROM days WHERE id > ${n} AND x LIKE 'a%' GROUP BY day)`)} SELECT c0.* FROM c0 ${list(9, (n) => `JOIN c${n + 1} USING (day)`, ' ')}`,
  ],
  ['400 sums', `SELECT ${list(400, (n) => `sum(CASE WHEN w = ${n} THEN id END)`)} FROM days`],
  [
    '400 outputs of groups',
    `SELECT ${list(400, (n) => `s + ${n}`)} FROM (SELECT day, sum(w) AS s FROM days GROUP BY day) q`,
  ],
  ['400 outputs of a join', `SELECT ${list(400, (n) => `d.w + n.w + ${n}`)} FROM days d JOIN notes n USING (id)`],
  [
    '300 conditions on another table',
    `SELECT count(*) FROM days d JOIN notes n USING (id) WHERE ${list(300, (n) => `n.w + ${n} = 0`, ' OR ')}`,
  ],
  [
    '1,000 conditions outside',
    `WITH v AS MATERIALIZED (SELECT id, w FROM days WHERE day > '2024-01-01') SELECT count(*) FROM v WHERE ${or(1_000)}`,
  ],
  ['1,000 conditions behind OFFSET 0', `SELECT count(*) FROM (SELECT id, w FROM days OFFSET 0) v WHERE ${or(1_000)}`],
  [
    'a list as VALUES',
    `SELECT count(*) FROM days d JOIN (VALUES ${list(4_000, (n) => `(${n})`)}) AS l(x) ON l.x = d.id`,
  ],
  ['ONLY the parent', `SELECT count(*) FROM ONLY days WHERE ${or(1_000)}`],
  [
    '100 conditions around 100 arms',
    `SELECT count(*) FROM (${list(100, () => 'SELECT id, w FROM notes', ' UNION ALL ')}) q WHERE ${or(100)}`,
  ],
  [
    'a long list in a union of two',
    `SELECT count(*) FROM (SELECT id FROM notes UNION ALL SELECT id FROM notes) q WHERE id IN (${numbers(5_000)})`,
  ],
]

const REFUSED: readonly (readonly [string, string])[] = [
  ['1,000 conditions in OR', `SELECT count(*) FROM days WHERE ${or(1_000)}`],
  ['a list of 5,000', `SELECT count(*) FROM days WHERE w IN (${numbers(5_000)})`],
  ['a list of 5,000 as an array', `SELECT count(*) FROM days WHERE w = ANY ('{${numbers(5_000)}}')`],
  ['a list that is split', `SELECT count(*) FROM days WHERE x <> ALL (string_to_array('${numbers(2_000)}', ','))`],
  ['a list that is filled', 'SELECT count(*) FROM days WHERE w = ANY (array_fill(1, ARRAY[10000]))'],
  ['a long CASE', `SELECT count(*) FROM days WHERE CASE ${list(400, (n) => `WHEN w = ${n} THEN ${n}`, ' ')} END > 3`],
  ['outputs', `SELECT ${list(1_000, (n) => `w + ${n}`)} FROM days`],
  ['sort keys', `SELECT id FROM days ORDER BY ${list(400, (n) => `w + ${n}`)}`],
  ['groups', `SELECT count(*) FROM days GROUP BY ${list(400, (n) => `w + ${n}`)}`],
  ['conditions around a sub-select', `SELECT count(*) FROM (SELECT id, w FROM days) q WHERE ${or(1_000)}`],
  ['conditions around a WITH', `WITH q AS (SELECT id, w FROM days) SELECT count(*) FROM q WHERE ${or(1_000)}`],
  ['conditions around groups', `SELECT * FROM (SELECT w, count(*) FROM days GROUP BY w) q WHERE ${or(1_000)}`],
  [
    'conditions of ON',
    `SELECT count(*) FROM notes n LEFT JOIN days d ON ${list(400, (n) => `d.w + ${n} = n.w`, ' OR ')}`,
  ],
  [
    'computed columns',
    `SELECT count(*) FROM (SELECT w + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 AS v FROM days) q WHERE ${list(100, (n) => `v = ${n}`, ' OR ')}`,
  ],
  ['whole rows', `SELECT count(*) FROM wide q WHERE ${list(12, (n) => `to_jsonb(q) ->> 'c1' = '${n}'`, ' OR ')}`],
  ['sub-selects', `SELECT ${list(40, (n) => `(SELECT count(*) FROM days WHERE w = ${n})`)}`],
  [
    'a sub-select that is copied',
    `SELECT ${list(100, (n) => `x + ${n}`)} FROM (SELECT (SELECT max(w) FROM days) AS x FROM notes) q`,
  ],
  [
    'a WITH that is copied',
    `WITH v AS NOT MATERIALIZED (SELECT max(w) AS m FROM days) ${list(60, () => 'SELECT m FROM v', ' UNION ALL ')}`,
  ],
  ['arms of UNION', list(60, (n) => `SELECT w + ${n} FROM days`, ' UNION ')],
  ['12 self-joins', `SELECT count(*) FROM ${selfJoins(12)}`],
  [
    'self-joins by IN',
    `SELECT count(*) FROM notes WHERE ${list(12, (n) => `id IN (SELECT w FROM days WHERE id > ${n})`, ' AND ')}`,
  ],
  ['min and max', `SELECT ${list(10, (n) => `min(w + ${n}), max(id + ${n})`)} FROM days WHERE ${or(30)}`],
  [
    '1,000 conditions around 100 arms',
    `SELECT count(*) FROM (${list(100, () => 'SELECT id, w FROM notes', ' UNION ALL ')}) q WHERE ${or(1_000)}`,
  ],
  ['a sample', `SELECT count(*) FROM days TABLESAMPLE bernoulli(5) WHERE ${or(1_000)}`],
]

describe('queries of partitioned tables', () => {
  for (const [name, sql] of ANSWERED) {
    test(`answered: ${name}`, async () => {
      assert.match(say(await guard.judge(sql, exposed)), /^(?:SELECT|WITH) /)
    })
  }
  for (const [name, sql] of REFUSED) {
    test(`refused: ${name}`, async () => {
      const verdict = await guard.judge(sql, exposed)
      assert.equal(
        verdict.kind === 'denied' ? verdict.blocked.name : '',
        'partitions',
        JSON.stringify(verdict).slice(0, 300),
      )
    })
  }

  test('the refusal names the table, its partitions and the limit, and says what to write', async () => {
    const verdict = await guard.judge(`SELECT count(*) FROM days WHERE ${or(1_000)}`, exposed)
    assert.ok(verdict.kind === 'denied')
    assert.match(verdict.why, /table days has 366 partitions .* limit is 400000$/)
    assert.match(verdict.hint, /MATERIALIZED.*VALUES/)
  })
})

describe('lists in parameters', () => {
  const array = (count: number): string => `{${numbers(count)}}`
  const ask = async (sql: string, params: readonly string[]): Promise<string> =>
    say(await guard.judge(sql, exposed, { params }))

  test('a list of 1,000 is answered, one of 5,000 refused, also if the shape of the query is known', async () => {
    const sql = 'SELECT id FROM days WHERE w = ANY ($1::int[])'
    for (let n = 0; n < 4; n++) {
      assert.match(await ask(sql, [array(1_000)]), /^SELECT /)
      assert.equal(await ask(sql, [array(5_000)]), 'limit: partitions')
    }
  })

  test('all lists count together', async () => {
    const sql = 'SELECT id FROM days WHERE w = ANY ($1::int[]) OR id <> ALL ($2::int[])'
    assert.match(await ask(sql, [array(900), array(900)]), /^SELECT /)
    assert.equal(await ask(sql, [array(1_500), array(1_500)]), 'limit: partitions')
  })

  test('a parameter from which a function makes a list counts each letter', async () => {
    const sql = "SELECT id FROM days WHERE x = ANY (string_to_array($1, ','))"
    assert.match(await ask(sql, [numbers(300)]), /^SELECT /)
    assert.equal(await ask(sql, [numbers(1_000)]), 'limit: partitions')
  })

  test('without partitions, a list may be as long as a parameter', async () => {
    assert.match(await ask('SELECT id FROM notes WHERE w = ANY ($1::int[])', [array(8_000)]), /^SELECT /)
  })
})

test('EXISTS inside a condition or an output of a partitioned table gets no large hash table', async () => {
  const exists = (from: string): string => `EXISTS (SELECT FROM ${from} n WHERE n.id = t.id)`
  const printed = async (sql: string): Promise<string> => say(await guard.judge(sql, exposed))
  for (const sql of [
    `SELECT count(*) FROM days t WHERE ${exists('notes')} OR w = 0`,
    `SELECT count(*) FROM days t WHERE ${exists('fresh')} OR w = 0`,
    `SELECT count(*) FROM days t WHERE ${exists('kinds, notes')} OR w = 0`,
    `SELECT count(*) FROM days t WHERE ${list(3, () => exists('kinds'), ' OR ')}`,
    `SELECT CASE WHEN ${exists('notes')} THEN 1 END FROM days t`,
  ]) {
    assert.match(await printed(sql), /OFFSET 0\)/, sql)
  }
  for (const sql of [
    `SELECT count(*) FROM days t WHERE ${exists('notes')} AND NOT ${exists('notes')}`,
    `SELECT count(*) FROM days t WHERE ${exists('kinds')} OR w = 0`,
    `SELECT count(*) FROM notes t WHERE ${exists('notes')} OR w = 0`,
    `SELECT count(*) FILTER (WHERE ${exists('notes')}) FROM days t`,
  ]) {
    assert.doesNotMatch(await printed(sql), /OFFSET/, sql)
  }
})
