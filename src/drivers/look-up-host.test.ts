// Tests how host names of callers are resolved. The name servers are made by the tests: for example, one is silent, and
// one knows one name.
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { dial } from './allowed-addresses.ts'
import { lookUpForMember, lookUpForStranger } from './look-up-host.ts'

const LATE = { code: 'EAI_AGAIN' }
const HEADER_BYTES = 12

test('if the name server is silent, the look-up of a name ends with an error, and the system is never asked', async () => {
  await using server = await nameServer(() => null)
  await using machine = await machineOf(server)
  using calls = systemCalls()
  const names = Array.from({ length: 20 }, (_, n) => `h${n}.slow.test`)
  const reads = names.flatMap((name) => [lookUpForStranger(name, server.at), lookUpForMember(name, machine)])
  await Promise.all(reads.map((read) => assert.rejects(read, LATE)))
  assert.deepEqual(calls.counts(), { made: 0, most: 0 })
  assert.ok(server.asked().length >= reads.length)
})

test('if the name server has no address for a member’s name, the system is asked, for one name at a time', async () => {
  await using server = await nameServer((name) => (name === 'known.test' ? '192.0.2.7' : 'unknown'))
  await using machine = await machineOf(server)
  using calls = systemCalls()
  const found = [{ address: '192.0.2.7', family: 4 }]
  assert.deepEqual(await lookUpForStranger('known.test', server.at), found)
  assert.deepEqual(await lookUpForMember('known.test', machine), found)
  await assert.rejects(lookUpForStranger('localhost', server.at), { code: 'ENOTFOUND' })
  assert.deepEqual(calls.counts(), { made: 0, most: 0 })
  // The system needs no name server for this form of an address.
  const reads = await Promise.all(Array.from({ length: 20 }, () => lookUpForMember('127.1', machine)))
  for (const read of reads) assert.equal(read[0]?.address, '127.0.0.1')
  assert.deepEqual(calls.counts(), { made: 20, most: 1 })
})

test('if a member’s name is in /etc/hosts, its addresses come from there, even while the name server is silent', async () => {
  await using server = await nameServer(() => null)
  await using machine = await machineOf(server, {
    hosts: '# 192.0.2.1 db\n192.0.2.2\tother db.internal DB # main\n::2 db\r\nwrong db\n192.0.2.3 db2',
  })
  const found = [
    { address: '192.0.2.2', family: 4 },
    { address: '::2', family: 6 },
  ]
  assert.deepEqual(await lookUpForMember('db', machine), found)
  assert.deepEqual(await lookUpForMember('Db.', machine), found)
  assert.deepEqual(await lookUpForMember('db.internal', machine), found.slice(0, 1))
  assert.deepEqual(server.asked(), [])
})

const ORDERS: readonly [string, string, readonly string[]][] = [
  ['db', '', ['db']],
  ['db', 'search a.test b.test', ['db.a.test', 'db.b.test', 'db']],
  ['db.a', 'search a.test', ['db.a', 'db.a.a.test']],
  ['db.a', 'nameserver 192.0.2.1\nsearch x\nsearch a.test . ; b\noptions edns0 ndots:5', ['db.a.a.test', 'db.a']],
  ['db.', 'search a.test', ['db']],
  ['db', 'domain a.test', ['db.a.test', 'db']],
]
for (const [host, resolver, names] of ORDERS) {
  test(`the look-up of a member’s name ${host} uses the search domains of ${JSON.stringify(resolver)}`, async () => {
    await using server = await nameServer((name) => (name === names.at(-1) ? '192.0.2.7' : 'unknown'))
    await using machine = await machineOf(server, { resolver })
    assert.deepEqual(await lookUpForMember(host, machine), [{ address: '192.0.2.7', family: 4 }])
    assert.deepEqual([...new Set(server.asked())], names)
  })
}

test('dial() never asks the system for a name that a stranger chose, and asks for members’ names one at a time', async () => {
  using calls = systemCalls()
  const at = { host: 'localhost', port: 1 }
  for (const allowPrivateHosts of [false, true]) {
    const stranger = dial({ ...at, namedByStranger: true }, allowPrivateHosts, AbortSignal.timeout(60_000))
    await assert.rejects(stranger)
    assert.deepEqual(calls.counts(), { made: 0, most: 0 })
  }
  for (const allowPrivateHosts of [false, true]) {
    const dialed = Array.from({ length: 8 }, () => dial(at, allowPrivateHosts, AbortSignal.timeout(60_000)))
    await Promise.all(dialed.map((each) => assert.rejects(each)))
    assert.ok(calls.counts().most <= 1)
  }
})

/** Writes the files hosts and resolv.conf of a system whose name server is `server`. */
async function machineOf({ at }: { readonly at: readonly string[] }, { hosts = '', resolver = '' } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'vitrine-hosts-'))
  const machine = { servers: at, hosts: join(folder, 'hosts'), resolver: join(folder, 'resolv.conf') }
  await writeFile(machine.hosts, hosts)
  await writeFile(machine.resolver, resolver)
  return { ...machine, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

/** Counts the calls of getaddrinfo, and how many run at the same time. */
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

/** `answer` returns an IPv4 address, `unknown`, or null if the server stays silent. */
async function nameServer(
  answer: (name: string) => string | null,
): Promise<AsyncDisposable & { readonly at: readonly string[]; asked(): readonly string[] }> {
  const socket = createSocket('udp4')
  const asked: string[] = []
  socket.on('message', (query, { port, address }) => {
    const labels: string[] = []
    let end = HEADER_BYTES
    for (let length = query[end] ?? 0; length > 0; length = query[end] ?? 0) {
      labels.push(query.toString('latin1', end + 1, end + 1 + length))
      end += 1 + length
    }
    asked.push(labels.join('.'))
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
