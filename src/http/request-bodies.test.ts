// Sends bodies in tiny chunks, and bodies whose request is answered before they are complete, to a real server.
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { until } from '../../test/support/until.ts'
import { openTurns } from './one-at-a-time.ts'
import { limitBodies } from './request-bodies.ts'
import { unreadableRequests } from './unreadable-requests.ts'

const HEAD = (path: string) => `POST ${path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`
const TINY = '1\r\nx\r\n'
const END = '0\r\n\r\n'

/** Answers /early before it reads the body, and all other paths with their body. */
async function open(late?: Parameters<typeof limitBodies>[1]) {
  const turns = openTurns()
  const server = createServer(
    turns.listener((request, response) => {
      if (request.url === '/early') response.end('early')
      else
        void text(request).then(
          (body) => response.end(`read ${body.length}`),
          () => undefined,
        )
    }),
  )
  limitBodies(server, late)
  server.on(
    'clientError',
    unreadableRequests(turns, () => 'id', 1_000),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    async connect() {
      const socket = Object.assign(connect({ port, host: '127.0.0.1' }), { heard: '' })
      socket.on('data', (data) => (socket.heard += String(data))).on('error', () => undefined)
      await once(socket, 'connect')
      return socket
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Returns how often Node calls JavaScript for the messages that it parses, while `work` runs. */
async function parserCalls(work: () => Promise<void>): Promise<number> {
  const parsers = new Set<number>()
  let calls = 0
  const hook = createHook({
    init: (id, type) => void (type === 'HTTPINCOMINGMESSAGE' && parsers.add(id)),
    before: (id) => void (parsers.has(id) && calls++),
  }).enable()
  try {
    await work()
  } finally {
    hook.disable()
  }
  return calls
}

const heard = (socket: Socket & { readonly heard: string }, what: string) =>
  until(what, () => socket.heard.includes(what) || socket.closed)

/** Also if the service resets the connection. */
const closed = (socket: Socket) => until('the connection is closed', () => socket.closed)

test('after the answer, no JavaScript runs for the chunks of the body, and the connection serves the next request', async () => {
  await using server = await open()
  const calls = await parserCalls(async () => {
    const socket = await server.connect()
    socket.write(HEAD('/early'))
    await heard(socket, 'early')
    socket.write(TINY.repeat(50_000) + END + HEAD('/whole') + TINY.repeat(3) + END)
    await heard(socket, 'read 3')
    assert.equal(socket.closed, false)
    socket.destroy()
  })
  assert.ok(calls < 1_000, `${calls} calls`)
})

test('a body that is read may have a thousand tiny chunks, and any number of larger ones', async () => {
  await using server = await open()
  for (const [size, count] of [
    [1, 1_000],
    [64, 10_000],
  ] as const) {
    const socket = await server.connect()
    socket.write(HEAD('/whole') + `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`.repeat(count) + END)
    await heard(socket, `read ${size * count}`)
    assert.equal(socket.closed, false, socket.heard)
    socket.destroy()
  }
})

test('a body with more tiny chunks is refused, also if its end is in the same packet, and its rest is not parsed', async () => {
  await using server = await open()
  const calls = await parserCalls(async () => {
    const socket = await server.connect()
    socket.write(HEAD('/whole') + TINY.repeat(10_000) + END + HEAD('/whole') + END)
    await closed(socket)
    assert.match(socket.heard, /^HTTP\/1\.1 400 [^]*The body has too many chunks/)
    assert.equal(socket.heard.match(/HTTP/g)?.length, 1)
  })
  assert.ok(calls < 2_000, `${calls} calls`)
})

test('when a connection with an ignored body was closed, the next connections read their bodies', async () => {
  await using server = await open()
  for (let n = 0; n < 3; n++) {
    const early = await server.connect()
    early.write(HEAD('/early'))
    await heard(early, 'early')
    early.destroy()
    await closed(early)
    const whole = await server.connect()
    whole.write(HEAD('/whole') + TINY.repeat(5) + END)
    await heard(whole, 'read 5')
    assert.ok(whole.heard.includes('read 5'))
    whole.destroy()
  }
})

test('a client that sends its body after the answer reads the answer, and the connection stays open', async () => {
  await using server = await open()
  const socket = await server.connect()
  const body = 'x'.repeat(1 << 20)
  socket.pause()
  socket.write(`POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`)
  await once(socket, 'readable')
  await new Promise<void>((resolve) => socket.write(body, () => resolve()))
  socket.resume()
  await heard(socket, 'early')
  socket.write(HEAD('/whole') + END)
  await heard(socket, 'read 0')
  assert.equal(socket.closed, false)
  socket.destroy()
})

for (const [what, late] of [
  ['after too many bytes', { bytes: 100_000, ms: 600_000 }],
  ['after some time', { bytes: Infinity, ms: 300 }],
] as const) {
  test(`a connection that goes on with its body after the answer is closed ${what}`, async () => {
    await using server = await open(late)
    const socket = await server.connect()
    socket.write(HEAD('/early'))
    await heard(socket, 'early')
    const more = setInterval(() => socket.writable && socket.write(`10000\r\n${'x'.repeat(65_536)}\r\n`), 10)
    socket.once('close', () => clearInterval(more))
    await closed(socket)
  })
}
