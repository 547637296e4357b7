import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { openConcurrencyLimit, openFairLimit, type ConcurrencyLimit } from './concurrency-limit.ts'
import { AppError } from './errors.ts'

const LIMITS = { each: 2, all: 20, retryAfterSeconds: 5, why: 'Others are running.' }
const open = (limits = LIMITS) => openConcurrencyLimit(limits, (address) => `network of ${address}`)

interface By {
  readonly account?: string
  readonly team?: string
  readonly address?: string
}

/**
 * Takes up to 100 slots with different keys, and returns how many it got. Accounts and teams differ unless `by` names
 * them.
 */
function taken(limit: ConcurrencyLimit, by: (n: number) => By): number {
  let count = 0
  for (let n = 0; n < 100; n++) {
    const key = randomUUID()
    const { account = key, team = key, address } = by(n)
    try {
      limit.take(key, { caller: { accountId: account }, address }, team)
      count++
    } catch (error) {
      assert.ok(error instanceof AppError && error.code === 'RATE_LIMITED')
    }
  }
  return count
}

test('one account gets less than a quarter of the free slots, however many teams it has', () => {
  const limit = open()
  assert.equal(
    taken(limit, () => ({ account: 'eve' })),
    4,
  )
  assert.equal(
    taken(limit, () => ({ account: 'eve' })),
    0,
  )
  assert.equal(
    taken(limit, () => ({ account: 'vic' })),
    4,
  )
})

test('one team gets less than a quarter of the free slots, however many members it has', () => {
  const limit = open()
  assert.equal(
    taken(limit, () => ({ team: 'eve’s' })),
    4,
  )
  assert.equal(
    taken(limit, () => ({ team: 'vic’s' })),
    4,
  )
})

test('one network gets half of the slots, however many accounts and teams it has', () => {
  const limit = open()
  assert.equal(
    taken(limit, () => ({ address: '203.0.113.7' })),
    10,
  )
  assert.equal(
    taken(limit, () => ({ account: 'vic', address: '198.51.100.1' })),
    2,
  )
})

test('accounts that hold many slots get no further slot, and newcomers still get one', () => {
  const limit = open()
  assert.equal(
    taken(limit, (n) => ({ account: `eve ${n % 4}` })),
    12,
  )
  assert.equal(
    taken(limit, () => ({})),
    8,
  )
})

test('a slot that is disposed is free for everybody', () => {
  const limit = open({ ...LIMITS, all: 4 })
  const eve = { caller: { accountId: 'eve' }, address: '203.0.113.7' }
  const slot = limit.take('a', eve, 'eve’s')
  assert.throws(() => limit.take('b', eve, 'eve’s'), { code: 'RATE_LIMITED', extra: { retryAfter: 5 } })
  slot[Symbol.dispose]()
  limit.take('b', eve, 'eve’s')
})

test('lanes with waiting work take turns, so a long lane delays another lane by one slot', async () => {
  const limit = openFairLimit({ each: 1, all: 1 })
  const slot = await limit.take('first')
  const begun: string[] = []
  const run = async (key: string, lane: string) => {
    using _slot = await limit.take(key, { waitMs: 60_000, lane })
    begun.push(key)
  }
  const strangers = ['a', 'b', 'c', 'd'].map((key) => run(key, 'strangers'))
  const known = ['x', 'y'].map((key) => run(key, 'known'))
  await setImmediate() // all of them wait now
  slot[Symbol.dispose]()
  await Promise.all([...strangers, ...known])
  assert.deepEqual(begun, ['a', 'x', 'b', 'y', 'c', 'd'])
})

test('work that is aborted while it waits leaves the queue, and frees the place of its key', async () => {
  const limit = openFairLimit({ each: 1, all: 1 })
  const slot = await limit.take('first')
  const gone = new AbortController()
  const wait = { waitMs: 60_000, signal: gone.signal }
  const waiting = [limit.take('a', wait), limit.take('a', wait), limit.take('first', wait)]
  const next = limit.take('a', { waitMs: 60_000 })
  gone.abort(new Error('gone'))
  for (const each of waiting) await assert.rejects(each, /gone/)
  slot[Symbol.dispose]()
  ;(await next)?.[Symbol.dispose]()
  await assert.rejects(limit.take('a', wait), /gone/)
  assert.notEqual(await limit.take('a', { waitMs: 0 }), null)
})

test('one key gets at most a fifth of the waiting places, and newcomers still find one', async () => {
  const limit = openFairLimit({ each: 1, all: 1, waiting: 100 })
  const slot = await limit.take('first')
  const waits: Promise<unknown>[] = []
  const wait = async (key: string) => {
    using _slot = await limit.take(key, {})
    return _slot !== null
  }
  /** Takes a hundred times, and returns how many of the calls wait. */
  const waiting = async (key: string) => {
    let refused = 0
    for (let n = 0; n < 100; n++) waits.push(wait(key).then((isTaken) => (isTaken ? 0 : refused++)))
    await setImmediate()
    return 100 - refused
  }
  assert.equal(await waiting('eve'), 20)
  assert.equal(await waiting('eve'), 0)
  assert.equal(await waiting('vic'), 16)
  assert.equal(await waiting('first'), 13)
  slot[Symbol.dispose]()
  await Promise.all(waits)
  // All waiting work has left, so the places are free again.
  const again = await limit.take('other')
  assert.equal(await waiting('eve'), 20)
  again[Symbol.dispose]()
  await Promise.all(waits)
})
