// Clients ask for the largest page without a token, and read nothing. They must not take memory of the process.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { startService } from '../support/service.ts'

const CLIENTS = 100
/**
 * Includes the files of the pages, the buffers of the connections, and garbage. Without a limit, the answers would take
 * 420 MB.
 */
const GROWTH_MAX = 150 << 20

test('100 clients that do not read /docs/scalar.js take no memory, and other clients get the whole file', async () => {
  const metrics = `127.0.0.1:${await freePort()}`
  await using app = await startService(await mkdtemp(join(tmpdir(), 'vitrine-unread-')), {
    VITRINE_METRICS_ADDR: metrics,
  })
  const memory = async (): Promise<number> => {
    const response = await fetch(`http://${metrics}/metrics`, { headers: { connection: 'close' } })
    return Number(/^process_resident_memory_bytes (\S+)/m.exec(await response.text())?.[1])
  }
  const whole = await app.ask('GET', '/docs/scalar.js', { headers: { 'accept-encoding': 'identity' } })
  assert.ok(whole.text.length > 4_000_000)
  const before = await memory()
  const { hostname, port } = new URL(app.url)
  const silent: Socket[] = []
  for (let n = 0; n < CLIENTS; n++) {
    const socket = connect({ port: Number(port), host: hostname })
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write('GET /docs/scalar.js HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(32))
    silent.push(socket)
  }
  for (const encoding of ['identity', 'gzip', 'br']) {
    const other = await app.ask('GET', '/docs/scalar.js', { headers: { 'accept-encoding': encoding } })
    assert.equal(other.text.length, whole.text.length)
  }
  assert.ok((await memory()) - before < GROWTH_MAX, `${before} → ${await memory()}`)
  for (const socket of silent) socket.destroy()
})
