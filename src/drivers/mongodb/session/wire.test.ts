import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { FRAME, LostConnection, Wire } from './wire.ts'

interface Pair extends AsyncDisposable {
  readonly wire: Wire
  readonly own: Socket
  readonly far: Socket
}

async function pair(): Promise<Pair> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const own = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1')
  const [far] = (await once(server, 'connection')) as [Socket]
  own.on('error', () => undefined)
  far.on('error', () => undefined)
  const ended = async (): Promise<void> => {
    own.destroy()
    far.destroy()
    server.close()
  }
  return { wire: new Wire(own), own, far, [Symbol.asyncDispose]: ended }
}

const EMPTY = Buffer.from([5, 0, 0, 0, 0])
const command = (): Buffer => Buffer.concat([Buffer.alloc(FRAME), EMPTY])

function answer(to: number, body: Buffer, { opCode = 2013, flags = 0, kind = 0 } = {}): Buffer {
  const head = Buffer.alloc(FRAME)
  head.writeInt32LE(FRAME + body.length, 0)
  head.writeInt32LE(77, 4)
  head.writeInt32LE(to, 8)
  head.writeInt32LE(opCode, 12)
  head.writeInt32LE(flags, 16)
  head[20] = kind
  return Buffer.concat([head, body])
}

const body = (size: number): Buffer => {
  const bytes = Buffer.alloc(size, 7)
  bytes.writeInt32LE(size, 0)
  return bytes
}

test('an answer of MongoDB does not depend on the chunks in which it arrives, and commands can follow each other', async () => {
  await using at = await pair()
  at.far.setNoDelay(true)
  for (const [n, cuts] of [[], [1], [2, 3], [4], [5], [FRAME - 1], [FRAME + 4], [3, 4, 1_000]].entries()) {
    const asked = at.wire.exchange(command())
    const [sent] = (await once(at.far, 'data')) as [Buffer]
    assert.deepEqual([sent.readInt32LE(0), sent.readInt32LE(4), sent.readInt32LE(12)], [26, n + 1, 2013])
    const bytes = answer(n + 1, body(3_000))
    for (const [place, cut] of [...cuts, bytes.length].entries()) {
      const before = at.own.bytesRead
      at.far.write(bytes.subarray(cuts[place - 1] ?? 0, cut))
      // Send the next part only after the client has read this part.
      while (at.own.bytesRead === before) await once(at.own, 'data')
    }
    assert.deepEqual(await asked, body(3_000))
  }
  assert.ok(at.wire.usable)
})

test('any data other than one plain answer to the command closes the connection', async () => {
  const short = body(8)
  short.writeInt32LE(9, 0)
  for (const wrong of [
    answer(2, EMPTY),
    answer(1, EMPTY, { opCode: 2012 }),
    answer(1, EMPTY, { opCode: 1 }),
    answer(1, EMPTY, { flags: 1 }),
    answer(1, EMPTY, { flags: 2 }),
    answer(1, EMPTY, { kind: 1 }),
    answer(1, short),
    answer(1, Buffer.alloc(0)),
    Buffer.concat([answer(1, EMPTY), answer(1, EMPTY)]),
    Buffer.from([20, 0, 0, 0]),
    Buffer.from([0xff, 0xff, 0xff, 0x7f]),
    Buffer.from([0, 0, 0, 0x80]),
  ]) {
    await using at = await pair()
    const asked = at.wire.exchange(command())
    await once(at.far, 'data')
    at.far.write(wrong)
    await assert.rejects(asked, LostConnection, wrong.toString('hex'))
    assert.equal(at.wire.usable, false)
    if (!at.own.closed) await once(at.own, 'close')
  }
})

test('bytes without a command, and a closed socket, make the connection unusable', async () => {
  await using early = await pair()
  early.far.write(answer(0, EMPTY))
  await once(early.own, 'close')
  assert.equal(early.wire.usable, false)
  await assert.rejects(early.wire.exchange(command()), LostConnection)

  await using at = await pair()
  const asked = at.wire.exchange(command())
  await once(at.far, 'data')
  at.far.destroy()
  await assert.rejects(asked, LostConnection)
})

test('an abandoned exchange ends with its reason, and leaves the socket open', async () => {
  await using at = await pair()
  const asked = at.wire.exchange(command())
  await once(at.far, 'data')
  at.wire.abandon(new RangeError('enough'))
  await assert.rejects(asked, RangeError)
  assert.deepEqual([at.wire.usable, at.own.destroyed], [false, false])
  // A late answer is ignored.
  at.far.write(answer(1, EMPTY))
  await once(at.own, 'data')
  assert.equal(at.own.destroyed, false)
  assert.equal(at.wire.release(), false)
})

test('only one exchange is allowed at a time, and after release() other readers get the bytes of the socket', async () => {
  await using at = await pair()
  const first = at.wire.exchange(command())
  await assert.rejects(at.wire.exchange(command()), LostConnection)
  await once(at.far, 'data')
  at.far.write(answer(1, EMPTY))
  assert.deepEqual(await first, EMPTY)
  assert.equal(at.wire.release(), true)
  at.far.write('x')
  const [bytes] = (await once(at.own, 'data')) as [Buffer]
  assert.equal(String(bytes), 'x')
  await assert.rejects(at.wire.exchange(command()), LostConnection)
})
