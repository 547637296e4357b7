import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { pino } from 'pino'
import { openRequestIds } from './request-id.ts'
import { createServer } from './server.ts'

const never = (): never => assert.fail('nobody asks')

function server() {
  return createServer({
    routes: {},
    operations: {},
    authenticator: { again: never, known: never, authenticate: never, authenticateConnector: never },
    oauth: { handle: never, protectedResource: never, authorizationServer: never },
    signIn: { handle: never },
    open: { getInvitation: never },
    isDraining: () => false,
    ready: never,
    trustProxy: false,
    corsOrigins: new Set(),
    metrics: null,
    accessLog: null,
    tracing: null,
    requestIds: openRequestIds(false),
    log: pino({ level: 'silent' }),
  })
}

test('the timeout of a connection without traffic is longer than the longest query', async () => {
  const app = server()
  await app.ready()
  // The longest statement timeout of a team, and two waits for a connection (datasources/connection-pool.ts).
  const longest = 60_000 + 5_000 + 12_000
  assert.ok(app.server.timeout > longest && app.server.timeout <= 2 * longest, `${app.server.timeout} ms`)
  await app.close()
})

for (const [name, sent] of [
  ['headers', 'GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow: '],
  [
    'a body',
    'POST /auth/sign-in/email HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{',
  ],
] as const) {
  test(`a socket that trickles ${name} gets an answer and is destroyed, even if the client never closes it`, async () => {
    const app = server()
    assert.deepEqual([app.server.headersTimeout, app.server.requestTimeout], [15_000, 30_000])
    app.server.headersTimeout = app.server.requestTimeout = 300
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
    let heard = ''
    socket.on('data', (chunk) => (heard += String(chunk)))
    socket.on('error', () => undefined)
    const ended = Promise.withResolvers<void>()
    app.server.on('connection', (server) => server.on('close', () => ended.resolve()))
    socket.write(sent)
    const trickle = setInterval(() => socket.writable && socket.write('x'), 50)
    await ended.promise
    clearInterval(trickle)
    socket.destroy()
    assert.match(heard, /^HTTP\/1\.1 400 [^]*did not arrive in time/)
    await app.close()
  })
}

for (const [name, head, status, said] of [
  ['with two Host headers', 'HTTP/1.1\r\nHost: a\r\nhost: b', 400, 'several Host headers'],
  ['without a Host header', 'HTTP/1.1', 400, 'no Host header'],
  ['with an unknown Expect header', 'HTTP/1.1\r\nHost: a\r\nExpect: x', 417, 'Expect header'],
] as const) {
  test(`a request ${name} is refused, and its connection is closed`, async () => {
    const app = server()
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    const socket = connect({ port: Number(port), host: '127.0.0.1' })
    socket.write(`GET /health/live ${head}\r\n\r\n`)
    const heard = await text(socket)
    assert.ok(heard.startsWith(`HTTP/1.1 ${status} `), heard)
    assert.match(heard, new RegExp(`x-request-id: [^]*${said}[^]*"code":"INVALID_REQUEST"`, 'i'))
    await app.close()
  })
}

const BROKEN = 'GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n'

test('a body that is read and has too many chunks is refused', async () => {
  const app = server()
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  const head = 'host: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked'
  socket.write(`POST /auth/sign-in/email HTTP/1.1\r\n${head}\r\n\r\n${'1\r\n \r\n'.repeat(5_000)}`)
  const heard = await text(socket)
  assert.match(heard, /^HTTP\/1\.1 400 [^]*x-request-id: [^]*too many chunks/i)
  await app.close()
})

test('a broken request is refused after the answers to the requests before it', async () => {
  const app = server()
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2) + BROKEN)
  const heard = await text(socket)
  assert.deepEqual(heard.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400'])
  await app.close()
})

test('a broken request does not interrupt an answer that the client still reads', async () => {
  const app = server()
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  const refused = once(app.server, 'clientError')
  // Two answers of 4 MB fill all buffers between the service and a client that reads nothing.
  socket.pause()
  socket.write('GET /docs/scalar.js HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2))
  await once(app.server, 'request')
  socket.write(BROKEN)
  await refused
  const [first = '', second = '', third, more] = (await text(socket)).split('HTTP/1.1 ').slice(1)
  const lengthOf = (answer: string) => Buffer.byteLength(answer.slice(answer.indexOf('\r\n\r\n') + 4))
  for (const answer of [first, second]) {
    assert.ok(answer.startsWith('200 '))
    assert.equal(lengthOf(answer), Number(/content-length: (\d+)/.exec(answer)?.[1]))
  }
  assert.ok(third?.startsWith('400 '))
  assert.equal(more, undefined)
  await app.close()
})

test('a broken body does not interrupt the answer to its own request', async () => {
  const app = server()
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  const refused = once(app.server, 'clientError')
  let heard = ''
  socket.on('error', () => undefined)
  socket.on('data', (bytes) => (heard += String(bytes)))
  socket.once('data', () => {
    // The head of the answer has arrived.
    socket.pause()
    socket.write('zz\r\n')
  })
  socket.write('GET /docs/scalar.js HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n')
  await refused
  socket.resume()
  await once(socket, 'close')
  assert.match(heard, /^HTTP\/1\.1 200 /)
  assert.doesNotMatch(heard, /HTTP\/1\.1 400/)
  await app.close()
})
