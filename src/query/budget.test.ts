import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { AppError } from '../errors.ts'
import { newId, type TeamId } from '../ids.ts'
import { openStore, type Store } from '../store/open.ts'
import { until } from '../../test/support/until.ts'
import { openBudget, type Budget } from './budget.ts'
import { openRedisCounter } from './redis-budget.ts'
import { engineOrSkip } from '../../test/support/no-such-engine.ts'
import { startRedis } from '../../test/support/redis.ts'

/** The timeout for an answer of Redis, which a busy machine may delay. */
const PATIENCE_MS = 5_000

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

    test('a query budget of five allows exactly five of twelve concurrent queries', async () => {
      const budget = openBudget({ store })
      const teamId = newId<TeamId>()
      const all = await Promise.all(Array.from({ length: 12 }, () => spend(budget, teamId, 5)))
      assert.deepEqual(all.flatMap((it) => it.left ?? []).sort(), [0, 1, 2, 3, 4])
      const waits = all.flatMap((it) => it.retryAfter ?? [])
      assert.equal(waits.length, 7)
      assert.ok(waits.every((seconds) => Number.isInteger(seconds) && seconds >= 1 && seconds <= 3_600))
    })

    test('a changed query budget applies to the next query, and each team has its own budget', async () => {
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

test('several processes on one PostgreSQL share a query budget', async () => {
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

test('several processes share a query budget in Redis, and count for themselves while Redis is gone', async (context) => {
  const redis = await engineOrSkip(context, startRedis)
  if (redis === null) return
  await using server = redis
  const lines: string[] = []
  const note = (_detail: object, message: string) => void lines.push(message)
  const log = { info: note, warn: note }
  await using one = await openRedisCounter(server.url, log, PATIENCE_MS)
  await using other = await openRedisCounter(server.url, log, PATIENCE_MS)
  const budgets = [one, other].map((counter) => openBudget({ store: { count: null }, redis: counter }))
  const [first, second] = budgets
  assert.ok(first !== undefined && second !== undefined)
  // The two processes share their counts only through Redis.
  const counts = async (by: Budget, seenBy: Budget) => {
    const fresh = newId<TeamId>()
    await spend(by, fresh, 10)
    return (await seenBy.left(fresh, { limit: 10, windowSeconds: 3_600 })).remaining === 9
  }
  await until(
    'both processes count in Redis',
    async () => (await counts(first, second)) && (await counts(second, first)),
  )
  const teamId = newId<TeamId>()
  const all = await Promise.all(
    budgets.flatMap((budget) => Array.from({ length: 20 }, () => spend(budget, teamId, 10))),
  )
  assert.equal(all.filter((it) => 'left' in it).length, 10)

  const thaw = server.freeze()
  assert.equal((await spend(first, teamId, 10)).left, 9)
  assert.equal((await spend(second, teamId, 10)).left, 9)
  assert.match(lines.join(), /Redis does not answer: each process counts/)
  thaw()
  await until('both are connected again', () => lines.filter((line) => line.includes('answers again')).length === 2)
  assert.ok('retryAfter' in (await spend(first, teamId, 10)))

  await server.stop()
  const late = newId<TeamId>()
  await until(
    'the end of Redis is noticed',
    async () => lines.filter((line) => line.includes('does not answer')).length >= 3,
  )
  assert.equal((await spend(first, late, 10)).left, 9)
})
