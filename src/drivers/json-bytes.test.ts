// Tests the memory of results: when a buffer is reused, and how much memory is kept.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BufferPool, JsonBytes, writeRaw } from './json-bytes.ts'

const LONG = 100_000

function lent(pool: BufferPool, letter: string, length = LONG): ReturnType<JsonBytes['lend']> {
  const out = pool.take()
  out.length = 0
  const text = Buffer.alloc(length, letter)
  for (let at = 0; at < length; at += 1000) writeRaw(text, at, Math.min(length, at + 1000), out)
  const result = out.lend()
  pool.release(out)
  return result
}

function memoryOf(json: string | Buffer): ArrayBufferLike {
  assert.ok(typeof json !== 'string')
  return json.buffer
}

test('a lent result does not change until it is released, and its memory is reused afterwards', () => {
  const pool = new BufferPool()
  const first = lent(pool, 'a')
  const second = lent(pool, 'b')
  assert.notEqual(memoryOf(first.json), memoryOf(second.json))
  assert.equal(String(first.json), 'a'.repeat(LONG))
  const memory = memoryOf(first.json)
  first.release?.()
  first.release?.()
  const third = lent(pool, 'c')
  const fourth = lent(pool, 'd')
  assert.notEqual(memoryOf(third.json), memoryOf(fourth.json))
  assert.equal(memoryOf(third.json), memory)
  assert.equal(String(second.json), 'b'.repeat(LONG))
  assert.equal(String(third.json), 'c'.repeat(LONG))
})

test('a result that fills less than half of a large buffer is copied instead of lent', () => {
  const pool = new BufferPool()
  const large = lent(pool, 'a', 1 << 20)
  const memory = memoryOf(large.json)
  large.release?.()
  // The second result outgrows the buffer that it starts in, so it gets the large buffer.
  const small = lent(pool, 'b', 40_000)
  assert.equal(small.release, undefined)
  assert.notEqual(memoryOf(small.json), memory)
  // The large buffer is free again, because the second result was copied.
  assert.equal(memoryOf(lent(pool, 'c', 1 << 20).json), memory)
  assert.equal(String(small.json), 'b'.repeat(40_000))
})

test('a result of some kilobytes is lent too, and its buffer is reused after the release', () => {
  const pool = new BufferPool()
  const first = lent(pool, 'a', 10_000)
  const second = lent(pool, 'b', 10_000)
  const memory = memoryOf(first.json)
  assert.notEqual(memory, memoryOf(second.json))
  first.release?.()
  const third = lent(pool, 'c', 10_000)
  assert.equal(memoryOf(third.json), memory)
  assert.deepEqual([second.json, third.json].map(String), ['b'.repeat(10_000), 'c'.repeat(10_000)])
})

test('a short result is returned as a string', () => {
  const pool = new BufferPool()
  assert.deepEqual(lent(pool, 'a', 1000), { json: 'a'.repeat(1000) })
  assert.deepEqual(lent(pool, 'b', 0), { json: '' })
})

test('a pool of buffers keeps at most 16 MB, and no buffer over 4 MB', () => {
  const pool = new BufferPool()
  pool.give(Buffer.alloc((4 << 20) + 1))
  assert.equal(pool.large(1), undefined)
  for (let n = 0; n < 6; n++) pool.give(Buffer.alloc(4 << 20))
  const kept = Array.from({ length: 6 }, () => pool.large(1)?.length)
  assert.deepEqual(kept, [4 << 20, 4 << 20, 4 << 20, 4 << 20, undefined, undefined])
  pool.give(Buffer.alloc(4 << 20))
  assert.equal(pool.large((4 << 20) + 1), undefined)
  assert.equal(pool.large(4 << 20)?.length, 4 << 20)
})

test('a result without a pool is copied, so the next result does not change it', () => {
  const out = new JsonBytes(16)
  writeRaw(Buffer.alloc(LONG, 'a'), 0, LONG, out)
  const first = out.lend()
  out.length = 0
  writeRaw(Buffer.alloc(LONG, 'b'), 0, LONG, out)
  assert.equal(String(first.json), 'a'.repeat(LONG))
  assert.equal(first.release, undefined)
})
