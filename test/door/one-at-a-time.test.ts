// On one connection, the service computes one answer at a time, in the order of the requests. Otherwise, a client that
// reads nothing could make all answers take memory.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const LARGE = '/docs/scalar.js'

describe('pipelined requests', () => {
  const gate = Promise.withResolvers<void>()
  let calls = 0
  let app: TestApp
  let ada: Person
  before(async () => {
    app = await startApp({
      more: {
        routes: { gated: { method: 'GET', path: '/gated', summary: 'Waits.', answer: null, errors: [] } },
        operations: {
          gated: async () => {
            calls++
            await gate.promise
          },
        },
      },
    })
    ada = await app.person()
  })
  after(() => app[Symbol.asyncDispose]())

  const lines = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ada.jwt}\r\n\r\n`

  async function send(text: string): Promise<Socket & { text: string }> {
    const { hostname, port } = new URL(app.url)
    const socket = Object.assign(connect({ host: hostname, port: Number(port) }), { text: '' })
    socket.on('data', (data) => (socket.text += String(data)))
    await once(socket, 'connect')
    socket.write(text)
    return socket
  }
  const statusesOf = (text: string): (string | undefined)[] =>
    [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)

  test('pipelined requests are answered in order, each in full', async () => {
    const paths = ['/health/live', LARGE, '/docs', '/nothing', '/health/live']
    const socket = await send(paths.map(lines).join(''))
    await until('five answers', () => statusesOf(socket.text).length === 5 && socket.text.endsWith('}'))
    assert.deepEqual(statusesOf(socket.text), ['200', '200', '200', '404', '200'])
    assert.ok(socket.text.length > 4_000_000)
    socket.destroy()
  })

  test('a pipelined request begins only when the previous answers were sent', async () => {
    const sockets = [await send(lines('/gated').repeat(3)), await send(lines('/gated').repeat(3))]
    await until('the first request of each connection', () => calls >= 2)
    assert.equal((await ada.ask('GET', '/users/me')).status, 200)
    assert.equal(calls, 2)
    gate.resolve()
    for (const socket of sockets) {
      await until('all answers', () => statusesOf(socket.text).length === 3)
      assert.deepEqual(statusesOf(socket.text), ['204', '204', '204'])
      socket.destroy()
    }
  })
})
