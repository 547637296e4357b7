import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { fastify } from 'fastify'
import { HungUp } from '../hang-up.ts'
import { signInRoutes } from './sign-in-routes.ts'

test('the signal of a request under /auth aborts when the caller hangs up', async () => {
  await using app = fastify()
  const { promise: asked, resolve: ask } = Promise.withResolvers<Request>()
  const { promise: ended, resolve: end } = Promise.withResolvers<Response>()
  signInRoutes(app, { handle: (request) => (ask(request), ended) })
  const closed = new Promise<void>((resolve) => {
    app.server.once('connection', (accepted) => accepted.once('close', () => resolve()))
  })
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  socket.write('GET /auth/options HTTP/1.1\r\nhost: x\r\n\r\n')
  const { signal } = await asked
  assert.equal(signal.aborted, false)
  socket.destroy()
  await closed
  await setImmediate()
  assert.ok(signal.reason instanceof HungUp)
  end(Response.json({}))
})
