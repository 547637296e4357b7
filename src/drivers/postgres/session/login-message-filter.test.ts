import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSecureContext, TLSSocket, type SecureContext } from 'node:tls'
import { AppError } from '../../../errors.ts'
import { logIn } from './connect.ts'
import { targetOf } from './settings.ts'

const ZERO = Buffer.alloc(4)
const message = (code: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5)
  head.write(code, 'latin1')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const LOGGED_IN = Buffer.concat([message('R', ZERO), message('K', Buffer.alloc(8)), message('Z', Buffer.from('I'))])

/** Returns messages that pg cannot read: each kind of message, too short or too long, during and after the login. */
function hostileAnswers(): Buffer[] {
  const kinds = [...'RSKZTDCENA123tnsGHWdcIVv'].flatMap((code) =>
    [0, 1, 3, 6].flatMap((length) => [0, 255].map((byte) => message(code, Buffer.alloc(length, byte)))),
  )
  const sasl = [5, 10, 11, 12].map((kind) => message('R', Buffer.from([0, 0, 0, kind, 120])))
  const lengths = [Buffer.from('R\xff\xff\xff\xff', 'latin1'), Buffer.from('R\0\0\0\0R\0\0\0\0', 'latin1')]
  const all = [...kinds, ...sasl, ...lengths]
  return [...all, ...all.map((answer) => Buffer.concat([LOGGED_IN, answer]))]
}

test('a login fails if the server sends bytes that belong to no login', async () => {
  await using server = await startHostile()
  for (const answer of hostileAnswers()) {
    server.send = (socket) => socket.end(answer)
    await assert.rejects(login(server.port, 'disable'), unavailable)
  }
})

test('a login over TLS fails if the server sends bytes that belong to no login', async () => {
  await using server = await startHostile(await selfSigned())
  for (const answer of [message('R', Buffer.alloc(0)), message('D', Buffer.alloc(1)), message('T', ZERO)]) {
    server.send = (socket) => socket.end(answer)
    await assert.rejects(login(server.port, 'require'), unavailable)
  }
})

test('a server that sends without end is disconnected at the size limit of a login', async () => {
  await using server = await startHostile()
  let taken = 0
  server.send = (socket) => {
    socket.write(Buffer.from([82, 127, 255, 255, 255]))
    const more = (): void => {
      while (!socket.destroyed && socket.write(Buffer.alloc(65_536)));
    }
    socket.on('drain', more).on('close', () => (taken = socket.bytesWritten))
    more()
  }
  await assert.rejects(login(server.port, 'disable'), unavailable)
  while (taken === 0) await new Promise(setImmediate)
  // The buffers of both sockets have bytes that nobody has read.
  assert.ok(taken < 64 << 20, `${taken} bytes`)
})

function login(port: number, sslMode: string): Promise<unknown> {
  const at = { host: '127.0.0.1', port, database: 'd', username: 'u' }
  const secrets = { password: 'p' }
  const target = targetOf({ connectionMode: 'DIRECT', ...at, sslMode, config: {}, secrets })
  return logIn(target, true, AbortSignal.timeout(60_000))
}

const unavailable = (error: unknown): boolean => error instanceof AppError && error.code === 'DATASOURCE_UNAVAILABLE'

interface Hostile extends AsyncDisposable {
  readonly port: number
  send: (socket: Socket) => void
}

/** Starts a server that sends `answer` after the start-up message. With a certificate, it accepts only TLS. */
async function startHostile(secureContext?: SecureContext): Promise<Hostile> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      if (secureContext === undefined) return hostile.send(socket)
      socket.write('S')
      const tls = new TLSSocket(socket, { isServer: true, secureContext })
      tls.on('error', () => undefined).once('data', () => hostile.send(tls))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const hostile: Hostile = {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    send: () => undefined,
    [Symbol.asyncDispose]: async () => void server.close(),
  }
  return hostile
}

async function selfSigned(): Promise<SecureContext> {
  const folder = await mkdtemp(join(tmpdir(), 'vitrine-hostile-'))
  try {
    const to = ['-keyout', join(folder, 'key'), '-out', join(folder, 'cert'), '-days', '2', '-subj', '/CN=hostile']
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    execFileSync('openssl', ['req', '-x509', ...ec, ...to], { stdio: 'ignore' })
    return createSecureContext({ key: await readFile(join(folder, 'key')), cert: await readFile(join(folder, 'cert')) })
  } finally {
    await rm(folder, { recursive: true })
  }
}
