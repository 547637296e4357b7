// Starts real MongoDB servers. A server ends with the caller's `await using` scope. If TEST_MONGODB_URL is set, tests
// without special options use that server, with their own databases.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { MongoClient, type Document, type MongoClientOptions } from 'mongodb'
import { freePort } from './free-port.ts'
import { mongodBinary, newestCommand } from './mongodb-binaries.ts'

export interface MongodOptions {
  /** Requires logins. The administrator is `root`. */
  readonly auth?: boolean
  /** Requires TLS with these files in PEM. Client certificates are accepted but not required. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly caFile: string }
  /** The number of members of the replica set `rs`. */
  readonly members?: number
  readonly args?: readonly string[]
}

export interface TestMongo extends AsyncDisposable {
  readonly host: string
  readonly port: number
  readonly ports: readonly number[]
  readonly password: string
  /** A client of the administrator, which returns documents as they are stored. */
  readonly client: MongoClient
  /** For example [6, 0, 5]. */
  readonly version: readonly number[]
  /**
   * Returns a name for a database. On a shared server, the name is unique, and the database is dropped at the end of
   * the scope.
   */
  database(name: string): string
  createUser(database: string, user: string, password: string, roles: readonly (string | Document)[]): Promise<void>
  /**
   * Returns the number of operations in the databases, without this request, replication and idle connections. With
   * `appName`, only the operations of this application.
   */
  working(appName?: string): Promise<number>
  /** Ends a member as if its machine had failed. */
  kill(port: number): Promise<void>
}

const HOST = '127.0.0.1'

/** Takes 0.5 to 1 s. Throws NoSuchEngine if there is no mongod. */
export async function startMongod(options: MongodOptions = {}): Promise<TestMongo> {
  const shared = process.env['TEST_MONGODB_URL']
  if (shared !== undefined && shared !== '' && Object.keys(options).length === 0) return sharedServer(shared)
  const binary = await mongodBinary()
  await using stack = new AsyncDisposableStack()
  const root = await mkdtemp(join(tmpdir(), 'vitrine-test-mongod-'))
  stack.defer(() => rm(root, { recursive: true, force: true, maxRetries: 5 }))
  const args = await argumentsOf(root, options)
  const members = Array.from({ length: options.members ?? 1 }, (_, n) => startMember(binary, root, n, args))
  const servers = new Map<number, Server>()
  for (const server of await Promise.all(members)) {
    stack.use(server)
    servers.set(server.port, server)
  }
  const ports = [...servers.keys()]
  const password = randomBytes(12).toString('hex')
  const client = stack.use(closing(await administrator(ports, password, options)))
  const resources = stack.move()
  return {
    ...(await testMongo(client.it, ports, password)),
    kill: async (port) => servers.get(port)?.[Symbol.asyncDispose](),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

/**
 * Starts the newest engine, which has no logins, no TLS and no sessions. Throws NoSuchEngine if it is not available.
 */
export async function startNewest(): Promise<TestMongo> {
  const [command = '', ...args] = await newestCommand()
  await using stack = new AsyncDisposableStack()
  const root = await mkdtemp(join(tmpdir(), 'vitrine-test-mongo-'))
  stack.defer(() => rm(root, { recursive: true, force: true, maxRetries: 5 }))
  const port = await freePort()
  const child = spawn(command, [...args, root, String(port)], { stdio: ['pipe', 'pipe', 'ignore'] })
  stack.defer(() => ended(child))
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(() => Promise.reject(new Error('it ended'))),
  ])
  const client = stack.use(closing(await new MongoClient(uriOf([port]), CLIENT).connect()))
  const resources = stack.move()
  return {
    ...(await testMongo(client.it, [port], '')),
    kill: () => ended(child),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

const CLIENT: MongoClientOptions = { serverSelectionTimeoutMS: 60_000, directConnection: true }

function uriOf(ports: readonly number[]): string {
  return `mongodb://${ports.map((port) => `${HOST}:${port}`).join(',')}/`
}

function closing(it: MongoClient): { readonly it: MongoClient } & AsyncDisposable {
  return { it, [Symbol.asyncDispose]: () => it.close(true) }
}

async function testMongo(
  client: MongoClient,
  ports: readonly number[],
  password: string,
): Promise<Omit<TestMongo, 'kill' | keyof AsyncDisposable>> {
  const { versionArray } = (await client.db('admin').command({ buildInfo: 1 })) as unknown as { versionArray: number[] }
  return {
    host: HOST,
    port: ports[0] ?? 0,
    ports,
    password,
    client,
    version: versionArray.slice(0, 3),
    database: (name) => name,
    createUser: async (database, user, pwd, roles) => {
      await client.db(database).command({ createUser: user, pwd, roles })
    },
    working: (appName) => working(client, appName),
  }
}

async function working(client: MongoClient, appName: string | undefined): Promise<number> {
  const here = { active: true, op: { $in: ['command', 'getmore', 'query'] }, ns: { $not: /^(admin|local|config)\./ } }
  const match = { ...here, ...(appName === undefined ? {} : { appName }) }
  const pipeline = [{ $currentOp: { allUsers: true } }, { $match: match }]
  return (await client.db('admin').aggregate(pipeline).toArray()).length
}

/** Uses the server of TEST_MONGODB_URL. Other tests use it at the same time, so the names of databases are unique. */
async function sharedServer(url: string): Promise<TestMongo> {
  const client = await new MongoClient(url, { serverSelectionTimeoutMS: 60_000 }).connect()
  const [first = ''] = client.options.hosts.map((each) => each.toString())
  const at = new URL(`mongodb://${first}`)
  const suffix = randomBytes(4).toString('hex')
  const made = new Set<string>()
  return {
    ...(await testMongo(client, [Number(at.port)], client.options.credentials?.password ?? '')),
    host: at.hostname,
    database: (name) => {
      made.add(`${name}_${suffix}`)
      return `${name}_${suffix}`
    },
    kill: () => Promise.reject(new Error('a server of TEST_MONGODB_URL is not ours to kill')),
    [Symbol.asyncDispose]: async () => {
      for (const name of made) await client.db(name).dropDatabase()
      await client.close(true)
    },
  }
}

async function argumentsOf(root: string, options: MongodOptions): Promise<string[]> {
  const quick = ['--bind_ip', HOST, '--nounixsocket', '--setParameter', 'diagnosticDataCollectionEnabled=false']
  const args = [...quick, '--wiredTigerCacheSizeGB', '0.25', ...(options.args ?? [])]
  if (options.auth === true) args.push('--auth')
  if (options.members !== undefined) {
    args.push('--replSet', 'rs', '--oplogSize', '50')
    const keyFile = join(root, 'key')
    await writeFile(keyFile, randomBytes(60).toString('base64'))
    await chmod(keyFile, 0o600)
    if (options.auth === true) args.push('--keyFile', keyFile)
  }
  if (options.tls !== undefined) {
    const { certFile, keyFile, caFile } = options.tls
    const both = join(root, 'server.pem')
    await writeFile(both, (await readFile(certFile, 'utf8')) + (await readFile(keyFile, 'utf8')), { mode: 0o600 })
    const files = ['--tlsCertificateKeyFile', both, '--tlsCAFile', caFile]
    args.push('--tlsMode', 'requireTLS', ...files, '--tlsAllowConnectionsWithoutCertificates')
  }
  return args
}

interface Server extends AsyncDisposable {
  readonly port: number
}

// This shell starts the server and waits for it. It kills the server when our end of its standard input closes. The
// kernel closes that end even after kill -9.
const KEEPER = `exec 9<&0
"$@" 9<&- </dev/null >/dev/null 2>&1 & server=$!
{ read -r how <&9; kill -KILL $server; } 2>/dev/null & watch=$!
wait $server
kill $watch 2>/dev/null
exit 0`

/** Writes the server's log to a file, because a full pipe would block the server. */
async function startMember(binary: string, root: string, n: number, args: readonly string[]): Promise<Server> {
  const folder = join(root, `member-${n}`)
  await mkdir(folder)
  const log = join(root, `log-${n}`)
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    const own = ['--dbpath', folder, '--port', String(port), '--logpath', log]
    const child = spawn('/bin/sh', ['-c', KEEPER, 'sh', binary, ...own, ...args], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    child.stdin?.on('error', () => undefined)
    if (await answers(port, child)) return { port, [Symbol.asyncDispose]: () => ended(child) }
    if (attempt === 5)
      throw new Error(`mongod did not start: ${(await readFile(log, 'utf8').catch(() => '')).slice(-2000)}`)
  }
}

/** Returns false if the server has ended. */
async function answers(port: number, child: ChildProcess): Promise<boolean> {
  while (child.exitCode === null) {
    const socket = connect({ host: HOST, port })
    try {
      await once(socket, 'connect')
      return true
    } catch {
      await wait(20)
    } finally {
      socket.destroy()
    }
  }
  return false
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.stdin?.end()
  await exit
}

/**
 * Creates the replica set. The localhost exception lets it create the administrator. Returns a client that is logged
 * in.
 */
async function administrator(ports: readonly number[], password: string, options: MongodOptions): Promise<MongoClient> {
  const tls: MongoClientOptions = options.tls === undefined ? {} : { tls: true, tlsInsecure: true }
  const first = await new MongoClient(uriOf(ports.slice(0, 1)), { ...CLIENT, ...tls }).connect()
  try {
    if (options.members !== undefined) await initiate(first, ports)
    if (options.auth !== true) return await reconnect(ports, tls, options)
    await first.db('admin').command({ createUser: 'root', pwd: password, roles: ['root'] })
    return await reconnect(ports, { ...tls, auth: { username: 'root', password } }, options)
  } finally {
    await first.close(true)
  }
}

async function reconnect(
  ports: readonly number[],
  more: MongoClientOptions,
  options: MongodOptions,
): Promise<MongoClient> {
  const set: MongoClientOptions = options.members === undefined ? {} : { directConnection: false, replicaSet: 'rs' }
  return await new MongoClient(uriOf(ports), { ...CLIENT, ...more, ...set }).connect()
}

async function initiate(client: MongoClient, ports: readonly number[]): Promise<void> {
  const members = ports.map((port, n) => ({ _id: n, host: `${HOST}:${port}`, priority: n === 0 ? 2 : 1 }))
  // A busy machine may delay heartbeats by seconds. The long timeout prevents an election for this reason.
  const settings = { electionTimeoutMillis: 8_000, heartbeatIntervalMillis: 200 }
  await client.db('admin').command({ replSetInitiate: { _id: 'rs', members, settings } })
  while (!(await client.db('admin').command({ hello: 1 }))['isWritablePrimary']) await wait(20)
}
