// Tests the guard's bounds on real engines. Queries below the bounds are answered. If only the database can compute the
// length of a range, a range that is too long fails in the database.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask, catalog, judge } from '../attacks/mongodb/ask.ts'
import { FULL, BARE, load } from '../attacks/mongodb/fixture.ts'
import { startMongod, startNewest, type TestMongo } from '../support/mongodb.ts'
import { engineOrSkip } from '../support/no-such-engine.ts'

const range = (n: number): object => ({ $range: [0, n] })
const map = (input: unknown, body: unknown): object => ({ $map: { input, in: body } })
const shown = (x: unknown): object => ({ collection: 'people', pipeline: [{ $project: { x } }] })

/** These queries are allowed, but close to a bound. */
const NEAR: Readonly<Record<string, object>> = {
  steps: {
    collection: 'people',
    pipeline: [{ $group: { _id: { $size: map(range(400), map(range(110), { $eq: ['$_id', '$$this'] })) } } }],
  },
  size: shown({
    $size: { $reduce: { input: range(1000), initialValue: [], in: { $concatArrays: ['$$value', ['$name']] } } },
  }),
  text: shown({ $strLenCP: { $concat: Array.from({ length: 400 }, () => '$name') } }),
  stages: {
    collection: 'people',
    pipeline: Array.from({ length: 12 }, () => ({ $set: { name: { $concat: ['$name', '$name'] } } })),
  },
}

for (const [name, start] of [
  ['the real mongod', startMongod],
  ['the newest engine', startNewest],
] as const) {
  test(`queries close to the bounds are answered, and ranges beyond the bounds fail in the database: ${name}`, async (t) => {
    const mongo = await engineOrSkip<TestMongo>(t, start)
    if (mongo === null) return
    await using _ = mongo
    const full = mongo.client.db(mongo.database(FULL))
    await load(full, mongo.client.db(mongo.database(BARE)))
    const exposed = catalog(mongo.version)
    for (const [what, body] of Object.entries(NEAR)) {
      const began = performance.now()
      const outcome = await ask(full, exposed, body)
      assert.equal(outcome.kind, 'answered', `${what}: ${outcome.kind === 'answered' ? '' : outcome.why}`)
      t.diagnostic(`${what}: ${Math.round(performance.now() - began)} ms`)
    }
    for (const [body, isAnswered] of RANGES) {
      const outcome = await ask(full, exposed, shown({ $size: { $ifNull: [body, []] } }))
      assert.equal(outcome.kind, isAnswered ? 'answered' : 'failed', JSON.stringify(body))
    }
    assert.equal((await mongo.client.db('admin').command({ ping: 1 }))['ok'], 1)
  })
}

const large = { $toInt: { $convert: { input: '2000000000', to: 'int' } } }

/** Ranges whose length only the database can compute, and whether it answers. */
const RANGES: readonly (readonly [object, boolean])[] = [
  [{ $range: [0, { $toInt: '9' }] }, true],
  [{ $range: [0, { $toInt: '10000' }] }, true],
  [{ $range: [{ $toInt: '-3' }, { $toInt: '-9' }, -2] }, true],
  [{ $range: [0, { $toInt: '100000' }, 10] }, true],
  [{ $range: [0, null] }, false],
  [{ $range: [0, { $toInt: '10001' }] }, false],
  [{ $range: [0, large] }, false],
  [{ $range: [large, 0, -1] }, false],
  [{ $range: [0, { $multiply: [{ $year: '$since' }, 1000] }] }, false],
]

test('the guard refuses a query whose values grow beyond the bounds', () => {
  const exposed = catalog([6, 0, 5])
  const doubling = { $reduce: { input: '$tags', initialValue: [1], in: { $concatArrays: ['$$value', '$$value'] } } }
  const verdict = judge(exposed, shown(doubling))
  assert.ok('kind' in verdict && verdict.blocked?.kind === 'limit')
})
