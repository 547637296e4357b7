// The store over PostgreSQL, for several processes on one store: a pool of `pg`, loaded only where DATABASE_URL is
// set. Its address holds a password and is in no error of ours.
import { PostgresDialect, type Dialect } from 'kysely'
import { AppError } from '../errors.ts'

const POOL_MAX = 10
const CONNECT_TIMEOUT_MS = 10_000
const INT8 = 20

/** Throws an Error of one sentence where the server cannot be reached or refuses the login. */
export async function openPostgres(url: string): Promise<Dialect> {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({
    connectionString: url,
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
    await pool.end()
    throw new Error('The database of DATABASE_URL cannot be reached, or refuses the login.', { cause: error })
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

/**
 * How often a transaction may be tried that ended so: often where PostgreSQL gave it up for others (serialization,
 * deadlock); a few times for a taken key, as the next try reads who has it; else once.
 */
export function triesWorth(error: unknown): number {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === '40001' || code === '40P01') return 20
  return code === '23505' ? 3 : 1
}
