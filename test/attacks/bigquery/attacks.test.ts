// Runs the sample attacks and the legitimate queries against the guard alone, without an engine. Checks the verdict on
// each attack, and that the printed SQL reads only exposed tables and columns.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unseal } from '../../../src/drivers/confined.ts'
import { confine } from '../../../src/drivers/bigquery/guard/confine.ts'
import type { BigQueryQuery } from '../../../src/drivers/bigquery/confined-query.ts'
import { CAPS } from '../../support/bigquery-guard.ts'
import { catalogOf } from './catalog.ts'
import { strays } from './check-printed.ts'
import { ATTACKS, LEGIT, shownOf, WORLD } from './sample-project.ts'

const CATALOG = catalogOf(WORLD, shownOf)
/**
 * For each verdict, the numbers of the attacks that get it. A `confined` attack may name a hidden column, because the
 * sub-select that the guard prints for the table lacks this column.
 */
const SAID = {
  table: '056 070 074 079 085 109 171 174 175 177',
  function: '114 120',
  statement: '113 143 152 188 191',
  limit: '197 198',
  malformed: '087 176 195',
  confined: '014 016 022 028 030 036 040 041 042 044 135 168 169 186 209',
}

const judged = (sql: string) => confine({ text: sql, limit: null }, CATALOG, CAPS)

test('every attack of the corpus has an expected result', () => {
  const known = Object.values(SAID).flatMap((ids) => ids.split(' ').map((id) => `bqa-${id}`))
  assert.deepEqual(known.sort(), ATTACKS.map(({ id }) => id).sort())
})

for (const [kind, ids] of Object.entries(SAID)) {
  test(`${ids.split(' ').length} attacks get the verdict ${kind}`, () => {
    for (const { id, sql } of ATTACKS.filter((each) => ids.split(' ').includes(each.id.slice(4)))) {
      const verdict = judged(sql)
      const outcome = verdict.kind === 'denied' ? verdict.blocked.kind : verdict.kind
      assert.equal(outcome, kind, `${id}: ${sql.slice(0, 200)}`)
      if (verdict.kind !== 'confined') continue
      const { text } = unseal<BigQueryQuery>(verdict.query, 'BIGQUERY')
      assert.deepEqual(strays(text, WORLD.project, shownOf), [], id)
    }
  })
}

test('every legitimate query is accepted and reads only exposed data', () => {
  for (const { id, sql } of LEGIT) {
    const verdict = judged(sql)
    assert.ok(verdict.kind === 'confined', `${id}: ${verdict.kind === 'confined' ? '' : verdict.why}`)
    const { text } = unseal<BigQueryQuery>(verdict.query, 'BIGQUERY')
    assert.deepEqual(strays(text, WORLD.project, shownOf), [], id)
  }
})
