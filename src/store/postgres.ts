// The store on PostgreSQL. DATABASE_URL may contain a password, so no error contains it.
import { Socket } from 'node:net'
import { PostgresDialect, type Dialect } from 'kysely'
import type { Client } from 'pg'
import { AppError } from '../errors.ts'
import { storeFailure, type Place } from './postgres-failure.ts'
import { StoreServer, type ServerLog } from './postgres-server.ts'

/** The maximum number of connections of one process, apart from the connections for counters. */
const POOL_MAX = 10
const COUNTERS_MAX = 6
/** How long a call waits for a connection. */
const CONNECT_TIMEOUT_MS = 10_000
const INT8 = 20

export interface OpenedPostgres {
  readonly dialect: Dialect
  readonly server: StoreServer
  /** Commits of these connections do not wait for the disk, so counts may be lost if the server crashes. */
  readonly counters: StoreServer
  makeClient(): Client
}

/** Throws an Error with the reason if the server cannot be reached or rejects the login. */
export async function openPostgres(url: string, log?: ServerLog): Promise<OpenedPostgres> {
  const { default: pg } = await import('pg')
  const config = {
    connectionString: url,
    keepAlive: true,
    application_name: 'vitrine',
    // Read bigints as numbers: counts and sizes are far below 2^53, and `+` would join strings.
    types: { getTypeParser: typeParser },
  }
  function typeParser(oid: number, format?: 'text' | 'binary') {
    return oid === INT8 ? Number : pg.types.getTypeParser(oid, format)
  }
  await tryOnce(url)
  const server = new StoreServer({
    makePool: () => new pg.Pool({ ...config, max: POOL_MAX, connectionTimeoutMillis: CONNECT_TIMEOUT_MS }),
    makeClient: (more) => new pg.Client({ ...config, ...more }),
    log,
  })
  const counters = new StoreServer({
    makePool: () =>
      new pg.Pool({
        ...config,
        max: COUNTERS_MAX,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        onConnect: async (client) => void (await client.query('set synchronous_commit to off')),
      }),
    makeClient: (more) => new pg.Client({ ...config, ...more }),
  })
  return {
    server,
    counters,
    makeClient: () => new pg.Client({ ...config, application_name: 'vitrine listener' }),
    dialect: new PostgresDialect({
      pool: {
        options: server.options,
        connect: async () => {
          try {
            return await server.connect()
          } catch (error) {
            throw isContended(error) ? contended(error) : error
          }
        },
        end: () => server.end(),
      },
    }),
  }
}

/** Throws an Error that explains a wrong DATABASE_URL. */
async function tryOnce(url: string): Promise<void> {
  const { default: pg } = await import('pg')
  const socket = new Socket()
  try {
    const client = new pg.Client({
      connectionString: url,
      stream: () => socket,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    })
    client.on('error', () => undefined)
    await client.connect()
    await client.end()
  } catch (error) {
    // After a failed login, the library may leave the socket open until the server closes it a minute later.
    socket.destroy()
    throw (await postgresFailure(url, error)) ?? new Error(UNKNOWN_FAILURE, { cause: error })
  }
}

/**
 * True if other transactions or a lack of connections caused the error. pg-pool reports its timeout only by this
 * message.
 */
export function isContended(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error) return CONTENDED.has(String(error.code))
  return error.message === 'timeout exceeded when trying to connect'
}

const CONTENDED: ReadonlySet<string> = new Set(['40001', '40P01', '55P03', '53300'])
const RETRY_AFTER_SECONDS = 2

/** Nothing was stored, and a retry may succeed. */
export function contended(cause: unknown): AppError {
  return new AppError('OVERLOADED', 'Too many concurrent changes. Nothing was changed. Try again later.', {
    extra: { retryAfter: RETRY_AFTER_SECONDS },
    cause,
  })
}

const UNKNOWN_FAILURE =
  'DATABASE_URL: the database cannot be reached or rejects the login. Check each part of the URL. Percent-encode special characters in the password.'

export async function postgresFailure(url: string, error: unknown): Promise<Error | null> {
  const { default: pg } = await import('pg')
  const target = placeOf(url, (address) => new pg.Client(address))
  const why = target === null ? null : storeFailure(error, target)
  return why === null ? null : new Error(`DATABASE_URL: ${why}`, { cause: error })
}

/**
 * If the password is not percent-encoded, the library may read a part of it as the host, port or database. Then an @
 * follows the first /, ? or #, or `password=` comes before the first question mark.
 */
const CUT_PASSWORD = /^[^/]*\/\/[^/?#]*[/?#].*@|^[^?]*password=/i

/** Returns null if no part of the URL is safe to show, or if the library cannot parse the URL. */
function placeOf(url: string, client: (url: string) => Client): Place | null {
  if (CUT_PASSWORD.test(url)) return null
  try {
    const { host, port, user = '', database = '' } = client(url)
    return { host, port, user, database }
  } catch {
    return null
  }
}

/** A retry may succeed after a serialization failure or deadlock. After a duplicate key, it sees the existing row. */
export function attemptsFor(error: unknown): number {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === '40001' || code === '40P01') return 20
  return code === '23505' ? 3 : 1
}
