// Logs in. Each connection has its own client. Without an SSH tunnel, every socket connects only to an address that was
// checked, also for the members of a replica set. No error text contains a secret.
import { isIP } from 'node:net'
import type * as mongodb from 'mongodb'
import type { MongoClient, MongoClientOptions, ServerHeartbeatSucceededEvent, TopologyDescription } from 'mongodb'
import { AppError } from '../../../errors.ts'
import { checkedLookup, refusal } from '../../allowed-addresses.ts'
import type { SslMode } from '../../connection-fields.ts'
import { loginFailure } from './login-failure.ts'
import type { Target } from './settings.ts'
import { identityBehind, tlsOptions } from './tls-options.ts'

const CONNECT_MS = 10_000
/** Shorter than CONNECT_MS, because the library's own error is more specific than our timeout. */
const SELECTION_MS = 5_000
const OLDEST_SERVER = [5, 0] as const

export interface Login {
  readonly library: typeof mongodb
  readonly client: MongoClient
  /** The client would create a new database object for each call. */
  readonly db: mongodb.Db
  readonly database: string
  /** For example [6, 0, 5]. */
  readonly serverVersion: readonly [number, number, number]
  readonly versionText: string
  readonly sslMode: SslMode
  readonly isLocal: boolean
  /** True if the client addresses one server directly, and not its replica set. */
  readonly isDirect: boolean
  /** True if killSessions can end the operations of this login. */
  readonly hasSessions: boolean
}

/**
 * With a tunnel to the only host, `path` is its Unix socket. Throws AppError DATASOURCE_UNAVAILABLE. On abort, throws
 * the signal's reason.
 */
export async function logIn(
  target: Target,
  allowPrivateHosts: boolean,
  signal: AbortSignal,
  path: string | null = null,
): Promise<Login> {
  signal.throwIfAborted()
  for (const { host } of path === null ? target.hosts : []) {
    const sentence = isIP(host) === 0 ? null : refusal(host, allowPrivateHosts)
    if (sentence !== null) throw new AppError('DATASOURCE_UNAVAILABLE', sentence)
  }
  // Loading the library takes 30 MB, so it is loaded for the first connection.
  const library = await import('mongodb')
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)])
  let client: MongoClient | undefined
  const refused: string[] = []
  try {
    client = new library.MongoClient(uriOf(target, path), optionsOf(target, allowPrivateHosts, path))
    client.on('serverHeartbeatSucceeded', (event) => refused.push(...keepJudgedMembers(event, allowPrivateHosts)))
    await unless(deadline, nobodyAnswers(client), connected(client))
    const db = client.db(target.database)
    return { library, client, db, ...(await unless(deadline, null, facts(db, target))) }
  } catch (error) {
    void client?.close(true).catch(() => undefined)
    signal.throwIfAborted()
    const [sentence] = refused
    if (sentence !== undefined && !(error instanceof AppError)) {
      throw new AppError('DATASOURCE_UNAVAILABLE', `A member of the replica set: ${sentence}`, { cause: error })
    }
    throw loginFailure(error, target)
  }
}

async function connected(client: MongoClient): Promise<void> {
  await client.connect()
}

async function facts(db: mongodb.Db, target: Target): Promise<Omit<Login, 'client' | 'db' | 'library'>> {
  const info = await db.command({ buildInfo: 1 })
  const hello = await db.command({ hello: 1 })
  const parts: unknown = info['versionArray']
  const [major = 0, minor = 0, patch = 0] = Array.isArray(parts) ? parts.map(Number) : []
  if (major < OLDEST_SERVER[0]) {
    throw new AppError('DATASOURCE_UNAVAILABLE', 'The server is older than MongoDB 5.0, the oldest version served.')
  }
  return {
    database: target.database,
    serverVersion: [major, minor, patch],
    versionText: String(info['version']),
    sslMode: target.sslMode,
    isDirect: target.direct,
    hasSessions: typeof hello['logicalSessionTimeoutMinutes'] === 'number',
    isLocal: target.hosts.every(({ host }) => /^(127\.|::1$|localhost$)/.test(host)),
  }
}

/**
 * Returns a connection string with only the hosts, or the socket of the tunnel. For SRV, it also has the name of the
 * database. All other settings are passed as options, so the library never parses the caller's text as a URI.
 */
function uriOf(target: Target, path: string | null): string {
  if (path !== null) return `mongodb://${encodeURIComponent(path)}/`
  const [first] = target.hosts
  if (target.srv) return `mongodb+srv://${first?.host ?? ''}/${encodeURIComponent(target.database)}`
  const hosts = target.hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port ?? 27_017}`)
  return `mongodb://${hosts.join(',')}/`
}

function optionsOf(target: Target, allowPrivateHosts: boolean, path: string | null): MongoClientOptions {
  return {
    appName: 'vitrine',
    // One connection runs the query, the other connection cancels it.
    maxPoolSize: 2,
    serverMonitoringMode: 'poll',
    serverSelectionTimeoutMS: SELECTION_MS,
    connectTimeoutMS: SELECTION_MS,
    waitQueueTimeoutMS: SELECTION_MS,
    retryWrites: false,
    readPreference: target.readPreference,
    lookup: checkedLookup(allowPrivateHosts),
    ...(target.direct ? { directConnection: true } : {}),
    ...(target.replicaSet === null ? {} : { replicaSet: target.replicaSet }),
    ...(target.srvServiceName === null ? {} : { srvServiceName: target.srvServiceName }),
    ...(target.srvMaxHosts === 0 ? {} : { srvMaxHosts: target.srvMaxHosts }),
    ...credentials(target),
    ...tlsOptions(target),
    ...(path === null ? {} : identityBehind(target)),
  }
}

function credentials(target: Target): MongoClientOptions {
  const { mechanism, username, password, authSource } = target
  if (mechanism === null) return {}
  if (mechanism === 'X509') return { authMechanism: 'MONGODB-X509', authSource: '$external' }
  return {
    auth: { username: username ?? '', password: password ?? '' },
    ...(mechanism === 'SCRAM' ? {} : { authMechanism: mechanism }),
    ...(authSource === null ? {} : { authSource }),
  }
}

/**
 * A server's answer lists the members of its replica set. Removes invalid names and refused addresses from the answer
 * before the library reads it. The library would not look up IP addresses, and it would open a name that ends in .sock
 * as a local socket. Returns a sentence for each refused address.
 */
function keepJudgedMembers(event: ServerHeartbeatSucceededEvent, allowPrivateHosts: boolean): string[] {
  const refused: string[] = []
  const isJudged = (member: unknown): boolean => {
    const match = typeof member === 'string' ? /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9_.-]+)):\d+$/.exec(member) : null
    const host = match?.[1] ?? match?.[2]
    if (host === undefined) return false
    const sentence = isIP(host) === 0 ? null : refusal(host, allowPrivateHosts)
    if (sentence !== null) refused.push(sentence)
    return sentence === null
  }
  for (const list of ['hosts', 'passives', 'arbiters']) {
    const members: unknown = event.reply[list]
    if (Array.isArray(members)) event.reply[list] = members.filter(isJudged)
  }
  return refused
}

/** Rejects as soon as all known servers have failed. The library would retry until its timeout. */
function nobodyAnswers(client: MongoClient): Promise<never> {
  return new Promise((_, reject) => {
    client.on('topologyDescriptionChanged', ({ newDescription }: { newDescription: TopologyDescription }) => {
      const servers = [...newDescription.servers.values()]
      const errors = servers.flatMap(({ error }) => (error === null ? [] : [error]))
      if (errors.length === servers.length && errors[0] !== undefined) reject(errors[0])
    })
  })
}

/**
 * Returns the result of `work`. If the signal aborts, or if `failed` rejects first, throws this reason and does not
 * wait for `work`.
 */
async function unless<T>(signal: AbortSignal, failed: Promise<never> | null, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  work.catch(() => undefined)
  promise.catch(() => undefined)
  failed?.catch(() => undefined)
  try {
    signal.throwIfAborted()
    return await Promise.race(failed === null ? [work, promise] : [work, promise, failed])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
