// Tests which conditions are printed inside COALESCE, so that the planner does not estimate them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop, table } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, type Guard } from '../../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const exposed = shop({}, [table('notes', ['id int4', 'a text', 'b text', 'active bool', 'ip inet'])])
const or = (count: number, arm: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => arm(n)).join(' OR ')
const and = (count: number, arm: (n: number) => string): string => or(count, arm).replaceAll(' OR ', ' AND ')
const like = (n: number): string => `a ILIKE '%w${n}%'`
const joined = (n: number): string => (n % 2 ? 'x.a = y.b' : 'x.b = y.a')

/** Ordinary queries. */
const SAME: readonly (readonly [string, string])[] = [
  ['50 ILIKE in OR', `SELECT id FROM notes WHERE ${or(50, like)}`],
  ['50 ILIKE in OR and a key', `SELECT id FROM notes WHERE id = 1 AND (${or(50, like)})`],
  [
    'arrays',
    "SELECT id FROM notes WHERE id = ANY ('{1,2,3}') AND a = ANY (string_to_array('a,b,c', ',')) AND b <> ALL (ARRAY['a', 'b'])",
  ],
  ['a long list', `SELECT id FROM notes WHERE id IN (${and(2_000, String).replaceAll(' AND', ',')})`],
  ['1,000 comparisons in OR', `SELECT id FROM notes WHERE ${or(1_000, (n) => `a = 'x${n}' AND id < ${n}`)}`],
  [
    'a long CASE',
    `SELECT CASE ${or(300, (n) => `WHEN ${like(n)} THEN ${n}`).replaceAll(' OR ', ' ')} END FROM notes WHERE a ILIKE '%x%'`,
  ],
  [
    'counts with filters',
    `SELECT ${or(200, (n) => `count(*) FILTER (WHERE ${like(n)})`).replaceAll(' OR ', ', ')} FROM notes WHERE a ILIKE '%x%'`,
  ],
  [
    '100 joins',
    `SELECT 1 FROM notes t0 ${or(60, (n) => `JOIN notes t${n + 1} ON t${n}.a = t${n + 1}.b`).replaceAll(' OR ', ' ')}`,
  ],
  ['remainders', `SELECT id FROM notes WHERE ${or(300, (n) => `id % ${n + 2} = 0`)}`],
]

/** Queries whose conditions the planner would estimate for too long, with the number of conditions in COALESCE. */
const HIDDEN: readonly (readonly [string, string, number])[] = [
  ['LIKE in OR', `SELECT id FROM notes WHERE id = 1 AND (${or(101, like)})`, 1],
  ['LIKE in AND', `SELECT id FROM notes WHERE id = 1 AND ${and(101, like)}`, 3],
  ['regular expressions in NOT', `SELECT id FROM notes WHERE NOT (${or(101, (n) => `a ~ 'w${n}'`)})`, 1],
  [
    'LIKE ANY',
    `SELECT id FROM notes WHERE a LIKE ANY (ARRAY[${or(101, (n) => `'${n}%'`).replaceAll(' OR ', ', ')}])`,
    1,
  ],
  [
    'LIKE ANY of an array literal',
    `SELECT id FROM notes WHERE a LIKE ANY ('{${or(101, String).replaceAll(' OR ', ',')}}')`,
    1,
  ],
  [
    'an array that is computed',
    'SELECT id FROM notes WHERE id = ANY (array_fill(1, ARRAY[10000]) || array_fill(2, ARRAY[10000]))',
    1,
  ],
  ['functions', `SELECT id FROM notes WHERE ${or(101, (n) => `starts_with(a, 'w${n}')`)}`, 1],
  ['conditions that equal true', `SELECT id FROM notes WHERE ${and(101, (n) => `(a ~ 'w${n}') = true`)}`, 9],
  ['comparisons of two tables in OR', `SELECT 1 FROM notes x, notes y WHERE x.id = y.id AND (${or(41, joined)})`, 1],
  [
    'comparisons of two tables in ON',
    `SELECT 1 FROM notes x LEFT JOIN notes y ON x.id = y.id AND (${or(41, joined)})`,
    1,
  ],
  ['IN of columns', `SELECT 1 FROM notes x, notes y WHERE x.a IN (${or(41, () => 'y.b').replaceAll(' OR ', ', ')})`, 1],
  ['a column of a sub-select', `SELECT id FROM (SELECT id, ${or(101, like)} AS c FROM notes) q WHERE c AND id = 1`, 1],
  ['a column that equals true', `SELECT id FROM (SELECT id, ${or(101, like)} AS c FROM notes) q WHERE c = true`, 1],
  ['HAVING', `SELECT a FROM notes GROUP BY a HAVING ${or(101, like)}`, 1],
  [
    'copies of WITH',
    `WITH v AS NOT MATERIALIZED (SELECT id FROM notes WHERE ${or(50, like)}) SELECT 1 FROM v a JOIN v b USING (id) JOIN v c USING (id)`,
    1,
  ],
  [
    'arms of UNION',
    `SELECT id FROM (${or(50, () => 'SELECT id, a FROM notes').replaceAll(' OR ', ' UNION ALL ')}) q WHERE ${or(30, like)}`,
    1,
  ],
]

const hidden = async (sql: string): Promise<number> =>
  (await guard.confined(sql, exposed)).text.split('COALESCE(').length - 1

for (const [name, sql] of SAME) {
  test(`conditions that are cheap to estimate are printed without COALESCE: ${name}`, async () => {
    assert.equal(await hidden(sql), 0)
  })
}

for (const [name, sql, count] of HIDDEN) {
  test(`conditions that are costly to estimate are printed inside COALESCE: ${name}`, async () => {
    assert.equal(await hidden(sql), count)
  })
}
