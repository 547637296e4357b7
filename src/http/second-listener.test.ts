import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { openSideServer } from './second-listener.ts'

/** Sends the text, and returns everything that the server answers until it closes the connection. */
async function answerTo(address: string, text: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: Number(address.split(':')[1]) })
  await once(socket, 'connect')
  socket.write(text)
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  return answer
}

test('the second listener answers an unreadable request with a request id, after the answers to earlier requests', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const slow = async () => {
    ask()
    await released
    return { status: 200, contentType: 'text/plain', body: 'whole' }
  }
  await using server = await openSideServer('127.0.0.1:0', { '/slow': slow }, () => 'the-request-id')
  const broken = await answerTo(server.address, 'no HTTP\r\n\r\n')
  assert.match(broken, /^HTTP\/1\.1 400 Bad Request\r\n/)
  assert.match(broken, /x-request-id: the-request-id\r\n[^]*"code":"INVALID_REQUEST"/i)
  const both = answerTo(server.address, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\nno HTTP\r\n\r\n')
  await asked
  release()
  assert.match(await both, /^HTTP\/1\.1 200 OK\r\n[^]*\r\nwhole\r\n0\r\n\r\n$/)
})
