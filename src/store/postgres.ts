// The store over PostgreSQL, for several processes on one store: a pool of `pg`, loaded only where DATABASE_URL is
// set. Its address holds a password and is in no error of ours.
import { PostgresDialect, type Dialect } from 'kysely'

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
  return new PostgresDialect({ pool })
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
