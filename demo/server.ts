// The demo's database: a PostgreSQL 18 from npm as a child process on loopback. It has the shop of seed.sql and a login
// that can read only the exposed columns. It starts after the service is ready, and stops with the service.
import { randomBytes } from 'node:crypto'
import { access, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { z } from 'zod'
import exposure from './exposure.json' with { type: 'json' }
import { grantColumns, limitTemporaryFiles } from '../src/drivers/postgres/catalog/least-privilege-login.ts'
import { packagedNative, reachableBin, serverAccount } from './account.ts'
import { initCluster, startCluster, type RunningCluster } from './cluster.ts'
import { fetchedNative } from './fetched-postgres.ts'

const DATABASE = 'shop'
const READER = 'vitrine_demo'
const MAJOR = '18'
// This path is valid from demo/ and from dist/, which contains the bundle.
const seedFile = new URL('../demo/seed.sql', import.meta.url)

/** The address of the demo's database, and its read-only login. Disposing it shuts the server down cleanly. */
export interface DemoServer extends AsyncDisposable {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly database: string
  readonly username: string
  readonly password: string
}

const stateShape = z.strictObject({ port: z.int(), password: z.string(), superuserPassword: z.string() })
type State = z.infer<typeof stateShape>

/**
 * Starts the demo's database from `<dataDir>/demo-postgres` and creates it on the first start (1 s). Later starts keep
 * the password, and the port if it is free. Throws an Error for the operator if the database cannot run. An abort
 * leaves nothing running.
 */
export async function startDemoServer(options: {
  readonly dataDir: string
  /** Called before PostgreSQL is downloaded. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}): Promise<DemoServer> {
  const { dataDir, signal } = options
  const account = serverAccount()
  const bin = await reachableBin(packagedNative() ?? (await fetchedNative(options)), account)
  const folder = join(dataDir, 'demo-postgres')
  const stateFile = join(dataDir, 'demo-postgres.json')
  const known = await readState(stateFile)
  const start = (port?: number): Promise<RunningCluster> =>
    startCluster(bin, folder, { settings, account, ...(port === undefined ? {} : { port }) }, signal)

  if (known !== null && (await isCluster(folder))) {
    await refuseOtherVersion(folder)
    const running = await start(known.port)
    if (running.port !== known.port) await writeState(stateFile, { ...known, port: running.port })
    return demoServer(running, known.password)
  }

  // Remove the folder. Without a state file, the folder is incomplete, or its passwords are lost.
  await rm(folder, { recursive: true, force: true })
  const made = {
    password: randomBytes(18).toString('base64url'),
    superuserPassword: randomBytes(18).toString('base64url'),
  }
  await initCluster(bin, folder, { password: made.superuserPassword, args: initArgs, account }, signal)
  const running = await start()
  try {
    await fill(running.port, made)
    signal.throwIfAborted()
    await writeState(stateFile, { ...made, port: running.port })
    return demoServer(running, made.password)
  } catch (error) {
    await running.stop('immediate')
    throw error
  }
}

// With these settings, the server is small and starts quickly, and writes survive a crash of the machine.
const settings = {
  max_connections: '40',
  shared_buffers: '16MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  jit: 'off',
  timezone: 'UTC',
}

// These options give the same collation and case rules on every machine, without the machine's locales. If the machine
// crashes within the first seconds, the demo may be lost; but waiting for the disk would delay every start by a second.
const initArgs = ['--no-sync', '--no-locale', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']

function demoServer(running: RunningCluster, password: string): DemoServer {
  return {
    host: '127.0.0.1',
    port: running.port,
    database: DATABASE,
    username: READER,
    password,
    [Symbol.asyncDispose]: () => running.stop(),
  }
}

/** Loads seed.sql into its own database, then creates the login and its grants. Each step is one transaction. */
async function fill(port: number, made: Omit<State, 'port'>): Promise<void> {
  const as = { host: '127.0.0.1', port, user: 'postgres', password: made.superuserPassword, ssl: false }
  await within({ ...as, database: 'postgres' }, (client) => client.query(`CREATE DATABASE ${DATABASE}`))
  const seed = await readFile(seedFile, 'utf8')
  await within({ ...as, database: DATABASE }, async (client) => {
    await client.query(seed)
    const found = await client.query<{ table: string; columns: string[] }>(columnsByTable)
    const grants = exposure.tables.map(({ schema, table, columns }) => {
      const all = found.rows.find((row) => row.table === table)?.columns ?? []
      return grantColumns({ schema, table, columns: columns ?? all }, READER)
    })
    // We generated the password: it contains only letters, digits, - and _.
    const role = `CREATE ROLE ${READER} LOGIN PASSWORD '${made.password}'; ALTER ROLE ${READER} SET default_transaction_read_only = on;`
    const closed = `REVOKE ALL ON DATABASE ${DATABASE} FROM PUBLIC; GRANT CONNECT ON DATABASE ${DATABASE} TO ${READER};`
    await client.query(
      [role, limitTemporaryFiles(READER), closed, `GRANT USAGE ON SCHEMA public TO ${READER};`, ...grants].join('\n'),
    )
  })
}

const columnsByTable = `
SELECT c.relname AS table, array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') GROUP BY c.relname`

async function within(
  config: {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly password: string
    readonly ssl: boolean
    readonly database: string
  },
  work: (client: Client) => Promise<unknown>,
): Promise<void> {
  const client = new Client(config)
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

function isCluster(folder: string): Promise<boolean> {
  return access(join(folder, 'PG_VERSION')).then(
    () => true,
    () => false,
  )
}

async function refuseOtherVersion(folder: string): Promise<void> {
  const version = (await readFile(join(folder, 'PG_VERSION'), 'utf8')).trim()
  if (version === MAJOR) return
  throw new Error(
    `The demo’s database was created by PostgreSQL ${version}: remove ${folder} to have it created again by ${MAJOR}.`,
  )
}

async function readState(file: string): Promise<State | null> {
  const text = await readFile(file, 'utf8').catch(() => null)
  if (text === null) return null
  try {
    return stateShape.parse(JSON.parse(text))
  } catch (cause) {
    throw new Error(`${file} is damaged: remove it to have the demo’s database created again.`, { cause })
  }
}

async function writeState(file: string, state: State): Promise<void> {
  const making = `${file}.new`
  await writeFile(making, `${JSON.stringify(state)}\n`, { mode: 0o600 })
  await rename(making, file)
}
