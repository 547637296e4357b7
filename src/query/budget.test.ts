// One budget per team, on both stores. Concurrent queries never exceed it, and changed settings apply from the next
// query on.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { AppError } from '../errors.ts'
import { newId, type TeamId } from '../ids.ts'
import { openStore, type Store } from '../store/open.ts'
import { openBudget, type Budget } from './budget.ts'

/** The remaining queries after spending one, or the seconds to wait. */
async function spend(budget: Budget, teamId: TeamId, limit: number, windowSeconds = 3_600) {
  try {
    const { headers } = await budget.spend(teamId, { limit, windowSeconds })
    assert.equal(headers['RateLimit-Limit'], String(limit))
    return { left: Number(headers['RateLimit-Remaining']), reset: Number(headers['RateLimit-Reset']) }
  } catch (error) {
    assert.ok(error instanceof AppError && error.code === 'RATE_LIMITED')
    assert.equal(error.headers['RateLimit-Remaining'], '0')
    return { retryAfter: Number(error.extra['retryAfter']) }
  }
}

for (const dialect of DIALECTS) {
  describe(`the budget on ${dialect}`, () => {
    let source: StoreSource
    let store: Store
    before(async () => {
      source = await storeSource(dialect)
      store = await openStore(await source.config())
    })
    after(async () => {
      await store[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })

    test('allows exactly five of twelve concurrent queries on a budget of five', async () => {
      const budget = openBudget({ store })
      const teamId = newId<TeamId>()
      const all = await Promise.all(Array.from({ length: 12 }, () => spend(budget, teamId, 5)))
      assert.deepEqual(all.flatMap((it) => it.left ?? []).sort(), [0, 1, 2, 3, 4])
      const waits = all.flatMap((it) => it.retryAfter ?? [])
      assert.equal(waits.length, 7)
      assert.ok(waits.every((seconds) => Number.isInteger(seconds) && seconds >= 1 && seconds <= 3_600))
    })

    test('applies a changed limit from the next query on, and counts each team separately', async () => {
      const budget = openBudget({ store })
      const teamId = newId<TeamId>()
      assert.equal((await spend(budget, teamId, 1)).left, 0)
      assert.ok('retryAfter' in (await spend(budget, teamId, 1)))
      assert.equal((await spend(budget, teamId, 1_000)).left, 997)
      assert.ok('retryAfter' in (await spend(budget, teamId, 2)))
      const other = await spend(budget, newId<TeamId>(), 2)
      assert.equal(other.left, 1)
      assert.ok(Number.isInteger(other.reset) && (other.reset ?? 9_999) <= 3_600)
      assert.equal((await spend(budget, teamId, 2, 86_400)).left, 1)
    })
  })
}

test('several processes on one PostgreSQL share a budget', async () => {
  await using source = await storeSource('postgres')
  const config = await source.config()
  await using one = await openStore(config)
  await using other = await openStore(config)
  const budgets = [openBudget({ store: one }), openBudget({ store: other })]
  const teamId = newId<TeamId>()
  const all = await Promise.all(
    budgets.flatMap((budget) => Array.from({ length: 20 }, () => spend(budget, teamId, 10))),
  )
  assert.equal(all.filter((it) => 'left' in it).length, 10)
})
