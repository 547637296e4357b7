import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { test } from 'node:test'
import { addressKind, dial, type AddressKind } from './allowed-addresses.ts'

const KINDS: readonly (readonly [string, AddressKind])[] = [
  ['8.8.8.8', 'public'],
  ['172.15.255.255', 'public'],
  ['172.16.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['172.32.0.0', 'public'],
  ['10.0.0.1', 'private'],
  ['192.168.1.1', 'private'],
  ['127.0.0.1', 'private'],
  ['127.255.255.254', 'private'],
  ['0.0.0.0', 'private'],
  ['100.64.0.1', 'private'],
  ['100.127.255.255', 'private'],
  ['100.128.0.1', 'public'],
  ['169.254.1.1', 'private'],
  ['169.254.169.254', 'metadata'],
  ['169.254.170.2', 'metadata'],
  ['168.63.129.16', 'metadata'],
  ['100.100.100.200', 'metadata'],
  ['192.0.0.192', 'metadata'],
  ['169.254.42.42', 'metadata'],
  ['169.254.0.23', 'metadata'],
  ['198.19.0.1', 'private'],
  ['224.0.0.1', 'private'],
  ['255.255.255.255', 'private'],
  ['::', 'private'],
  ['::1', 'private'],
  ['0:0:0:0:0:0:0:1', 'private'],
  ['fe80::1', 'private'],
  ['fe80::1%eth0', 'private'],
  ['fec0::1', 'private'],
  ['fc00::1', 'private'],
  ['fd12:3456::1', 'private'],
  ['fd00:ec2::254', 'metadata'],
  ['FD00:0EC2:0:0:0:0:0:0254', 'metadata'],
  ['fd20:ce::254', 'metadata'],
  ['fd00:c1::a9fe:a9fe', 'metadata'],
  ['fe80::a9fe:a9fe%eth0', 'metadata'],
  ['ff02::1', 'private'],
  ['2001:db8::1', 'private'],
  ['2606:4700::1111', 'public'],
  ['::ffff:8.8.8.8', 'public'],
  ['::ffff:10.0.0.1', 'private'],
  ['::ffff:a9fe:a9fe', 'metadata'],
  ['::FFFF:169.254.169.254', 'metadata'],
  ['::127.0.0.1', 'private'],
  ['::169.254.169.254', 'metadata'],
  ['64:ff9b::a9fe:a9fe', 'metadata'],
  ['64:ff9b::10.0.0.1', 'private'],
  ['64:ff9b::8.8.8.8', 'public'],
  ['64:ff9b:1::a9fe:a9fe', 'metadata'],
  ['64:ff9b:1:a9fe:a9:fe00::', 'metadata'],
  ['64:ff9b:1:a9:fe:a9fe::', 'metadata'],
  ['64:ff9b:1:0:a9:fea9:fe00:0', 'metadata'],
  ['64:ff9b:1::8.8.8.8', 'private'],
  ['2002:a9fe:a9fe::1', 'metadata'],
  ['2002:0a00:0001::', 'private'],
  ['2001:0:1234::5601:5601', 'metadata'],
  ['not an address', 'private'],
]

for (const [address, kind] of KINDS) {
  test(`${address} is ${kind}`, () => assert.equal(addressKind(address), kind))
}

const ENCODED = ['127.1', '2130706433', '0x7f000001', '017700000001', 'localhost', '::ffff:127.0.0.1', '[::1]', '0']

for (const host of ENCODED) {
  test(`the host ${host}, which means this machine, is refused if private hosts are not allowed`, async () => {
    await using server = await listen()
    await assert.rejects(dial({ host, port: server.port }, false, AbortSignal.timeout(60_000)))
    assert.equal(server.seen(), 0)
  })
}

test('a metadata address is refused even if private hosts are allowed', async () => {
  for (const host of ['169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254', '0xa9fea9fe']) {
    await assert.rejects(dial({ host, port: 80 }, true, AbortSignal.timeout(60_000)), {
      code: 'DATASOURCE_UNAVAILABLE',
      message: /metadata/,
    })
  }
})

test('a private host can be connected to if the operator allows it', async () => {
  await using server = await listen()
  const socket = await dial({ host: 'localhost', port: server.port }, true, AbortSignal.timeout(60_000))
  assert.equal(socket.remotePort, server.port)
  socket.destroy()
})

test('if the signal has already aborted, dial() throws its reason', async () => {
  const stop = new AbortController()
  stop.abort(new Error('hung up'))
  await assert.rejects(dial({ host: '127.0.0.1', port: 1 }, true, stop.signal), /hung up/)
})

async function listen(): Promise<AsyncDisposable & { readonly port: number; seen(): number }> {
  let seen = 0
  const server = createServer((socket) => {
    seen++
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return {
    port: address.port,
    seen: () => seen,
    [Symbol.asyncDispose]: () => new Promise((done) => server.close(() => done())),
  }
}
