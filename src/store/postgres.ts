// The store over PostgreSQL, for several processes on one store: a pool of `pg`, loaded only where DATABASE_URL is
// set. Its address holds a password and is in no error of ours.
import { Socket } from 'node:net'
import { PostgresDialect, type Dialect } from 'kysely'
import type { Client } from 'pg'
import { AppError } from '../errors.ts'
import { storeFailure, type Place } from './postgres-failure.ts'

const POOL_MAX = 10
const CONNECT_TIMEOUT_MS = 10_000
const INT8 = 20

/** Throws an Error of one sentence where the server cannot be reached or refuses the login. */
export async function openPostgres(url: string): Promise<Dialect> {
  const { default: pg } = await import('pg')
  let first: Socket | undefined
  const pool = new pg.Pool({
    connectionString: url,
    stream: () => {
      const socket = new Socket()
      first ??= socket
      return socket
    },
    max: POOL_MAX,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'vitrine',
    // Counts and sizes are far below 2^53; as strings they would only add up wrongly.
    types: { getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) },
  })
  // An idle connection that the server ends must not end the process; the next query takes a new one.
  pool.on('error', () => undefined)
  try {
    const client = await pool.connect()
    client.release()
  } catch (error) {
    // The library may leave the socket of a failed login open until the server ends it, a minute later.
    first?.destroy()
    await pool.end()
    throw (await postgresFailure(url, error)) ?? new Error(UNKNOWN_FAILURE, { cause: error })
  }
  return new PostgresDialect({
    pool: {
      options: pool.options,
      connect: async () => {
        try {
          return await pool.connect()
        } catch (error) {
          throw isContended(error) ? contended(error) : error
        }
      },
      end: () => pool.end(),
    },
  })
}

/**
 * PostgreSQL gave the work up for others (serialization_failure, deadlock_detected, lock_not_available), has no
 * connection left (too_many_connections), or none of ours got free in time (pg-pool says that by its message alone).
 */
export function isContended(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error) return CONTENDED.has(String(error.code))
  return error.message === 'timeout exceeded when trying to connect'
}

const CONTENDED: ReadonlySet<string> = new Set(['40001', '40P01', '55P03', '53300'])
const RETRY_AFTER_SECONDS = 2

/** 503 with Retry-After: nothing was changed, and the next try may meet fewer others. */
export function contended(cause: unknown): AppError {
  return new AppError(
    'OVERLOADED',
    'Too many changes are under way at once. Nothing was changed. Try again in a moment.',
    {
      extra: { retryAfter: RETRY_AFTER_SECONDS },
      cause,
    },
  )
}

const UNKNOWN_FAILURE =
  'DATABASE_URL: the database cannot be reached, or refuses the login. Check each part of the address; percent-encode special characters in its password.'

/** What an error says of the server, as an Error of one sentence; null for another error. */
export async function postgresFailure(url: string, error: unknown): Promise<Error | null> {
  const { default: pg } = await import('pg')
  const place = placeOf(url, (address) => new pg.Client(address))
  const why = place === null ? null : storeFailure(error, place)
  return why === null ? null : new Error(`DATABASE_URL: ${why}`, { cause: error })
}

/**
 * A password stands where host, port or database do: one with a / or # in it was cut in two, so that an @ comes behind them;
 * or `password=` comes before the first question mark.
 */
const CUT_PASSWORD = /^[^/]*\/\/[^/?#]*[/?#].*@|^[^?]*password=/i

/** Null where nothing of the address may be shown, or the library cannot read it. */
function placeOf(url: string, client: (url: string) => Client): Place | null {
  if (CUT_PASSWORD.test(url)) return null
  try {
    const { host, port, user = '', database = '' } = client(url)
    return { host, port, user, database }
  } catch {
    return null
  }
}

/**
 * How often a transaction may be tried that ended so: often where PostgreSQL gave it up for others (serialization,
 * deadlock); a few times for a taken key, as the next try reads who has it; else once.
 */
export function triesWorth(error: unknown): number {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === '40001' || code === '40P01') return 20
  return code === '23505' ? 3 : 1
}
