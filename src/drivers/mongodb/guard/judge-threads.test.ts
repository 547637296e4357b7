// A long body must be judged in a thread, with the same verdict as on the main thread. A body that exceeds the deadline
// is refused, and other requests are not affected.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../../../test/support/mongo-catalog.ts'
import { unseal } from '../../confined.ts'
import type { Catalog, Verdict } from '../../driver.ts'
import type { MongoQuery } from '../confined-query.ts'
import { confine, confineAside, type Threads } from './confine.ts'
import { readBody } from './body/read-body.ts'
import { openThreads } from './judge-threads.ts'

const SIGNAL = new AbortController().signal
const LIMITS = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 1000, maxCost: 1e6 }
const catalog = (more: readonly string[] = []): Catalog =>
  mongoCatalog({ people: ['_id', 'name', 'home.city', 'list', ...more] }, { arrays: { list: 50 } })
const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))

const people = (...pipeline: object[]) => readBody({ collection: 'people', pipeline, limit: 7 })
const names = (n: number) => ({ $match: { name: { $in: many(n, (k) => `name ${k}`) } } })

/** Opens threads that count the requests to them. */
async function opened(deadlineMs?: number) {
  const told: string[] = []
  const threads = openThreads({
    threads: 1,
    report: (...what) => told.push(...what),
    ...(deadlineMs && { deadlineMs }),
  })
  let asked = 0
  const counted: Threads = {
    ...threads,
    judge: (...all) => {
      asked++
      return threads.judge(...all)
    },
  }
  const aside = async (body: ReturnType<typeof people>, exposed = catalog(), signal = SIGNAL): Promise<Verdict> =>
    await confineAside(counted, body, exposed, LIMITS, signal)
  return { aside, told, asked: () => asked, [Symbol.asyncDispose]: () => threads.end() }
}

/** Replaces the functions in a verdict by their results, so that two verdicts can be compared. */
function plain(verdict: Verdict): unknown {
  if (verdict.kind !== 'confined') return verdict
  const { printed, outline, unwinds, ...rest } = unseal<MongoQuery>(verdict.query, 'MONGODB')
  return { ...rest, unwinds: [...unwinds], printed: printed(), outline: outline() }
}

test('a long body is judged in a thread, with the same verdict', async () => {
  await using guard = await opened()
  const dates = { $match: { _id: { $in: many(900, (k) => ({ $date: new Date(k).toISOString() })) } } }
  const bodies = [
    people(
      names(1_500),
      dates,
      { $unwind: '$list' },
      { $lookup: { from: 'people', pipeline: [{ $unwind: '$list' }], as: 'x' } },
    ),
    people(names(1_500), { $sort: { 'home.city': 1 } }, { $limit: 5 }),
    people(names(1_500), { $match: { hidden: 1 } }),
    people(names(1_500), { $match: { _id: { $date: 'never' } } }),
    people({ $set: Object.fromEntries(many(900, (k) => [`f${k}`, { $add: ['$name', k] }])) }),
  ]
  const kinds: string[] = []
  for (const body of bodies) {
    const verdict = await guard.aside(body)
    kinds.push(verdict.kind)
    assert.deepEqual(plain(verdict), plain(confine(body, catalog(), LIMITS)))
  }
  assert.deepEqual(kinds, ['confined', 'confined', 'denied', 'malformed', 'confined'])
  assert.equal(guard.asked(), bodies.length)
  assert.deepEqual(guard.told, [])
})

test('a short body, and a body that is refused for its size, are judged on the main thread', async () => {
  await using guard = await opened()
  assert.equal((await guard.aside(people({ $match: { name: 'x' } }))).kind, 'confined')
  let deep: unknown = 1
  for (let n = 0; n < 700; n++) deep = [deep]
  const bodies = [
    people({ $project: { x: { $literal: deep } } }),
    people({ $project: { x: { $literal: many(20_001, () => 1) } } }),
  ]
  for (const body of bodies) assert.equal((await guard.aside(body)).kind, 'denied')
  assert.equal(guard.asked(), 0)
})

test('a short body that takes many steps goes to a thread', async () => {
  await using guard = await opened()
  // The guard judges the body of a $reduce twice, and the body of a nested $reduce four times.
  const step = { $add: ['$$value', ...many(20, () => '$$this')] }
  const nested = (depth: number): unknown =>
    depth === 0 ? step : { $reduce: { input: ['$list'], initialValue: 0, in: nested(depth - 1) } }
  const body = people({ $set: { x: nested(8) } })
  assert.ok(body.nodes < 1_000)
  assert.deepEqual(plain(await guard.aside(body)), plain(confine(body, catalog(), LIMITS)))
  assert.equal(guard.asked(), 1)
})

test('a thread gets each catalog once, in parts, and gets an evicted catalog again', async () => {
  await using guard = await opened()
  const wide = many(6, (n) => catalog(many(2_500, (k) => `f${n}_${k}`)))
  for (const [n, each] of [...wide.entries(), ...wide.entries()]) {
    const verdict = await guard.aside(people(names(1_500), { $project: { [`f${n}_2499`]: 1 } }), each)
    assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
  }
})

test('a body over the deadline is refused and reported by its hash, and is refused again when it is sent again', async () => {
  await using guard = await opened(1)
  const body = people({ $set: Object.fromEntries(many(900, (k) => [`f${k}`, { $add: ['$name', k] }])) })
  const verdict = await guard.aside(body)
  assert.ok(verdict.kind === 'denied' && verdict.blocked.name === 'work', JSON.stringify(verdict))
  assert.equal((await guard.aside(body)).kind, 'denied')
  assert.equal(guard.told.length, 4)
  assert.match(guard.told[1] ?? '', /^[0-9a-f]{64}$/)
})

test('an aborted call to a guard thread rejects immediately', async () => {
  await using guard = await opened()
  const gone = new AbortController()
  const waiting = guard.aside(people(names(1_500)), catalog(), gone.signal)
  gone.abort(new Error('hung up'))
  await assert.rejects(waiting, /hung up/)
  await assert.rejects(guard.aside(people(names(1)), catalog(), gone.signal), /hung up/)
  assert.equal((await guard.aside(people(names(1_500)))).kind, 'confined')
})
