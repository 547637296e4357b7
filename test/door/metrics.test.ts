// Metrics have their own address, and only if one is configured.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { startApp } from '../support/app.ts'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

test('answers are counted by operation and status, only at VITRINE_METRICS_ADDR', async () => {
  const address = `127.0.0.1:${await freePort()}`
  await using app = await startApp({ env: { VITRINE_METRICS_ADDR: address } })
  await app.ask('GET', '/users/me')
  await app.ask('GET', '/nowhere')
  const text = await (await fetch(`http://${address}/metrics`)).text()
  assert.match(text, /^vitrine_answers_total\{operation="getAccount",status="401"\} 1$/m)
  assert.match(text, /^vitrine_answers_total\{operation="other",status="404"\} 1$/m)
  assert.match(text, /^vitrine_answer_seconds_bucket\{operation="getAccount",le="\+Inf"\} 1$/m)
  assert.match(text, /^vitrine_answer_seconds_count\{operation="getAccount"\} 1$/m)
  for (const name of [
    'audit_waiting_rows',
    'audit_writes',
    'queries_running',
    'connections',
    'event_loop_delay_seconds',
  ])
    assert.match(text, new RegExp(`^vitrine_${name} [\\d.e-]+$`, 'm'))
  assert.match(text, /^process_resident_memory_bytes \d+$/m)
  assert.equal((await app.ask('GET', '/metrics')).status, 404)
  assert.equal((await fetch(`http://${address}/`)).status, 404)
})
