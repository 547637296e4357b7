import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { dialing, sendOut, type Incoming } from './outbound-request.ts'

/** Sends a request to a server that answers with these bytes. */
async function answered(bytes: string): Promise<Incoming> {
  await using server = createServer((socket) => {
    socket.on('error', () => undefined).resume()
    socket.write(bytes)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const url = new URL(`http://127.0.0.1:${port}/`)
  const transport = { dial: dialing(() => true), deadlineMs: 60_000 }
  return await sendOut(transport, { url, headers: {}, headerBytesMax: 8_192, bytesMax: 1_024 })
}

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

for (const interim of ['HTTP/1.1 100 \r\n\r\n', 'HTTP/1.1 103 a\r\n\r\n']) {
  test(`up to eight of these interim answers may precede an answer: ${JSON.stringify(interim)}`, async () => {
    assert.equal((await answered(interim.repeat(8) + ANSWER)).text, 'ok')
    await assert.rejects(answered(interim.repeat(9) + ANSWER), /too many interim answers/)
    await assert.rejects(answered(interim.repeat(3_000)), /too many interim answers/)
  })
}
