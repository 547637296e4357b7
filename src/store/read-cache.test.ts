import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recallFor } from './read-cache.ts'

test('a cached value expires after its age, which counts from the start of the load', async () => {
  let now = 0
  let loads = 0
  const { recall } = recallFor(1_000, 10, () => now)
  const read = () => recall('k', async () => ++loads)
  assert.equal(await read(), 1)
  now = 1_000
  assert.equal(await read(), 1)
  now = 1_001
  assert.equal(await read(), 2)
})

test('if the cache is cleared during a load, callers get the loaded value, but it is not cached', async () => {
  const { recall, forget } = recallFor(Infinity)
  const before = Promise.withResolvers<string>()
  const early = recall('k', () => before.promise)
  forget()
  const late = recall('k', async () => 'new')
  before.resolve('old')
  assert.deepEqual([await early, await late], ['old', 'new'])
  assert.equal(await recall('k', async () => 'other'), 'new')
})

test('a load that fails is not cached', async () => {
  const { recall } = recallFor(Infinity)
  await assert.rejects(
    recall('k', () => Promise.reject(new Error('down'))),
    /down/,
  )
  assert.equal(await recall('k', async () => 'up'), 'up')
})

test('the cache has a maximum size and keeps the entries that were used last', async () => {
  const { recall } = recallFor(Infinity, 3)
  let loads = 0
  const hot = () => recall('hot', async () => ++loads)
  await hot()
  for (let i = 0; i < 100; i++) {
    await recall(`cold ${i}`, async () => null)
    await hot()
  }
  assert.equal(loads, 1)
  let again = 0
  await recall('cold 0', async () => ++again)
  assert.equal(again, 1)
})
