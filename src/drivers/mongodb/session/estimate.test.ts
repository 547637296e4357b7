// The collection below a view is not exposed. Tests how little the cost of a query on the view reveals about it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON, Long } from 'mongodb'
import { mongoCatalog } from '../../../../test/support/mongo-catalog.ts'
import { unseal } from '../../confined.ts'
import { confine } from '../guard/confine.ts'
import { readBody } from '../guard/body/read-body.ts'
import type { MongoQuery } from '../confined-query.ts'
import { planCost } from './estimate.ts'
import type { PlanNode } from './read-plan.ts'

const LIMITS = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 60_000, maxCost: 1_000_000 }
const catalog = mongoCatalog({ shown: ['_id', 'n'], other: ['_id', 'n'] }, { documents: 10 })

/**
 * Returns the cost of scanning the collection below the view, which has `hidden` documents. The joined collection has
 * 300.
 */
async function cost(hidden: number, ...pipeline: object[]): Promise<number> {
  const plan = { queryPlanner: { namespace: 'shop.hidden', winningPlan: { stage: 'COLLSCAN' } } }
  return await costOf(plan, hidden, pipeline)
}

async function costOf(plan: PlanNode, hidden = 0, pipeline: readonly object[] = []): Promise<number> {
  const verdict = confine(readBody({ collection: 'shown', pipeline: [...pipeline] }), catalog, LIMITS)
  assert.ok(verdict.kind === 'confined', verdict.kind)
  const query = unseal<MongoQuery>(verdict.query, 'MONGODB')
  return await planCost(query, {
    form: query.pipeline,
    plan,
    maxCost: LIMITS.maxCost,
    sizes: async (collection) => (collection === 'hidden' ? hidden : 300),
    arriving: async () => 0,
  })
}

test('only the magnitude of a hidden collection’s size affects the cost', async () => {
  const join = { $lookup: { from: 'other', pipeline: [], as: 'x' } }
  for (const [some, more] of [
    [501_000, 999_999],
    [1_000_001, 1_999_999],
    [130, 200],
    [0, 1],
  ] as const) {
    assert.equal(await cost(some), await cost(more), `${some} and ${more}`)
    assert.equal(await cost(some, join), await cost(more, join), `${some} and ${more}, joined`)
  }
})

test('the rounded size is never smaller than the real size, and exceeds the limit only if the real size does', async () => {
  for (const hidden of [1, 7, 1_000, 499_999, 500_001, 999_999, 1_000_000, 1_000_001, 5_000_000]) {
    const counted = await cost(hidden)
    assert.ok(counted >= hidden && counted <= 2 * hidden + 1, `${hidden} counts as ${counted}`)
    assert.equal(counted > LIMITS.maxCost, hidden > LIMITS.maxCost, String(hidden))
  }
})

test('only the parts of a plan that the cost depends on are read, and long parts such as rejected plans are skipped', async () => {
  const scan = (filter: object) => ({ stage: 'COLLSCAN', filter, direction: 'forward' })
  const plans: readonly (readonly [object, number])[] = [
    [scan({ n: 1 }), 300],
    [{ stage: 'LIMIT', limitAmount: 7, inputStage: scan({}) }, 7],
    [{ stage: 'LIMIT', limitAmount: Long.fromNumber(7), inputStage: scan({ n: 1 }) }, 300],
    [{ stage: 'OR', inputStages: [scan({}), { stage: 'IXSCAN' }, scan({})] }, 600],
    [{ stage: 'FETCH', inputStage: { stage: 'IXSCAN', indexBounds: { n: ['[1, 1]'] } } }, 0],
    [{ queryPlan: { stage: 'SUBPLAN', inputStage: scan({}) }, slotBasedPlan: { stages: 'text' } }, 300],
    [{ stage: 'SHARD_MERGE', shards: [{ winningPlan: scan({}) }, { winningPlan: scan({}) }] }, 600],
  ]
  for (const [winningPlan, expected] of plans) {
    for (const skipped of ['rejectedPlans', 'parsedQuery', 'indexBounds']) {
      const planner = Buffer.from(
        BSON.serialize({ namespace: 'shop.shown', [skipped]: { v: 'damaged' }, winningPlan: winningPlan }),
      )
      planner[planner.indexOf('v\0') - 1] = 0x63
      assert.throws(() => BSON.deserialize(planner), /BSON/)
      assert.equal(await costOf({ queryPlanner: planner }), expected)
      const staged = BSON.serialize({ $cursor: { queryPlanner: BSON.deserialize(BSON.serialize({ winningPlan })) } })
      assert.equal(await costOf({ stages: [staged, BSON.serialize({ $project: { n: 1 } })] }), expected)
    }
  }
})
