// Starts real PostgreSQL servers for the tests. A server ends with the caller's `await using` scope. Nothing is synced
// to disk. With TEST_POSTGRES_URL, tests without special options use that server, with their own databases.
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  access,
  chmod,
  chown,
  copyFile,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { packagedNative, platform, reachableBin, serverAccount, type Account } from '../../demo/account.ts'
import { initCluster, startCluster } from '../../demo/cluster.ts'
import { exists, makeOnce } from './cache-engine-parts.ts'
import { freePort } from './free-port.ts'
import { NoSuchEngine } from './no-such-engine.ts'

export type PostgresVersion = 14 | 15 | 16 | 17 | 18

export interface PostgresOptions {
  /**
   * The major version. 18 comes from the optional dependency of package.json, the others from test/engines/postgres. By
   * default, any version is used.
   */
  readonly version?: PostgresVersion
  /** Turns on TLS with these files (PEM). */
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly caFile?: string }
  /** Replaces the lines of pg_hba.conf. */
  readonly hba?: string
  readonly settings?: Readonly<Record<string, string>>
}

export interface TestPostgres extends AsyncDisposable {
  readonly host: string
  readonly port: number
  readonly superuser: string
  readonly password: string
  url(database: string, user?: string, password?: string): string
  /** Runs SQL as superuser. Returns the rows of the last statement. */
  query(database: string, sql: string): Promise<(string | null)[][]>
  /**
   * Creates a database that is empty, or a copy of `template`, which must have no connections meanwhile. Runs `sql` in
   * it. Returns its name, which is unique on a shared server.
   */
  createDatabase(name: string, sql?: string, template?: string): Promise<string>
  /** Ends the server as if its machine had failed. Not allowed for a server of TEST_POSTGRES_URL. */
  stop(): Promise<void>
  /** Starts a stopped server again, on the same port and data. */
  restart(): Promise<void>
  /** Stops every process of the server with SIGSTOP. Returns a function that continues the processes. Needs /proc. */
  freeze(): Promise<() => void>
}

/** Starts a server, which takes about 1.5 s. Throws NoSuchEngine if the server is not available. */
export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres> {
  const shared = process.env['TEST_POSTGRES_URL']
  const ours = options.version ?? options.tls ?? options.hba ?? options.settings
  if (shared !== undefined && shared !== '' && ours === undefined) return sharedServer(new URL(shared))

  const account = serverAccount()
  const bin = await binaries(options.version, account)
  const root = await mkdtemp(join(tmpdir(), 'vitrine-test-pg-'))
  await chmod(root, 0o711)
  const folder = join(root, 'data')
  try {
    const template = await clusterTemplate(bin, account)
    const password = await readFile(join(template, 'password'), 'utf8')
    await promisify(execFile)('cp', ['-a', join(template, 'data'), folder])
    const tls = options.tls === undefined ? {} : await tlsSettings(root, options.tls, account)
    if (options.hba !== undefined) await writeFile(join(folder, 'pg_hba.conf'), `${options.hba.trim()}\n`)
    const cluster = { settings: { ...forTests, ...tls, ...options.settings }, account }
    let server = await startCluster(bin, folder, { ...cluster, port: await freePort() })
    const { port } = server
    const control = {
      stop: () => server.stop('immediate'),
      restart: async () => {
        server = await startCluster(bin, folder, { ...cluster, port })
        if (server.port !== port) throw new Error(`port ${port} was taken by another process`)
      },
      freeze: () => freeze(folder),
    }
    return testServer({ host: '127.0.0.1', port, superuser: 'postgres', password }, control, async () => {
      await server.stop('immediate')
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    })
  } catch (error) {
    await rm(root, { recursive: true, force: true })
    throw error
  }
}

/**
 * Returns the folder of an empty cluster. Each server starts on a copy, because initdb takes ten times as long as the
 * copy.
 */
async function clusterTemplate(bin: string, account: Account | null): Promise<string> {
  const { mtimeMs } = await stat(join(bin, 'initdb'))
  const id = createHash('sha256')
    .update(`${bin} ${mtimeMs} ${account?.uid ?? process.getuid?.()}`)
    .digest('hex')
  const template = join(process.env['TEST_CACHE_DIR'] ?? tmpdir(), `vitrine-test-cluster-${id.slice(0, 16)}`)
  const exists = await access(join(template, 'password')).then(
    () => true,
    () => false,
  )
  if (exists) return template
  const making = await mkdtemp(`${template}-`)
  await chmod(making, 0o711)
  const password = randomBytes(12).toString('hex')
  await initCluster(bin, join(making, 'data'), { password, args: ['-N', '--locale=C.UTF-8'], account })
  await writeFile(join(making, 'password'), password, { mode: 0o600 })
  // If the rename fails, another process was faster, and its template is used.
  await rename(making, template).catch(() => rm(making, { recursive: true, force: true }))
  return template
}

const forTests = {
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  shared_buffers: '32MB',
  max_connections: '200',
  timezone: 'UTC',
  temp_file_limit: '4GB',
}

interface Address {
  readonly host: string
  readonly port: number
  readonly superuser: string
  readonly password: string
}

/**
 * Stops the postmaster and its child processes. The postmaster is stopped first, so that it starts no new child
 * process.
 */
async function freeze(folder: string): Promise<() => void> {
  const [line = ''] = (await readFile(join(folder, 'postmaster.pid'), 'utf8')).split('\n')
  const postmaster = Number(line)
  process.kill(postmaster, 'SIGSTOP')
  const pids = [postmaster]
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '')
    if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === postmaster) pids.push(Number(entry))
  }
  for (const pid of pids.slice(1)) process.kill(pid, 'SIGSTOP')
  return () => {
    for (const pid of pids) process.kill(pid, 'SIGCONT')
  }
}

type Control = Pick<TestPostgres, 'stop' | 'restart' | 'freeze'>

function testServer(at: Address, control: Control, dispose: () => Promise<void>): TestPostgres {
  const query = (database: string, sql: string): Promise<(string | null)[][]> => run(at, database, sql)
  return {
    ...at,
    url: (database, user = at.superuser, password = at.password) =>
      `postgres://${encodeURIComponent(user)}:${encodeURIComponent(password)}@${at.host}:${at.port}/${encodeURIComponent(database)}`,
    query,
    async createDatabase(name, sql, template) {
      const like = template === undefined ? '' : ` TEMPLATE ${identifier(template)}`
      await query('postgres', `CREATE DATABASE ${identifier(name)}${like}`)
      if (sql !== undefined) await query(name, sql)
      return name
    },
    ...control,
    [Symbol.asyncDispose]: dispose,
  }
}

/**
 * Uses the server of TEST_POSTGRES_URL. Other test files use it at the same time, so each database gets a unique name.
 * At the end, the databases that were created through this object are dropped, but not the roles.
 */
function sharedServer(url: URL): TestPostgres {
  const made: string[] = []
  const at = {
    host: url.hostname,
    port: Number(url.port === '' ? '5432' : url.port),
    superuser: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  }
  const notOurs = () => Promise.reject(new Error('a server of TEST_POSTGRES_URL is not ours to stop'))
  const server = testServer(at, { stop: notOurs, restart: notOurs, freeze: notOurs }, async () => {
    for (const name of made) await run(at, 'postgres', `DROP DATABASE IF EXISTS ${identifier(name)} WITH (FORCE)`)
  })
  return {
    ...server,
    createDatabase(name, sql, template) {
      const unique = `${name}_${randomBytes(6).toString('hex')}`
      made.push(unique)
      return server.createDatabase(unique, sql, template)
    },
  }
}

async function run(at: Address, database: string, sql: string): Promise<(string | null)[][]> {
  const client = new Client({
    host: at.host,
    port: at.port,
    user: at.superuser,
    password: at.password,
    database,
    ssl: false,
    types: { getTypeParser: () => (text: string) => text },
  })
  await client.connect()
  try {
    const answer: unknown = await client.query<(string | null)[]>({ text: sql, rowMode: 'array' })
    const last = (Array.isArray(answer) ? answer.at(-1) : answer) as { rows: (string | null)[][] } | undefined
    return last?.rows ?? []
  } finally {
    await client.end()
  }
}

function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

async function tlsSettings(
  root: string,
  tls: NonNullable<PostgresOptions['tls']>,
  account: Account | null,
): Promise<Record<string, string>> {
  const settings: Record<string, string> = { ssl: 'on' }
  const files = { ssl_cert_file: tls.certFile, ssl_key_file: tls.keyFile, ssl_ca_file: tls.caFile }
  for (const [name, from] of Object.entries(files)) {
    if (from === undefined) continue
    const to = join(root, `${name}.pem`)
    await copyFile(from, to)
    await chmod(to, 0o600)
    if (account !== null) await chown(to, account.uid, account.gid)
    settings[name] = to
  }
  return settings
}

async function binaries(version: PostgresVersion | undefined, account: Account | null): Promise<string> {
  if (version === undefined) {
    const installed = await installedBin()
    if (installed !== null) return installed
  }
  if (version === undefined || version === 18) return packagedBin('18', packagedNative(), account)
  return packagedBin(String(version), await onDemand(version), account)
}

/**
 * Returns the first folder of the PATH that contains initdb and postgres. If there is none, returns Debian's folder of
 * the newest version, or null.
 */
async function installedBin(): Promise<string | null> {
  const debian = '/usr/lib/postgresql'
  const versions = (await readdir(debian).catch(() => [])).sort((a, b) => Number(b) - Number(a))
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  for (const bin of [...path, ...versions.map((version) => join(debian, version, 'bin'))]) {
    const both = await Promise.all(['initdb', 'postgres'].map((name) => access(join(bin, name)).catch(() => 'missing')))
    if (!both.includes('missing')) return bin
  }
  return null
}

async function packagedBin(label: string, native: string | null, account: Account | null): Promise<string> {
  if (native === null) throw new NoSuchEngine(`PostgreSQL ${label} is not available on ${platform}.`)
  return reachableBin(native, account)
}

const engines = join(import.meta.dirname, '../engines/postgres')

/**
 * Returns the folder of a server of version 14 to 17, and installs it if necessary. Returns null if there is none for
 * this platform.
 */
async function onDemand(version: PostgresVersion): Promise<string | null> {
  if (platform !== 'linux-x64') return null
  const native = join(engines, 'node_modules', `pg${version}`, 'native')
  if (await exists(join(native, 'bin/postgres'))) return native
  await makeOnce(join(engines, '.engines'), 'npm', join(native, 'bin/postgres'), async () => {
    await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund'], { cwd: engines, timeout: 200_000 })
  })
  return (await exists(join(native, 'bin/postgres'))) ? native : null
}

/**
 * Opens a session with this login, and returns an Ask for introspection and for the connection test. As in the service,
 * each statement runs in a transaction whose search_path is only pg_catalog. `options` are as in libpq ('-c
 * name=value').
 */
export async function askAs(
  server: TestPostgres,
  database: string,
  user: string = server.superuser,
  password: string = server.password,
  options?: string,
): Promise<{ readonly ask: (sql: string) => Promise<(string | null)[][]> } & AsyncDisposable> {
  const client = new Client({
    connectionString: server.url(database, user, password),
    ...(options === undefined ? {} : { options }),
    types: { getTypeParser: () => (text: string) => text },
  })
  await client.connect()
  return {
    ask: async (sql) => {
      await client.query('BEGIN; SET LOCAL search_path = pg_catalog')
      try {
        return (await client.query<(string | null)[]>({ text: sql, rowMode: 'array' })).rows
      } finally {
        await client.query('COMMIT')
      }
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}
