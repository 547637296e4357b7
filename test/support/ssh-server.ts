// A real SSH server in this process (the server of ssh2), for tunnels: `await using ssh = await startSsh()`. It has
// logins by password and by key.
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import ssh2, { type Connection } from 'ssh2'

export interface TestSsh extends AsyncDisposable {
  readonly port: number
  readonly fingerprint: string
  /** The host key as ssh-keyscan prints it, without the host. */
  readonly hostKeyLine: string
  readonly username: string
  readonly password: string
  readonly privateKey: string
  /** Another private key that may log in, with its passphrase. */
  readonly locked: { readonly sshPrivateKey: string; readonly sshPassphrase: string }
  readonly tries: readonly string[]
  /** The addresses to which clients requested connections while forwarding was on. */
  readonly forwarded: readonly string[]
  readonly open: number
  allowsForwarding: boolean
  /** Ends all connections, as after a restart of the server. */
  cut(): void
}

export async function startSsh(): Promise<TestSsh> {
  const host = ssh2.utils.generateKeyPairSync('ed25519')
  const user = ssh2.utils.generateKeyPairSync('ed25519')
  const passphrase = 'a passphrase'
  const locked = ssh2.utils.generateKeyPairSync('ed25519', { passphrase, cipher: 'aes256-ctr', rounds: 16 })
  const allowed = [user, locked].map((pair) => publicKeyOf(pair.public))
  const [username, password] = ['tunnel', 'ssh-pw-canary']
  const tries: string[] = []
  const forwarded: string[] = []
  const connections = new Set<Connection>()
  const sockets = new Set<Socket>()
  const server = new ssh2.Server({ hostKeys: [host.private] }, (connection) => {
    connections.add(connection)
    connection.on('error', () => undefined)
    connection.on('close', () => connections.delete(connection))
    connection.on('authentication', (context) => {
      tries.push(context.method)
      if (context.username !== username) return context.reject()
      if (context.method === 'password' && context.password === password) return context.accept()
      if (context.method !== 'publickey') return context.reject()
      const { data } = context.key
      const key = allowed.find((each) => each.getPublicSSH().equals(data))
      if (key === undefined) return context.reject()
      const { signature, blob, hashAlgo } = context
      if (signature === undefined || blob === undefined) return context.accept()
      if (key.verify(blob, signature, hashAlgo) === true) context.accept()
      else context.reject()
    })
    connection.on('tcpip', (accept, reject, { destIP, destPort }) => {
      if (!self.allowsForwarding) return reject()
      forwarded.push(`${destIP}:${destPort}`)
      const target = connect(destPort, destIP)
      sockets.add(target)
      target.on('close', () => sockets.delete(target))
      target.once('error', () => reject())
      target.once('connect', () => {
        const channel = accept()
        channel.on('error', () => undefined)
        target.on('error', () => channel.destroy())
        channel.on('close', () => target.destroy())
        target.on('close', () => channel.destroy())
        channel.pipe(target).pipe(channel)
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const self: TestSsh = {
    port: (server.address() as AddressInfo).port,
    fingerprint: fingerprintOf(publicKeyOf(host.public).getPublicSSH()),
    hostKeyLine: host.public,
    username,
    password,
    privateKey: user.private,
    locked: { sshPrivateKey: locked.private, sshPassphrase: passphrase },
    tries,
    forwarded,
    get open() {
      return connections.size
    },
    allowsForwarding: true,
    cut() {
      for (const connection of connections) connection.end()
      for (const socket of sockets) socket.destroy()
    },
    async [Symbol.asyncDispose]() {
      self.cut()
      server.close()
      await once(server, 'close')
    },
  }
  return self
}

function publicKeyOf(text: string) {
  const parsed = ssh2.utils.parseKey(text)
  if (parsed instanceof Error) throw parsed
  return parsed
}

function fingerprintOf(key: Buffer): string {
  return `SHA256:${hash('sha256', key, 'base64').replace(/=+$/, '')}`
}
