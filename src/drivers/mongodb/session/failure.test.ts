// The errors that a caller gets if the client library fails without an answer from the server.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { test } from 'node:test'
import { MongoNetworkError, MongoServerError } from 'mongodb'
import { failure, isLost } from './failure.ts'

test('an error of the socket or of the client is reported as a lost connection', async () => {
  const server = createServer((socket) => socket.resetAndDestroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const socket = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1')
  socket.on('connect', () => socket.write('x'))
  const [reset] = await once(socket, 'error')
  server.close()
  for (const error of [reset, new MongoNetworkError('connection 1 to 127.0.0.1:1 closed')]) {
    const shown = failure(error)
    assert.deepEqual(
      [shown.code, shown.message, isLost(shown)],
      ['DATASOURCE_UNAVAILABLE', 'The connection to the database was lost.', true],
    )
    assert.equal(shown.cause, error)
  }
})

test('a defect of the service in a MongoDB query is reported as a defect', () => {
  assert.equal(failure(new TypeError('x is not a function')).code, 'INTERNAL')
  assert.equal(failure('text').code, 'INTERNAL')
})

test('only an answer that says that the server ended the query counts as cancelled in the database', () => {
  const codeOf = (code: number) => failure(new MongoServerError({ code, message: 'CANARY' })).code
  // 202: a router waited too long for another server, which may still be working.
  assert.deepEqual([50, 262, 202].map(codeOf), ['QUERY_TIMEOUT', 'QUERY_TIMEOUT', 'QUERY_FAILED'])
})
