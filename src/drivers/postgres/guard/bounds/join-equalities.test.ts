// Tests which queries run without merge joins, because the server would plan them for too long.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { shop, table } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, type Guard } from '../../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const columns = (count: number): string[] => Array.from({ length: count }, (_, n) => `c${n} int4`)
const exposed = shop({}, [
  table('twenty', columns(20)),
  table('forty', columns(40)),
  table('many', columns(41)),
  table('wide', columns(800)),
])
const natural = (name: string, count: number): string =>
  Array.from({ length: count }, (_, n) => `${name} t${n}`).join(' NATURAL JOIN ')
const equal = (a: string, b: string, count: number): string =>
  Array.from({ length: count }, (_, n) => `${a}.c${n} = ${b}.c${n}`).join(' AND ')
const MERGES = 'enable_mergejoin'

const CASES: readonly (readonly [string, string, string])[] = [
  ['two tables by 40 names', `SELECT count(*) FROM ${natural('forty', 2)}`, ''],
  ['two tables by 41 names', `SELECT count(*) FROM ${natural('many', 2)}`, MERGES],
  ['three tables by 20 names', `SELECT count(*) FROM ${natural('twenty', 3)}`, ''],
  ['eight tables by 20 names', `SELECT count(*) FROM ${natural('twenty', 8)}`, MERGES],
  ['conditions of ON', `SELECT 1 FROM many a JOIN many b ON ${equal('a', 'b', 41)}`, MERGES],
  ['conditions of WHERE', `SELECT 1 FROM many a, many b WHERE ${equal('a', 'b', 41)}`, MERGES],
  [
    'comparisons with constants',
    `SELECT 1 FROM many a, many b WHERE a.c0 = b.c0 AND ${columns(41)
      .map((name) => `a.${name.split(' ')[0]} = 1`)
      .join(' AND ')}`,
    '',
  ],
  [
    'a sub-select in FROM',
    `SELECT 1 FROM (SELECT t0.* FROM ${natural('twenty', 2)}) q NATURAL JOIN twenty f JOIN forty g ON g.c39 = q.c0`,
    MERGES,
  ],
  [
    'a sub-select that groups',
    `SELECT 1 FROM (SELECT c0 FROM ${natural('forty', 2)} GROUP BY c0) q JOIN forty f ON q.c0 = f.c0`,
    '',
  ],
  [
    'WITH that is used twice',
    `WITH q AS (SELECT t0.c0 FROM ${natural('twenty', 2)}) SELECT 1 FROM q a JOIN q b USING (c0)`,
    MERGES,
  ],
  ['EXISTS', `SELECT 1 FROM many a WHERE EXISTS (SELECT 1 FROM many b WHERE ${equal('a', 'b', 41)})`, MERGES],
  ['arms of UNION', `SELECT 1 FROM ${natural('forty', 2)} UNION ALL SELECT 1 FROM ${natural('forty', 2)}`, ''],
  ['a sub-select in the select list', `SELECT (SELECT count(*) FROM ${natural('many', 2)})`, MERGES],
]

for (const [name, sql, expected] of CASES) {
  test(`a query runs ${expected === '' ? 'with' : 'without'} merge joins: ${name}`, async () => {
    assert.equal((await guard.confined(sql, exposed)).switchedOff, expected)
  })
}

test('a query that joins by more than 1,000 equalities is refused', async () => {
  const verdict = await guard.judge(`SELECT count(*) FROM ${natural('wide', 3)}`, exposed)
  assert.ok(verdict.kind === 'denied')
  assert.match(verdict.why, /^the query joins by 1600 equalities of columns; the limit is 1000$/)
  assert.equal((await guard.confined(`SELECT count(*) FROM ${natural('wide', 2)}`, exposed)).switchedOff, MERGES)
})
