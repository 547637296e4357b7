import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import fastify, { type FastifyReply } from 'fastify'
import { z } from 'zod'
import { until } from '../../test/support/until.ts'
import { holdConnections, PATIENCE, type ConnectionLimits, type Connections } from './connections.ts'
import { answer, answerPrebuilt } from './send-answer.ts'

/** Larger than the buffers of the operating system for one connection. */
const LARGE = Buffer.alloc(32 << 20, 'x')
const MANY: ConnectionLimits = { max: 100, maxPerAddress: 100 }

interface Opened extends AsyncDisposable {
  readonly held: Connections
  /** Opens a connection and sends a request, but does not read the answer. */
  ask(from?: string): Promise<Socket>
}

async function open(
  limits: ConnectionLimits,
  patience: Partial<typeof PATIENCE>,
  answer: RequestListener = (_request, response) => void response.end(LARGE),
): Promise<Opened> {
  const server = createServer({ keepAliveTimeout: 100 }, answer)
  const addresses: string[] = []
  server.on('connection', (socket) => {
    Object.defineProperty(socket, 'remoteAddress', { value: addresses.shift() ?? '192.0.2.1' })
  })
  const held = holdConnections(server, limits, () => 'id', { ...PATIENCE, ...patience })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const at = server.address()
  const port = typeof at === 'object' && at !== null ? at.port : 0
  const sockets: Socket[] = []
  return {
    held,
    async ask(from = '192.0.2.1') {
      addresses.push(from)
      const socket = connect({ port, host: '127.0.0.1' })
      sockets.push(socket)
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
      return socket
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      server.closeAllConnections()
      if (server.listening) await once(server, 'close')
    },
  }
}

function chatter(socket: Socket): Socket {
  const lines = setInterval(() => socket.write('\r\n'), 20)
  socket.once('close', () => clearInterval(lines))
  return socket
}

test('a connection whose client does not read its answer is closed, even if the client sends empty lines', async () => {
  await using opened = await open(MANY, { untakenMs: 300 })
  chatter(await opened.ask())
  await until('the connection is closed', () => opened.held.unread === 1)
  assert.equal(opened.held.open, 0)
})

test('a client that reads slowly gets the whole answer', async () => {
  await using opened = await open(MANY, { untakenMs: 3_000 })
  const slow = await opened.ask()
  let bytes = 0
  slow.pause()
  const reads = setInterval(() => (bytes += Buffer.byteLength(slow.read() ?? '')), 10)
  await until('the answer', () => bytes > LARGE.length || slow.closed)
  clearInterval(reads)
  assert.ok(bytes > LARGE.length)
})

test('an idle connection is closed, even if it sends empty lines', async () => {
  await using opened = await open(MANY, { idleExtraMs: 300 }, (_request, response) => void response.end())
  const idle = chatter(await opened.ask()).resume()
  await until('the connection is closed', () => idle.closed)
  assert.equal(opened.held.open, 0)
})

test('if too many bytes are unread, the oldest unread answer of the address with the most bytes is closed', async () => {
  const unreadBytesPerAddress = 3 * LARGE.length
  await using opened = await open(MANY, { unreadBytesPerAddress })
  const other = await opened.ask('192.0.2.2')
  await until('an unread answer', () => opened.held.unreadBytes > 0)
  const first = await opened.ask()
  await until('two unread answers', () => opened.held.unreadBytes > LARGE.length)
  for (let n = 0; n < 4; n++) await opened.ask()
  await until('closed connections', () => opened.held.unread > 0 && opened.held.unreadBytes < 5 * LARGE.length)
  assert.ok(opened.held.unreadBytes <= unreadBytesPerAddress + LARGE.length)
  first.resume()
  await until('the end of the oldest', () => first.closed)
  other.resume()
  await until('the whole answer of the other address', () => other.bytesRead > LARGE.length || other.closed)
  assert.ok(other.bytesRead > LARGE.length)
})

const list = { method: 'GET', path: '/', summary: '', answer: z.array(z.string()), errors: [] } as const
const texts = Array.from({ length: 32 }, () => 'x'.repeat(1 << 20))
const sentInSlices: Readonly<Record<string, (reply: FastifyReply) => unknown>> = {
  'the rows of a query': (reply) =>
    answerPrebuilt(
      reply,
      200,
      { json: { byteLength: LARGE.length, parts: [LARGE], release: () => undefined } },
      undefined,
    ),
  'a long list': (reply) => answer(reply, list, texts),
}

for (const [what, send] of Object.entries(sentInSlices)) {
  test(`the bytes of ${what}, which are sent in slices, count as unread until the whole answer is sent`, async () => {
    await using app = fastify({ forceCloseConnections: true })
    app.get('/', async (_request, reply) => await send(reply))
    const unreadBytesPerAddress = 3 * LARGE.length + (1 << 20)
    const held = holdConnections(app.server, MANY, () => 'id', { ...PATIENCE, unreadBytesPerAddress })
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    const sockets = Array.from({ length: 5 }, () => connect({ port: Number(port), host: '127.0.0.1' }))
    for (const socket of sockets) {
      socket.on('error', () => undefined)
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    }
    await until('two closed connections', () => held.unread === 2)
    assert.equal(held.open, 3)
    assert.ok(held.unreadBytes >= 3 * LARGE.length && held.unreadBytes <= unreadBytesPerAddress)
    for (const socket of sockets) socket.resume()
    await until('no unread answer', () => held.unreadBytes === 0)
    assert.deepEqual([held.unread, held.open], [2, 3])
    for (const socket of sockets) socket.destroy()
  })
}

test('if the limit of connections is reached, a new connection replaces one with an unread answer', async () => {
  await using opened = await open({ max: 2, maxPerAddress: null }, {})
  for (let n = 0; n < 2; n++) await opened.ask()
  await until('two unread answers', () => opened.held.unreadBytes > LARGE.length)
  const third = await opened.ask('192.0.2.3')
  const [data] = await once(third, 'data')
  assert.match(String(data), /^HTTP\/1\.1 200 /)
  assert.deepEqual([opened.held.evicted, opened.held.refused], [1, 0])
})

test('the requests that wait behind other requests share one limit, and free their places afterwards', async () => {
  await using opened = await open(MANY, { queuedRequests: 5 }, () => undefined)
  const more = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
  const first = await opened.ask()
  first.write(more.repeat(7))
  await until('two refused requests', () => opened.held.refused === 2)
  const second = await opened.ask()
  second.write(more)
  await until('a third one', () => opened.held.refused === 3)
  first.destroy()
  await until('the first connection is closed', () => opened.held.open === 1)
  const third = await opened.ask()
  third.write(more.repeat(6))
  await until('a fourth one', () => opened.held.refused === 4)
})

test('a connection that sends many requests in one packet is closed after a few refusals', async () => {
  await using opened = await open(MANY, {}, () => undefined)
  const first = await opened.ask()
  first.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(500))
  await until('the connection is closed', () => opened.held.evicted === 1)
  assert.equal(opened.held.refused, 32)
})

test('the addresses of an IPv6 network (/64) share one limit of connections, and another network has its own', async () => {
  await using opened = await open({ max: 100, maxPerAddress: 2 }, {})
  for (const from of ['2001:db8:0:1::1', '2001:db8:0:1::2', '2001:db8:0:1:ffff::3', '2001:db8:0:2::1']) {
    await opened.ask(from)
  }
  await until('one connection was closed or refused', () => opened.held.evicted + opened.held.refused === 1)
  assert.equal(opened.held.open, 3)
})

test('if a connection sends far too many requests in one packet, the rest of the packet is not read', async () => {
  await using server = createServer((_request, response) => void response.end())
  const held = holdConnections(server, MANY, () => 'id')
  let read = 0
  let errors = 0
  server.on('request', () => read++)
  server.on('clientError', (_error, socket) => {
    errors++
    socket.destroy()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => undefined).resume()
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2_000))
  await once(socket, 'close')
  assert.equal(held.evicted, 1)
  assert.ok(read <= 65 && errors <= 1, `${read} requests were read, with ${errors} errors`)
})
