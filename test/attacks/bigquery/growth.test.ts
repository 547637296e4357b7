// Tests how the guard’s work grows with the length of a query. If the length doubles, the work may grow 2.5 times at
// most. No depth may exhaust the stack. `GROW=20000 npm test -- test/attacks/bigquery/growth.test.ts` tests 20,000
// random queries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { confine } from '../../../src/drivers/bigquery/guard/confine.ts'
import type { BigQueryQuery } from '../../../src/drivers/bigquery/confined-query.ts'
import { Work } from '../../../src/drivers/bigquery/guard/work-budget.ts'
import { unseal } from '../../../src/drivers/confined.ts'
import type { Verdict } from '../../../src/drivers/driver.ts'
import { CAPS } from '../../support/bigquery-guard.ts'
import { catalogOf } from './catalog.ts'
import { Grower } from './random-growth.ts'
import { DEEP, FAMILIES, GROWN } from './growth.ts'
import { shownOf, WORLD } from './sample-project.ts'

const CASES = Number(process.env['GROW'] ?? 400)
const SEED = Number(process.env['SEED'] ?? 20_261_121)
const TEXT_MAX = 100_000
const CATALOG = catalogOf(WORLD, shownOf)

interface Cost {
  readonly work: number
  readonly verdict: Verdict
}

function cost(sql: string, catalog = GROWN): Cost {
  const work = new Work()
  const verdict = confine({ text: sql, limit: null }, catalog, CAPS, work)
  return { work: work.spent, verdict }
}

/** The printed text may have at most 1,000,000 bytes. A refusal for size must name the limit. */
function checkBound({ verdict }: Cost, note: string): void {
  if (verdict.kind === 'confined') {
    const { text } = unseal<BigQueryQuery>(verdict.query, 'BIGQUERY')
    assert.ok(Buffer.byteLength(text) <= 1_000_000, `${note}: ${Buffer.byteLength(text)} bytes printed`)
  } else if (verdict.kind === 'denied' && verdict.blocked.kind === 'limit') {
    assert.match(verdict.why, /\d.* more than the bound of \d+$/, note)
    assert.notEqual(verdict.hint, '', note)
  }
}

const isRefusedForSize = ({ verdict }: Cost) => verdict.kind === 'denied' && verdict.blocked.kind === 'limit'

for (const [name, make] of Object.entries(FAMILIES)) {
  test(`a query of twice the length costs at most 2.5 times the work: ${name}`, () => {
    let before: Cost | null = null
    for (let size = 10; size <= 51_200; size *= 2) {
      const sql = make(size)
      if (sql.length > TEXT_MAX) break
      const now = cost(sql)
      checkBound(now, `${name}, ${size}`)
      if (isRefusedForSize(now)) break
      if (before !== null && size > 80) assert.ok(now.work <= 2.5 * before.work, `${name}, ${size}: ${now.work} after ${before.work}`)
      before = now
    }
    assert.notEqual(before, null, 'refused at the smallest size')
  })
}

for (const [name, make] of Object.entries(DEEP)) {
  test(`no depth of nesting exhausts the stack: ${name}`, () => {
    for (const depth of [10, 31, 32, 62, 63, 64, 65, 66, 500, 3_000, 15_000]) {
      const sql = make(depth)
      if (sql.length > TEXT_MAX) break
      checkBound(cost(sql), `${name}, ${depth}`)
    }
    // The guard does not count angle brackets as nesting, so types are not refused.
    if (name !== 'types') assert.equal(cost(make(1_000)).verdict.kind, 'denied')
  })
}

test(`random queries of twice the length cost at most 2.5 times the work: ${CASES} queries (seed ${SEED})`, { timeout: 1_800_000 }, (t) => {
  const grower = new Grower(SEED)
  const tally = { grown: 0, confined: 0, limits: 0, worst: 0 }
  for (let n = 0; n < CASES; n++) {
    const make = grower.next()
    let before: Cost | null = null
    for (const size of [8, 16, 32, 64, 128, 256, 512]) {
      const sql = make(size)
      if (sql.length > TEXT_MAX) break
      const note = JSON.stringify(make(2)).slice(0, 1_000)
      const now = cost(sql, CATALOG)
      checkBound(now, note)
      tally.grown++
      if (now.verdict.kind === 'confined') tally.confined++
      if (isRefusedForSize(now)) tally.limits++
      if (now.verdict.kind !== 'confined') break
      if (before !== null && size > 32) {
        assert.ok(now.work <= 2.5 * before.work, `${size}: ${now.work} after ${before.work}: ${note}`)
        tally.worst = Math.max(tally.worst, now.work / before.work)
      }
      before = now
    }
  }
  t.diagnostic(JSON.stringify(tally))
  assert.ok(tally.confined > tally.grown / 4, 'too few queries were accepted for a judgement')
})
