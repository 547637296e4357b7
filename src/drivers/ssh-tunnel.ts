// Opens SSH tunnels to databases. All connections to one database through one SSH login share a tunnel, which closes
// with the last of them. On this machine, the tunnel ends in a Unix socket in a folder that only this user can open.
// Every user of the machine could connect to a local port.
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import type { Client, ConnectConfig, ServerHostKeyAlgorithm } from 'ssh2'
import { AppError } from '../errors.ts'
import { addressKind, dial } from './allowed-addresses.ts'
import { NOBODY, type Connection, type ConnectOptions } from './driver.ts'
import { networkSentence } from './network-failure.ts'
import { decryptedKey, UNREADABLE_KEY } from './decrypt-ssh-key.ts'
import { fingerprintOf, type SshTarget } from './ssh-settings.ts'

export interface TunnelTarget {
  readonly host: string
  readonly port: number
}

/** A tunnel for one of its connections. Disposing it ends the tunnel only if no other connection uses it. */
interface Tunnel extends AsyncDisposable {
  /** The Unix socket that leads to the database. */
  readonly path: string
  readonly usable: boolean
  /** The error if the SSH server refused to connect to the database, otherwise null. */
  readonly refusal: AppError | null
}

export interface Tunnels extends AsyncDisposable {
  /** Throws AppError DATASOURCE_UNAVAILABLE or OVERLOADED, or the reason of the signal if it aborts. */
  take(ssh: SshTarget, target: TunnelTarget, options: ConnectOptions, signal: AbortSignal): Promise<Tunnel>
}

const OPEN_MS = 10_000
const KEEP_ALIVE_MS = 15_000
const KEEP_ALIVE_COUNT = 3
/**
 * How many sockets one tunnel may have open. A pool needs fewer, even if each connection opens a second socket to
 * cancel a query.
 */
const SOCKETS_MAX = 64

interface Shared {
  readonly opened: Promise<OpenTunnel>
  users: number
}

export function openTunnels(): Tunnels {
  const all = new Map<string, Shared>()
  const close = async (key: string, shared: Shared) => {
    if (all.get(key) === shared) all.delete(key)
    await shared.opened.then(
      (tunnel) => tunnel.close(),
      () => undefined,
    )
  }
  return {
    async take(ssh, target, options, signal) {
      signal.throwIfAborted()
      const key = keyOf(ssh, target)
      let shared = all.get(key)
      if (shared === undefined) {
        // Not the caller's signal: a caller who disconnects must not end a tunnel for which other callers wait.
        const opened = OpenTunnel.open(ssh, target, options, AbortSignal.timeout(OPEN_MS))
        all.set(key, (shared = { opened, users: 0 }))
        const made = shared
        const forget = () => {
          if (all.get(key) === made) all.delete(key)
        }
        opened.then((tunnel) => tunnel.onEnd(forget), forget)
      }
      const used = shared
      used.users++
      const leave = async () => {
        used.users--
        if (used.users === 0) await close(key, used)
      }
      try {
        return useOf(await unlessAborted(used.opened, signal), leave)
      } catch (error) {
        await leave()
        throw error
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...all].map(([key, shared]) => close(key, shared)))
    },
  }
}

function useOf(tunnel: OpenTunnel, leave: () => Promise<void>): Tunnel {
  let isLeft = false
  return {
    path: tunnel.path,
    get usable() {
      return !tunnel.isEnded
    },
    get refusal() {
      return tunnel.refusal
    },
    async [Symbol.asyncDispose]() {
      if (isLeft) return
      isLeft = true
      await leave()
    },
  }
}

/** The key is a hash of all settings, so it shows no secret. */
function keyOf(ssh: SshTarget, { host, port }: TunnelTarget): string {
  return createHash('sha256')
    .update(JSON.stringify([ssh, host, port]))
    .digest('base64')
}

class OpenTunnel {
  readonly path: string
  isEnded = false
  refusal: AppError | null = null
  readonly #client: Client
  readonly #server: Server
  readonly #folder: string
  readonly #sockets = new Set<Socket>()
  readonly #listeners = new Set<() => void>()

  private constructor(client: Client, server: Server, folder: string, target: TunnelTarget) {
    this.#client = client
    this.#server = server
    this.#folder = folder
    this.path = join(folder, 'db.sock')
    server.on('connection', (socket) => this.#forward(socket, target))
    client.on('error', () => undefined)
    client.once('close', () => void this.close())
  }

  static async open(
    ssh: SshTarget,
    target: TunnelTarget,
    options: ConnectOptions,
    signal: AbortSignal,
  ): Promise<OpenTunnel> {
    if (addressKind(target.host) === 'metadata') {
      throw unavailable('The host is an address of a cloud’s metadata service; Vitrine never connects to it.')
    }
    const client = await logIn(ssh, options, signal)
    const folder = await mkdtemp(join(tmpdir(), 'vitrine-ssh-'))
    const server = createServer({ pauseOnConnect: true })
    server.maxConnections = SOCKETS_MAX
    const tunnel = new OpenTunnel(client, server, folder, target)
    try {
      server.listen(tunnel.path)
      await once(server, 'listening', { signal })
      return tunnel
    } catch (error) {
      await tunnel.close()
      throw error
    }
  }

  /** If the tunnel has already ended, calls the listener at once. */
  onEnd(listener: () => void): void {
    if (this.isEnded) listener()
    else this.#listeners.add(listener)
  }

  async close(): Promise<void> {
    if (this.isEnded) return
    this.isEnded = true
    for (const listener of this.#listeners) listener()
    for (const socket of this.#sockets) socket.destroy()
    this.#client.end()
    this.#server.close()
    await rm(this.#folder, { recursive: true, force: true })
  }

  #forward(socket: Socket, { host, port }: TunnelTarget): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => undefined)
    if (this.isEnded) return void socket.destroy()
    this.#client.forwardOut('127.0.0.1', 0, host, port, (error, channel) => {
      if (error !== undefined) {
        this.refusal = unavailable(
          'The SSH server refuses to connect to the database: nothing listens there, or its settings do not allow forwarding.',
          error,
        )
        return void socket.destroy()
      }
      this.refusal = null
      pipeline(socket, channel, () => channel.destroy())
      pipeline(channel, socket, () => socket.destroy())
    })
  }
}

/** Logs in. Compares the host key before it sends any secret. Throws AppError DATASOURCE_UNAVAILABLE or OVERLOADED. */
async function logIn(ssh: SshTarget, options: ConnectOptions, signal: AbortSignal): Promise<Client> {
  const privateKey = await privateKeyOf(ssh, options, signal)
  const socket = await dialSsh(ssh, options.allowPrivateHosts, signal)
  // Most services have no tunnel, so the library is loaded for the first one.
  const { default: ssh2 } = await import('ssh2')
  const client = new ssh2.Client()
  let seen: string | null = null
  const isPinned = (key: Buffer): boolean => {
    seen = fingerprintOf(key)
    return seen === ssh.hostKey
  }
  const ready = Promise.withResolvers<void>()
  client.on('error', (error) => ready.reject(error))
  client.once('ready', () => ready.resolve())
  client.once('close', () => ready.reject(new Error('the connection was closed')))
  const stop = (): void => ready.reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    client.connect(connectConfig(ssh, socket, privateKey, isPinned))
    await ready.promise
    return client
  } catch (error) {
    client.destroy()
    socket.destroy()
    throw unavailable(sentenceOf(error, ssh, seen), error)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function dialSsh(ssh: SshTarget, allowPrivateHosts: boolean, signal: AbortSignal): Promise<Socket> {
  try {
    return await dial(ssh, allowPrivateHosts, signal)
  } catch (error) {
    if (error instanceof AppError) throw unavailable(`The SSH server: ${error.message}`)
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    throw unavailable(
      `The SSH server cannot be reached. ${networkSentence(code) ?? 'It did not answer in time.'}`,
      error,
    )
  }
}

function connectConfig(
  ssh: SshTarget,
  sock: Socket,
  privateKey: string | null,
  isPinned: (key: Buffer) => boolean,
): ConnectConfig {
  const { username, hostKeyType, secrets } = ssh
  return {
    sock,
    username,
    hostVerifier: isPinned,
    ...(privateKey === null ? {} : { privateKey }),
    ...(secrets.password === null ? {} : { password: secrets.password }),
    // A server may have keys of several types. If a whole key was given, ask for the key of its type.
    ...(hostKeyType === null ? {} : { algorithms: { serverHostKey: algorithmsOf(hostKeyType) } }),
    readyTimeout: OPEN_MS,
    keepaliveInterval: KEEP_ALIVE_MS,
    keepaliveCountMax: KEEP_ALIVE_COUNT,
    tryKeyboard: false,
  }
}

function algorithmsOf(type: string): ServerHostKeyAlgorithm[] {
  switch (type) {
    case 'ssh-rsa':
      return ['rsa-sha2-512', 'rsa-sha2-256']
    case 'ecdsa-sha2-nistp256':
    case 'ecdsa-sha2-nistp384':
    case 'ecdsa-sha2-nistp521':
      return [type]
    default:
      return ['ssh-ed25519']
  }
}

function sentenceOf(error: unknown, ssh: SshTarget, seen: string | null): string {
  if (seen !== null && seen !== ssh.hostKey) {
    return `The SSH server presents the host key ${seen}, but ${ssh.hostKey} is pinned. Nothing was sent to it.`
  }
  if (!(error instanceof Error)) return 'The SSH server did not answer.'
  const level = 'level' in error ? error.level : ''
  if (level === 'client-authentication') return 'The SSH server refuses the user name, the key or the password.'
  if (level === 'client-timeout' || error.name === 'TimeoutError') return 'The SSH server did not answer in time.'
  if (/privateKey|private key|passphrase/i.test(error.message)) return UNREADABLE_KEY
  if (/no matching/i.test(error.message)) {
    return 'The SSH server and this service share no algorithm, or the server has no host key of the pinned type.'
  }
  return 'The SSH server closed the connection, or is not an SSH server.'
}

async function privateKeyOf(
  { secrets: { privateKey, passphrase } }: SshTarget,
  { owner = NOBODY }: ConnectOptions,
  signal: AbortSignal,
): Promise<string | null> {
  if (privateKey === null || passphrase === null) return privateKey
  const key = await decryptedKey({ privateKey, passphrase }, owner, signal)
  if (key === null) throw unavailable(UNREADABLE_KEY)
  return key
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = (): void => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  work.catch(() => undefined)
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('DATASOURCE_UNAVAILABLE', message, { cause })
}

/**
 * Connects through a tunnel if there is an SSH server. The tunnel stays open as long as the connection. `connect` gets
 * the path of the tunnel's socket, or null without a tunnel.
 */
export async function throughTunnel(
  tunnels: Tunnels,
  { ssh, ...target }: TunnelTarget & { readonly ssh: SshTarget | null },
  options: ConnectOptions,
  signal: AbortSignal,
  connect: (path: string | null) => Promise<Connection>,
): Promise<Connection> {
  if (ssh === null) return await connect(null)
  const tunnel = await tunnels.take(ssh, target, options, signal)
  try {
    return new TunnelledConnection(await connect(tunnel.path), tunnel)
  } catch (error) {
    const { refusal } = tunnel
    await tunnel[Symbol.asyncDispose]()
    signal.throwIfAborted()
    throw refusal ?? error
  }
}

class TunnelledConnection implements Connection {
  readonly #inner: Connection
  readonly #tunnel: Tunnel

  constructor(inner: Connection, tunnel: Tunnel) {
    this.#inner = inner
    this.#tunnel = tunnel
  }

  get usable(): boolean {
    return this.#tunnel.usable && this.#inner.usable
  }

  test: Connection['test'] = (...args) => this.#inner.test(...args)
  introspect: Connection['introspect'] = (...args) => this.#inner.introspect(...args)
  profile: Connection['profile'] = (...args) => this.#inner.profile(...args)
  estimate: Connection['estimate'] = (...args) => this.#inner.estimate(...args)
  run: Connection['run'] = (...args) => this.#inner.run(...args)
  ended: Connection['ended'] = (signal) => this.#inner.ended(signal)

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#inner[Symbol.asyncDispose]()
    } finally {
      await this.#tunnel[Symbol.asyncDispose]()
    }
  }
}
