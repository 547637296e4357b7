// Two services on one database with 200,000 orders: FLOOR(pg), and Vitrine's bundle, which `npm start` starts with
// VITRINE_DEMO=0.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { Client } from 'pg'
import { startPostgres, type TestPostgres } from '../test/support/postgres.ts'
import { parentOf } from './cpu-time.ts'

const ROOT = join(import.meta.dirname, '..')

const ORDERS = `
CREATE TABLE orders (
  id int PRIMARY KEY, customer_id bigint NOT NULL, total numeric(12,2) NOT NULL, note text NOT NULL,
  ordered_at timestamptz NOT NULL, paid bool NOT NULL, meta jsonb NOT NULL, ref uuid NOT NULL);
INSERT INTO orders SELECT i, (i * 7919::bigint) % 20000, round(((i * 31) % 99991) / 100.0, 2), 'note number ' || i || ' of many',
  timestamptz '2023-01-01 00:00+00' + i * interval '3 minutes', i % 3 = 0, jsonb_build_object('channel', i % 5, 'tags', jsonb_build_array('a', i % 7)),
  md5(i::text)::uuid FROM generate_series(1, 200000) i;
CREATE INDEX ON orders (note);
ANALYZE orders;`

/** One service under test: the URL for queries, and the process that answers them. */
export interface Contender {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly pid: number
  /** The process of the database server, whose CPU time load() also counts. */
  readonly databasePid?: number
}

/** The database, as peers connect to it. */
export interface Database {
  readonly host: string
  readonly port: number
  readonly name: string
  readonly user: string
  readonly password: string
  readonly url: string
  readonly tables: readonly string[]
  readonly pid: number
}

export interface World extends AsyncDisposable {
  readonly floor: Contender
  readonly vitrine: Contender
  /** The bundle of another checkout, or null if none was named. */
  readonly before: Contender | null
  readonly schemaUrl: string
  readonly readyMs: number
  readonly postgres: TestPostgres
  readonly database: Database
  /** Starts another Vitrine process on the same data, which has not answered a query yet. */
  fresh(): Promise<Contender>
}

export interface WorldOptions {
  /** By default, creates 200,000 orders. */
  readonly sql?: string
  readonly tables?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  /** Another checkout, whose bundle is compared. */
  readonly before?: string
}

export async function openWorld({
  sql = ORDERS,
  tables = ['orders'],
  settings,
  before,
}: WorldOptions = {}): Promise<World> {
  await using stack = new AsyncDisposableStack()
  const postgres = stack.use(await startPostgres(settings && { settings }))
  const name = await postgres.createDatabase('bench', sql)
  const { host, port, superuser: user, password } = postgres
  const database = {
    host,
    port,
    name,
    user,
    password,
    url: postgres.url(name),
    tables,
    pid: await serverOf(postgres.url(name)),
  }
  const floor = { ...(await startFloor('floor-postgres.ts', [database.url], stack)), databasePid: database.pid }
  const { contender, schemaUrl, readyMs } = await service(database, stack)
  const old = before === undefined ? null : await service(database, stack, before)
  const owned = stack.move()
  return {
    ...{ floor, vitrine: contender, schemaUrl, readyMs, postgres, database },
    before: old && { ...old.contender, name: 'before' },
    fresh: async () => (await service(database, owned)).contender,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function service(
  database: Database,
  stack: AsyncDisposableStack,
  folder?: string,
): Promise<{ contender: Contender; schemaUrl: string; readyMs: number }> {
  const { base, pid, readyMs } = await startVitrine(stack, undefined, folder)
  const { at, key } = await connect(base, database)
  const headers = { authorization: `Bearer ${key}` }
  const contender = { name: 'vitrine', url: `${at}/query`, headers, pid, databasePid: database.pid }
  return { contender, schemaUrl: `${at}/schema`, readyMs }
}

/** Returns the process id of the server, which is the parent of each session's process. */
export async function serverOf(url: string): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    return await parentOf(rows[0]?.pid ?? 0)
  } finally {
    await client.end()
  }
}

/** Starts the floor as another process. `script` is a file of this folder. */
export async function startFloor(
  script: string,
  args: readonly string[],
  stack: AsyncDisposableStack,
): Promise<Contender> {
  const floor = [join(ROOT, 'bench', script), ...args]
  const child = spawn(process.execPath, floor, { stdio: ['ignore', 'pipe', 'inherit'] })
  stack.defer(() => end(child))
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { name: 'floor', url: `http://127.0.0.1:${port}/`, headers: {}, pid: child.pid ?? 0 }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}

/**
 * Runs the bundle of this checkout or of `folder`, with a new data folder or `kept`. `more` are additional environment
 * variables.
 */
export async function startVitrine(
  stack: AsyncDisposableStack,
  kept?: string,
  folder = ROOT,
  more: Readonly<Record<string, string>> = {},
): Promise<{ base: string; pid: number; readyMs: number }> {
  const dataDir = kept ?? (await mkdtemp(join(tmpdir(), 'vitrine-bench-')))
  if (kept === undefined) stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const port = await freePort()
  const env = {
    ...process.env,
    PORT: String(port),
    HOST: '127.0.0.1',
    VITRINE_DATA_DIR: dataDir,
    VITRINE_DEMO: '0',
    ...more,
  }
  const started = performance.now()
  // In their own process group, npm, the shell and the service stop together.
  const child = spawn('npm', ['start', '--silent'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  })
  stack.defer(async () => {
    const gone = once(child, 'exit')
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
    await gone
  })
  const base = `http://127.0.0.1:${port}`
  for (;;) {
    const ready = await fetch(`${base}/health/ready`).then(
      (res) => res.ok,
      () => false,
    )
    if (ready) break
    if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}`)
    await wait(5)
  }
  return { base, pid: await listener(child.pid ?? 0), readyMs: performance.now() - started }
}

/** The listening process is the last descendant of npm. */
async function listener(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim()
  return children === '' ? pid : listener(Number(children.split(' ').at(-1)))
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return address !== null && typeof address !== 'string' ? address.port : 0
}

/** Signs up, connects the database, exposes everything and creates a key. */
export async function connect(base: string, database: Database): Promise<{ at: string; key: string }> {
  const { host, port, name, user, password, tables } = database
  const where = { connectionMode: 'DIRECT', host, port, database: name, username: user, password }
  const exposed = tables.map((table) => ({ schema: 'public', table, columns: null }))
  return connectTo(base, { type: 'POSTGRES', ...where }, exposed)
}

const PERSON = { email: 'bench@example.test', password: 'correct horse battery staple' }

/**
 * Returns an access token. With `name`, the token is for a new account, otherwise for the account that connectTo() has
 * created.
 */
export async function signIn(base: string, name?: string, email = PERSON.email): Promise<string> {
  const signed = await fetch(`${base}/auth/${name === undefined ? 'sign-in' : 'sign-up'}/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: base },
    body: JSON.stringify({ ...PERSON, email, name }),
  })
  const cookie = signed.headers
    .getSetCookie()
    .map((part) => part.split(';')[0])
    .join('; ')
  const { token } = (await (await fetch(`${base}/auth/token`, { headers: { cookie } })).json()) as { token: string }
  return token
}

/** Creates an account with a datasource of this spec, exposes `tables`, and creates a key. */
export async function connectTo(
  base: string,
  spec: object,
  tables: readonly object[],
): Promise<{ at: string; key: string; token: string }> {
  const token = await signIn(base, 'Bench')
  const api = async (method: string, path: string, body: unknown): Promise<Record<string, string>> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const res = await fetch(base + path, { method, headers, body: JSON.stringify(body) })
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`)
    return (await res.json()) as Record<string, string>
  }
  const team = await api('POST', '/teams', { name: 'Bench' })
  const settings = {
    queryBudget: { limit: 10_000_000, windowSeconds: 60 },
    rowCap: 50_000,
    maxResponseBytes: 64 * 1024 * 1024,
  }
  await api('PATCH', `/teams/${team['id']}`, { settings })
  const datasource = await api('POST', `/teams/${team['id']}/datasources`, {
    name: 'bench',
    sslMode: 'disable',
    config: {},
    accessMode: 'ROLE_BASED',
    minRole: 'MEMBER',
    ...spec,
  })
  const path = `/teams/${team['id']}/datasources/${datasource['id']}`
  await api('POST', `${path}/introspect`, {})
  await api('PUT', `${path}/exposure`, { tables })
  const { key } = await api('POST', '/users/me/keys', {
    name: 'bench',
    scopes: ['profile', 'data:schema', 'data:read'],
  })
  return { at: base + path, key: key ?? '', token }
}
