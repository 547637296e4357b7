// Tests probes, and limits on connections. Before a stopping service refuses requests, /health/ready becomes 503.
// Probes have their own listener. If there are too many connections, an idle one is closed for a new one.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { startService } from '../support/service.ts'

const folder = () => mkdtemp(join(tmpdir(), 'vitrine-health-'))

const freeAddress = async () => `127.0.0.1:${await freePort()}`

const probe = (address: string, path: string) => fetch(`http://${address}${path}`, { headers: { connection: 'close' } })

async function open(url: string): Promise<Socket & { text: string; isClosed: boolean }> {
  const { port, hostname } = new URL(url)
  const socket = Object.assign(connect(Number(port), hostname), { text: '', isClosed: false })
  socket.on('data', (chunk) => (socket.text += String(chunk)))
  socket.on('error', () => undefined)
  socket.on('close', () => (socket.isClosed = true))
  await once(socket, 'connect')
  return socket
}

test('after SIGTERM, /health/ready is 503 while requests are still answered', async () => {
  const health = await freeAddress()
  await using app = await startService(await folder(), {
    VITRINE_DRAIN_DELAY_MS: '600000',
    VITRINE_HEALTH_ADDR: health,
  })
  assert.equal((await probe(health, '/health/ready')).status, 200)
  app.signal('SIGTERM')
  for (const address of [health, new URL(app.url).host]) {
    let ready = await probe(address, '/health/ready')
    while (ready.status === 200) {
      await pause(10)
      ready = await probe(address, '/health/ready')
    }
    const body: unknown = await ready.json()
    assert.deepEqual(
      [ready.status, body],
      [503, { error: 'The service is shutting down.', code: 'OVERLOADED', retryAfter: 1 }],
    )
  }
  const answer = await app.ask('GET', '/openapi.json')
  assert.deepEqual([answer.status, answer.headers.get('connection')], [200, 'close'])
  // A second signal ends the delay.
  app.signal('SIGTERM')
  assert.equal(await app.ended, 0)
})

test('probes are answered on their own address while every connection is busy with a request', async () => {
  const health = await freeAddress()
  await using app = await startService(await folder(), {
    VITRINE_CONNECTIONS: '16',
    VITRINE_HEALTH_ADDR: health,
    VITRINE_METRICS_ADDR: health,
  })
  const busy = await Promise.all(Array.from({ length: 16 }, () => open(app.url)))
  // Each connection has a request whose body never ends.
  const half =
    'POST /auth/sign-in/email HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{'
  for (const socket of busy) socket.write(half)
  assert.equal((await probe(health, '/health/live')).status, 200)
  assert.equal((await probe(health, '/health/ready')).status, 200)
  assert.match(await (await probe(health, '/metrics')).text(), /^process_uptime_seconds \d/m)
  assert.equal((await probe(health, '/nothing')).status, 404)
  for (const socket of busy) socket.destroy()
})

test('probes are answered while silent clients open more connections than their listener accepts', async () => {
  const health = await freeAddress()
  await using app = await startService(await folder(), { VITRINE_HEALTH_ADDR: health })
  const silent = []
  for (let n = 0; n < 80; n++) silent.push(await open(`http://${health}`))
  assert.equal((await probe(health, '/health/live')).status, 200)
  assert.equal((await app.ask('GET', '/health/live')).status, 200)
  for (const socket of silent) socket.destroy()
})

test('if there are too many connections, the one that has been idle for longest is closed for a new one', async () => {
  await using app = await startService(await folder(), { VITRINE_CONNECTIONS: '16' })
  const idle = [await open(app.url)]
  // Once this request is answered, the service has also accepted the earlier connection.
  assert.equal((await app.ask('GET', '/health/live', { headers: { connection: 'close' } })).status, 200)
  for (let n = 1; n < 40; n++) idle.push(await open(app.url))
  for (let n = 0; n < 5; n++) assert.equal((await app.ask('GET', '/health/live')).status, 200)
  while (idle.filter(({ isClosed }) => isClosed).length < 24) await pause(10)
  assert.equal(idle[0]?.isClosed, true)
  assert.equal(idle.at(-1)?.isClosed, false)
  for (const socket of idle) socket.destroy()
})

test('one client address cannot take all connections', async () => {
  await using app = await startService(await folder(), { VITRINE_CONNECTIONS_PER_ADDRESS: '2' })
  const { port } = new URL(app.url)
  const [first, second, third] = [await open(app.url), await open(app.url), await open(app.url)]
  while (!first.isClosed) await pause(10)
  assert.deepEqual([second.isClosed, third.isClosed], [false, false])
  // Another address of this machine can still connect.
  const other = connect({ host: '127.0.0.1', port: Number(port), localAddress: '127.0.0.2' })
  other.write('GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  let text = ''
  for await (const chunk of other) text += String(chunk)
  assert.match(text, /^HTTP\/1\.1 200 /)
  assert.deepEqual([second.isClosed, third.isClosed], [false, false])
  for (const socket of [first, second, third]) socket.destroy()
})
