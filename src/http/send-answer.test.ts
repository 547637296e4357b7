import assert from 'node:assert/strict'
import { get, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import fastify from 'fastify'
import { z } from 'zod'
import { turnsDuring } from '../../test/support/turns-during.ts'
import { HungUp, hangUpOf } from '../hang-up.ts'
import { encode } from '../query/encode-body.ts'
import { answer, answerPrebuilt } from './send-answer.ts'

test('long rows are sent in slices without a copy, and their memory is released after the last slice', async () => {
  const rows = Buffer.from(`[["${'é😀'.repeat(200_000)}"]]`)
  const columns = [{ name: 'ä', dataType: 'text' }]
  let given = 0
  const written: Buffer[] = []
  const app = fastify()
  app.get('/', async (_request, reply) => {
    const json = encode({ columns, rows, rowCount: 1, truncated: false, release: () => given++ }, 2)
    const write = reply.raw.write.bind(reply.raw)
    reply.raw.write = (chunk: Buffer, ...more: never[]) => {
      assert.equal(given, 0)
      written.push(chunk)
      return write(chunk, ...more)
    }
    return await answerPrebuilt(reply, 200, { json, headers: { 'ratelimit-limit': '7' } }, undefined)
  })
  try {
    const url = await app.listen()
    const parts: Buffer[] = []
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const response = await new Promise<IncomingMessage>((opened) => get(url, opened))
    response.on('data', (part: Buffer) => parts.push(part)).on('end', () => resolve(undefined))
    await promise
    const text = Buffer.concat(parts).toString()
    assert.deepEqual(JSON.parse(text), {
      columns,
      rows: JSON.parse(String(rows)),
      rowCount: 1,
      truncated: false,
      durationMs: 2,
    })
    assert.equal(response.headers['content-length'], String(Buffer.byteLength(text)))
    assert.deepEqual([response.headers['ratelimit-limit'], response.headers['cache-control']], ['7', 'no-store'])
    assert.ok(written.length > 30 && written.every((chunk) => chunk.length <= 32_768))
    assert.ok(written.some((chunk) => chunk.buffer === rows.buffer))
  } finally {
    await app.close()
  }
  assert.equal(given, 1)
})

test('other requests run between two elements of a list that takes long to write', async () => {
  // Each element takes longer than a slice of the event loop.
  const slow = z.object({ n: z.number() }).transform((it) => {
    const end = performance.now() + 10
    while (performance.now() < end);
    return it
  })
  const route = { method: 'GET', path: '/', summary: '', answer: z.array(slow), errors: [] } as const
  const values = Array.from({ length: 20 }, (_, n) => ({ n, undeclared: true }))
  await using app = fastify()
  app.get('/', async (_request, reply) => await answer(reply, route, values))
  let body = ''
  const turns = await turnsDuring(async () => void (body = (await app.inject('/')).body))
  assert.deepEqual(
    JSON.parse(body),
    values.map(({ n }) => ({ n })),
  )
  assert.ok(turns >= 19, `${turns} turns`)
})

test('all who ask for the signal of a response share one signal and one listener', async () => {
  await using app = fastify()
  app.get('/', async (_request, reply) => {
    const signal = hangUpOf(reply.raw)
    const listeners = reply.raw.listenerCount('close')
    assert.equal(hangUpOf(reply.raw), signal)
    assert.equal(reply.raw.listenerCount('close'), listeners)
    return await reply.send('ok')
  })
  assert.equal((await app.inject('/')).body, 'ok')
})

test('a list is not written to its end for a caller who has hung up', async () => {
  let written = 0
  let hangUp = (): void => undefined
  const slow = z.object({ n: z.number() }).transform((it) => {
    if (++written === 2) hangUp()
    const end = performance.now() + 10
    while (performance.now() < end);
    return it
  })
  const route = { method: 'GET', path: '/', summary: '', answer: z.array(slow), errors: [] } as const
  const values = Array.from({ length: 20 }, (_, n) => ({ n }))
  const { promise: ended, resolve } = Promise.withResolvers<unknown>()
  await using app = fastify()
  app.get('/', async (_request, reply) => {
    hangUp = () => void reply.raw.socket?.destroy()
    await Promise.resolve(answer(reply, route, values)).then(resolve, resolve)
    return reply.hijack()
  })
  const url = await app.listen()
  await assert.rejects(fetch(url))
  assert.ok((await ended) instanceof HungUp)
  assert.ok(written < values.length, `${written} written`)
})

test('a list is sent whole, whatever its length', async () => {
  const route = { method: 'GET', path: '/', summary: '', answer: z.array(z.string()), errors: [] } as const
  for (const values of [[], ['é'], ['é', 'b'], Array.from({ length: 1_000 }, (_, n) => `${n}é`.repeat(2_000))]) {
    await using app = fastify()
    app.get('/', async (_request, reply) => await answer(reply, route, values))
    const { body, headers } = await app.inject('/')
    assert.deepEqual(JSON.parse(body), values)
    assert.equal(headers['content-length'], String(Buffer.byteLength(body)))
    assert.equal(headers['cache-control'], 'no-store')
  }
})
