// A pooler in front of a PostgreSQL server. Clients cannot detect it: it passes on start-up options, and each
// transaction of a client may run in another session of the server. The server must trust its clients.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface TransactionPooler extends AsyncDisposable {
  readonly port: number
  /** Runs the next transactions in this session of the server. A new session gets the options of the next client. */
  use(session: number): void
}

interface Upstream {
  readonly socket: Socket
  /** What the server sent at login. Clients that connect later get it too. */
  greeting: Buffer
  client: Socket | null
}

const READY = 0x5a
const IDLE = 0x49

/**
 * With `poolsStatements`, the pooler ends a client whose transaction stays open, like PgBouncer with
 * pool_mode=statement. With `namesItself`, clients get a process id of the pooler instead of the server's, as with real
 * poolers.
 */
export async function startTransactionPooler(
  to: number,
  {
    namesItself = false,
    poolsStatements = false,
  }: { readonly namesItself?: boolean; readonly poolsStatements?: boolean } = {},
): Promise<TransactionPooler> {
  const sessions = new Map<number, Promise<Upstream>>()
  const clients = new Set<Socket>()
  let chosen = 0
  const pooler = createServer((client) => {
    clients.add(client)
    client.on('error', () => undefined)
    client.once('data', (start) => {
      const of = (session: number): Promise<Upstream> => {
        const known = sessions.get(session) ?? open(to, start, poolsStatements)
        sessions.set(session, known)
        return known
      }
      client.on('data', (bytes) => {
        // A Terminate message (0x58) ends the client's connection, but not the server's session.
        if (bytes[0] === 0x58) return void client.end()
        void of(chosen).then((upstream) => {
          upstream.client = client
          upstream.socket.write(bytes)
        })
      })
      void of(chosen).then(({ greeting }) => client.write(namesItself ? renamed(greeting) : greeting))
    })
  })
  pooler.listen(0, '127.0.0.1')
  await once(pooler, 'listening')
  const address = pooler.address()
  if (address === null || typeof address !== 'object') throw new Error('the pooler has no port')
  return {
    port: address.port,
    use: (session) => {
      chosen = session
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.destroy()
      for (const session of sessions.values()) (await session).socket.destroy()
      pooler.close()
    },
  }
}

const FIELDS = 'SFATAL\0C08P01\0Mtransaction blocks not allowed in statement pooling mode\0\0'
const REFUSED = Buffer.concat([Buffer.from([0x45, 0, 0, 0, FIELDS.length + 4]), Buffer.from(FIELDS)])

const KEY_DATA = 0x4b

/** Replaces the process id in BackendKeyData. */
function renamed(greeting: Buffer): Buffer {
  const copy = Buffer.from(greeting)
  for (let at = 0; at < copy.length; at += 1 + copy.readUInt32BE(at + 1)) {
    if (copy[at] === KEY_DATA) copy.writeUInt32BE(1, at + 5)
  }
  return copy
}

/** Opens a session and logs in. The current client gets the server’s messages. */
function open(to: number, start: Buffer, poolsStatements: boolean): Promise<Upstream> {
  const socket = connect(to, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(start)
  const upstream: Upstream = { socket, greeting: Buffer.alloc(0), client: null }
  let rest = Buffer.alloc(0)
  return new Promise((resolve) => {
    socket.on('data', (bytes) => {
      const isOpen = bytes.at(-6) === READY && bytes.at(-1) !== IDLE
      if (upstream.client !== null && isOpen && poolsStatements) return void upstream.client.end(REFUSED)
      if (upstream.client !== null) return void upstream.client.write(bytes)
      rest = Buffer.concat([rest, bytes])
      const isReady = rest.at(-6) === READY && rest.at(-1) === IDLE
      if (!isReady) return
      upstream.greeting = rest
      resolve(upstream)
    })
  })
}
