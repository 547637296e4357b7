// Logs in: connects to an allowed address, and `pg` does TLS, SCRAM and the start-up. Then wire.ts takes over the
// socket. Each failure becomes one sentence, with the raw error as its cause.
import { connect as connectTls } from 'node:tls'
import type { Socket } from 'node:net'
import { once } from 'node:events'
import { Client, type ClientConfig } from 'pg'
import { AppError } from '../../../errors.ts'
import { dial, type Receive } from '../../allowed-addresses.ts'
import { loginFailure } from './login-failure.ts'
import { firstAnswer } from './recognize-server.ts'
import { shieldLogin } from './login-message-filter.ts'
import { question, SYNC } from './protocol-messages.ts'
import { Texts } from './result.ts'
import { readBack, readBackSql, Session, startUpOptions } from './session.ts'
import type { Target } from './settings.ts'
import { tlsOptions } from './tls-options.ts'
import { LostConnection, Wire } from './wire.ts'

const CONNECT_MS = 10_000
const CANCEL_MS = 5_000
const LOOK_MS = 10_000
const FLOOR = 140_000

/** A session, and functions that use other connections to the server. */
export interface Login {
  readonly session: Session
  /**
   * Sends a CancelRequest. Resolves when the server has closed its connection, on failure, or after 5 s. Never throws.
   */
  cancel(): Promise<void>
  /**
   * Returns whether the server still runs a statement of this session. Returns true behind a pooler, which hides the
   * process. Throws if the server does not answer.
   */
  isRunning(signal: AbortSignal): Promise<boolean>
}

/** Logs in. Throws AppError DATASOURCE_UNAVAILABLE, or the signal's reason on abort. */
export async function logIn(target: Target, allowPrivateHosts: boolean, signal: AbortSignal): Promise<Login> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)])
  try {
    return await attempt(target, startUpOptions(), allowPrivateHosts, deadline)
  } catch (error) {
    signal.throwIfAborted()
    if (!mayBeOptions(error)) throw loginFailure(error, target)
  }
  // A pooler may refuse start-up options, and a login trigger may fail with them (for example 25006). Without them,
  // each transaction sets all fixed settings.
  try {
    return await attempt(target, null, allowPrivateHosts, deadline)
  } catch (error) {
    signal.throwIfAborted()
    throw loginFailure(error, target)
  }
}

/**
 * Returns whether the start-up options may be the cause of the error. They are not if the error is about the login, the
 * database, or the resources or state of the server.
 */
function mayBeOptions(error: unknown): boolean {
  const code = sqlState(error)
  return code !== null && !/^(28|3D|53|57)/.test(code)
}

function sqlState(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error) || !('severity' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

async function attempt(
  target: Target,
  options: string | null,
  allowPrivateHosts: boolean,
  signal: AbortSignal,
): Promise<Login> {
  // Without TLS, wire.ts reads from one reused buffer. Before that, pg gets copies.
  const plain = target.sslMode === 'disable'
  const first = firstAnswer(plain)
  let receive: Receive = (bytes) => {
    first.hear(Buffer.from(bytes))
    socket.emit('data', Buffer.from(bytes))
  }
  const socket = await dial(target, allowPrivateHosts, signal, plain ? (bytes) => receive(bytes) : undefined)
  if (!plain) socket.once('data', (bytes: Buffer) => first.hear(bytes))
  const stop = (): void => void socket.destroy(signal.reason instanceof Error ? signal.reason : undefined)
  signal.addEventListener('abort', stop, { once: true })
  try {
    const client = new Client(clientConfig(target, options, socket))
    // After the login, wire.ts handles errors of the socket.
    client.on('error', () => undefined)
    if (target.channelBinding) requireChannelBinding(client, socket)
    // The filter starts with the encrypted stream, or, without TLS, at once.
    let unshield = (): Buffer => Buffer.alloc(0)
    client.connection.on('sslconnect', () => (unshield = shieldLogin(client.connection.stream)))
    const loggedIn = client.connect()
    if (plain) unshield = shieldLogin(socket)
    await loggedIn
    const stream = client.connection.stream
    const rest = unshield()
    if (stream.destroyed) throw new LostConnection('the connection was closed')
    const wire = new Wire(stream)
    if (plain) receive = (bytes) => wire.take(bytes)
    else stream.on('data', (bytes: Buffer) => wire.take(bytes))
    wire.take(rest)
    const session = await open(wire, options !== null, keyOf(client)?.processId ?? null)
    const key = keyOf(client)
    return {
      session,
      cancel: () => cancel(target, key, allowPrivateHosts),
      isRunning: async (during) =>
        key === null ||
        !session.server.isDirect ||
        (await isRunning(
          target,
          key.processId,
          allowPrivateHosts,
          AbortSignal.any([during, AbortSignal.timeout(LOOK_MS)]),
        )),
    }
  } catch (error) {
    socket.destroy()
    throw first.explain(signal.aborted ? signal.reason : error)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function open(wire: Wire, withOptions: boolean, processId: number | null): Promise<Session> {
  const texts = new Texts(65_536)
  const outcome = await wire.exchange(Buffer.concat([question(readBackSql()), SYNC]), 1, texts)
  const row = texts.answers[0]?.[0]
  if (outcome.error !== null) throw outcome.error
  const server = readBack(row ?? [], processId)
  if (!(server.version >= FLOOR)) {
    wire.close()
    throw new AppError('DATASOURCE_UNAVAILABLE', 'The server is older than PostgreSQL 14, the oldest version served.')
  }
  return new Session(wire, { ...server, pinsEach: server.pinsEach || !withOptions })
}

function clientConfig(target: Target, options: string | null, socket: Socket): ClientConfig {
  // The socket is already connected to an address that passed the address check.
  socket.connect = () => {
    queueMicrotask(() => socket.emit('connect'))
    return socket
  }
  return {
    host: target.host,
    port: target.port,
    user: target.username,
    database: target.database,
    // As a function, because pg replaces an empty string by the environment or ~/.pgpass.
    password: () => target.password ?? '',
    ssl: target.sslMode === 'disable' ? false : tlsOptions(target),
    sslnegotiation: 'postgres',
    application_name: 'vitrine',
    enableChannelBinding: target.channelBinding,
    stream: () => socket,
    ...(options === null ? {} : { options }),
  }
}

/** Accepts only SCRAM with channel binding to this TLS connection, like channel_binding=require of libpq. */
function requireChannelBinding(client: Client, socket: Socket): void {
  const refuse = (): void =>
    void socket.destroy(
      new AppError('DATASOURCE_UNAVAILABLE', 'The server does not offer channel binding, which the URI requires.'),
    )
  client.connection.on('authenticationCleartextPassword', refuse)
  client.connection.on('authenticationMD5Password', refuse)
  client.connection.on('authenticationOk', () => {
    if (!bound) refuse()
  })
  let bound = false
  client.connection.on('authenticationSASL', (message: { readonly mechanisms?: readonly string[] }) => {
    bound = message.mechanisms?.includes('SCRAM-SHA-256-PLUS') === true
    if (!bound) refuse()
  })
}

interface Key {
  readonly processId: number
  readonly secret: number
}

/** Returns the key for a CancelRequest, or null if there is none. pg stores it, but its types do not declare it. */
function keyOf(client: Client): Key | null {
  const processId: unknown = Reflect.get(client, 'processID')
  const secret: unknown = Reflect.get(client, 'secretKey')
  return typeof processId === 'number' && typeof secret === 'number' ? { processId, secret } : null
}

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

async function cancel(target: Target, key: Key | null, allowPrivateHosts: boolean): Promise<void> {
  if (key === null) return
  const request = Buffer.alloc(16)
  request.writeInt32BE(16, 0)
  request.writeInt32BE(80_877_102, 4)
  request.writeInt32BE(key.processId, 8)
  request.writeInt32BE(key.secret, 12)
  try {
    const signal = AbortSignal.timeout(CANCEL_MS)
    const socket = await dial(target, allowPrivateHosts, signal)
    signal.addEventListener('abort', () => socket.destroy(), { once: true })
    socket.on('error', () => undefined)
    const stream = target.sslMode === 'disable' ? socket : await encrypted(socket, target, signal)
    const closed = once(stream, 'close', { signal })
    stream.resume().end(request)
    await closed
  } catch {
    // The timeout of the statement still ends the query.
  }
}

/** Returns whether the process runs a statement. The process of another login hides that, and counts as idle. */
async function isRunning(
  target: Target,
  processId: number,
  allowPrivateHosts: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const { session } = await attempt(target, startUpOptions(), allowPrivateHosts, signal)
  const close = (): void => session.wire.close()
  signal.addEventListener('abort', close, { once: true })
  try {
    const texts = new Texts(65_536)
    const sql = `SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE pid = ${processId} AND state = 'active'`
    const { error } = await session.transaction(question(sql), { searchPath: [], timeoutMs: LOOK_MS }, texts)
    if (error !== null) throw error
    return texts.answers[0]?.[0]?.[0] !== '0'
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}

async function encrypted(socket: Socket, target: Target, signal: AbortSignal): Promise<Socket> {
  socket.write(SSL_REQUEST)
  const [answer]: unknown[] = await once(socket, 'data', { signal })
  if (!Buffer.isBuffer(answer) || answer.length !== 1 || answer[0] !== 0x53) throw new Error('no TLS')
  const stream = connectTls({ ...tlsOptions(target), socket })
  stream.on('error', () => socket.destroy())
  await once(stream, 'secureConnect', { signal })
  return stream
}
