// Runs mutants of attacks and legitimate queries against the guard alone, without an engine. The printed SQL of an
// accepted mutant must read only exposed tables and columns. A scanner that shares no code with the guard checks this.
// SEED and N come from the environment.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unseal } from '../../../src/drivers/confined.ts'
import { confine } from '../../../src/drivers/bigquery/guard/confine.ts'
import type { BigQueryQuery } from '../../../src/drivers/bigquery/confined-query.ts'
import { CAPS } from '../../support/bigquery-guard.ts'
import { catalogOf } from './catalog.ts'
import { chance } from './seeded-random.ts'
import { strays } from './check-printed.ts'
import { ATTACKS, LEGIT, shownOf, WORLD } from './sample-project.ts'

const COUNT = Number(process.env['N'] ?? 20_000)
const SEED = Number(process.env['SEED'] ?? 20_261_121)

const CATALOG = catalogOf(WORLD, shownOf)
const MORE = [
  'WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a), customers AS (SELECT * FROM shop.customers) SELECT * FROM a, customers',
  "SELECT *, t.*, _TABLE_SUFFIX FROM `shop.events_*` AS t, t.params p WHERE _TABLE_SUFFIX > '2' AND EXISTS (SELECT 1 FROM hr.salaries)",
  'FROM shop.orders |> JOIN shop.customers USING (id) |> WITH w AS (SELECT 1) |> UNION ALL (FROM w), (FROM hr.salaries) |> AGGREGATE COUNT(*) GROUP BY id',
  'SELECT EXTRACT(DAY FROM d), a IS DISTINCT FROM b, x IN UNNEST(y) FROM (shop.orders o JOIN o.items i ON TRUE) LEFT JOIN ((SELECT 1) UNION ALL (SELECT 2)) AS u ON TRUE',
  'SELECT id.FROM, 1.5, `a.b`.c, TABLE, MODEL FROM vitrine-test.shop.orders TABLESAMPLE SYSTEM (10 PERCENT) PIVOT(SUM(x) FOR id IN (1)) AS p',
]
const SEEDS = [...ATTACKS, ...LEGIT].map(({ sql }) => sql).filter((sql) => sql.length < 2_000)
const PIECES = [...SEEDS, ...MORE].map((sql) => sql.match(/`[^`]*`|'[^']*'|"[^"]*"|\w+|\s+|[^]/g) ?? [])
const POOL = [
  ...PIECES.flat(),
  ...`FROM JOIN SELECT UNNEST WITH AS ( ) , . * hr.salaries shop.customer_notes ssn margin UNION ALL EXCEPT |> WHERE ON USING TABLE
    LEFT EXTRACT( DISTINCT IS \` ' " -- # /* */ [ ] => -> ; @p`.split(/\s+/),
]

function mutant(next: () => number): string {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T
  const text = [...pick(PIECES)]
  for (let wounds = 1 + Math.floor(next() * 4); wounds > 0; wounds -= 1) {
    const at = Math.floor(next() * (text.length + 1))
    const way = next()
    if (way < 0.3) text.splice(at, 1, pick(POOL))
    else if (way < 0.55) text.splice(at, 0, ' ', pick(POOL), ' ')
    else if (way < 0.7) text.splice(at, 1 + Math.floor(next() * 3))
    else if (way < 0.85) {
      const other = pick(PIECES)
      const from = Math.floor(next() * other.length)
      text.splice(at, 0, ' ', ...other.slice(from, from + 1 + Math.floor(next() * 12)), ' ')
    } else text.splice(at, 0, ...text.slice(Math.floor(next() * text.length), at))
  }
  return text.join('')
}

test(`accepted mutants of queries read only exposed tables and columns: ${COUNT} mutants (seed ${SEED})`, (t) => {
  const next = chance(SEED)
  let confined = 0
  for (let n = 0; n < COUNT; n += 1) {
    const text = mutant(next)
    const verdict = confine({ text, limit: null }, CATALOG, CAPS)
    if (verdict.kind !== 'confined') {
      const at = verdict.position ?? 0
      assert.ok(at >= 0 && at <= text.length, `position ${at}: ${text}`)
      continue
    }
    confined += 1
    const query = unseal<BigQueryQuery>(verdict.query, 'BIGQUERY')
    assert.deepEqual(strays(query.text, WORLD.project, shownOf), [], `${text}\n→ ${query.text}`)
    const again = confine({ text, limit: null }, CATALOG, CAPS)
    assert.ok(again.kind === 'confined' && unseal<BigQueryQuery>(again.query, 'BIGQUERY').text === query.text)
  }
  t.diagnostic(`${confined} let through`)
  assert.ok(confined > COUNT / 50, 'too few mutants are accepted for a judgement')
})

test('the scanner of printed queries finds hidden names', () => {
  const found = (text: string) => strays(text, WORLD.project, shownOf).length > 0
  const sub = 'SELECT _vt.`id` FROM `vitrine-test.shop.customers` AS _vt'
  assert.ok(!found(`WITH a AS (${sub}) SELECT * FROM a, (${sub}) AS c, UNNEST(c.x) WHERE EXTRACT(DAY FROM d) IS DISTINCT FROM 1`))
  for (const text of [
    'SELECT * FROM hr.salaries',
    'SELECT * FROM `vitrine-test.hr.salaries` AS _vt',
    'SELECT * FROM a',
    'SELECT * FROM f(1)',
    `SELECT * FROM (${sub}) AS c, hr.salaries`,
    `SELECT * FROM (${sub}) AS c JOIN d.t ON TRUE`,
    `SELECT * FROM (${sub.replace('`id`', '`ssn`')}) AS c`,
    `SELECT * FROM (${sub.replace('_vt.`id`', '*')}) AS c`,
    'SELECT _vt.`event_name` FROM `vitrine-test.shop.events_*` AS _vt',
    'SELECT 1 -- x',
    'SELECT 1; SELECT 2',
    'SELECT @x',
  ])
    assert.ok(found(text), text)
})
