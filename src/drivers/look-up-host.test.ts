// Tests how names of callers are resolved, against name servers of the test: one is silent, one knows one name.
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { dial } from './allowed-addresses.ts'
import { lookUpForMember, lookUpForStranger } from './look-up-host.ts'

const LATE = { code: 'EAI_AGAIN' }
const HEADER_BYTES = 12

test('a name whose name server is silent ends with an error, and the system is never asked for it', async () => {
  await using server = await nameServer(() => null)
  using calls = systemCalls()
  const names = Array.from({ length: 20 }, (_, n) => `h${n}.slow.test`)
  const reads = names.flatMap((name) => [lookUpForStranger(name, server.at), lookUpForMember(name, server.at)])
  for (const read of reads) await assert.rejects(read, LATE)
  assert.deepEqual(calls.counts(), { made: 0, most: 0 })
  assert.ok(server.asked() >= reads.length)
})

test('addresses of the name server are used, and the system is asked only for a member’s name that has none, one at a time', async () => {
  await using server = await nameServer((name) => (name === 'known.test' ? '192.0.2.7' : 'unknown'))
  using calls = systemCalls()
  const found = [{ address: '192.0.2.7', family: 4 }]
  assert.deepEqual(await lookUpForStranger('known.test', server.at), found)
  assert.deepEqual(await lookUpForMember('known.test', server.at), found)
  await assert.rejects(lookUpForStranger('localhost', server.at), { code: 'ENOTFOUND' })
  assert.deepEqual(calls.counts(), { made: 0, most: 0 })
  const reads = await Promise.all(Array.from({ length: 20 }, () => lookUpForMember('localhost', server.at)))
  for (const read of reads) assert.match(read[0]?.address ?? '', /^(127\.0\.0\.1|::1)$/)
  assert.deepEqual(calls.counts(), { made: 20, most: 1 })
})

test('dial() asks the system for names that strangers chose never, and for a member’s name one at a time', async () => {
  using calls = systemCalls()
  const at = { host: 'localhost', port: 1 }
  const stranger = dial({ ...at, namedByStranger: true }, false, AbortSignal.timeout(60_000))
  await assert.rejects(stranger)
  assert.deepEqual(calls.counts(), { made: 0, most: 0 })
  const dialed = Array.from({ length: 8 }, () => dial(at, false, AbortSignal.timeout(60_000)))
  for (const each of dialed) await assert.rejects(each)
  assert.ok(calls.counts().most <= 1)
})

/** Counts the calls of getaddrinfo, and the most at a time. */
function systemCalls(): Disposable & { counts(): { made: number; most: number } } {
  const open = new Set<number>()
  let [made, most] = [0, 0]
  const hook = createHook({
    init(id, type) {
      if (type !== 'GETADDRINFOREQWRAP') return
      open.add(id)
      made++
      most = Math.max(most, open.size)
    },
    before: (id) => void open.delete(id),
  }).enable()
  return { counts: () => ({ made, most }), [Symbol.dispose]: () => void hook.disable() }
}

/** Starts a name server. `answer` returns an IPv4 address, `unknown`, or null for silence. */
async function nameServer(
  answer: (name: string) => string | null,
): Promise<AsyncDisposable & { readonly at: readonly string[]; asked(): number }> {
  const socket = createSocket('udp4')
  let asked = 0
  socket.on('message', (query, { port, address }) => {
    asked++
    const labels: string[] = []
    let end = HEADER_BYTES
    for (let length = query[end] ?? 0; length > 0; length = query[end] ?? 0) {
      labels.push(query.toString('latin1', end + 1, end + 1 + length))
      end += 1 + length
    }
    const said = answer(labels.join('.'))
    if (said === null) return
    const question = query.subarray(HEADER_BYTES, end + 5)
    const isKnown = said !== 'unknown'
    const isIPv4 = query.readUInt16BE(end + 1) === 1
    const header = Buffer.from([...query.subarray(0, 2), 0x81, isKnown ? 0x80 : 0x83, 0, 1, 0, 0, 0, 0, 0, 0])
    header.writeUInt16BE(isKnown && isIPv4 ? 1 : 0, 6)
    const record = isKnown && isIPv4 ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...said.split('.').map(Number)] : []
    socket.send(Buffer.concat([header, question, Buffer.from(record)]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    at: [`127.0.0.1:${socket.address().port}`],
    asked: () => asked,
    [Symbol.asyncDispose]: () => new Promise((done) => socket.close(() => done())),
  }
}
