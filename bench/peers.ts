// Starts the competing packages on npm: MCP Toolbox, DBHub and PostGraphile. Each runs in its own process on the
// database of world.ts. npm installs them without install scripts in a scratch folder, which is kept for the next run.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Asked } from './workloads.ts'
import { freePort, type Contender, type Database } from './world.ts'

const PACKAGES = ['@toolbox-sdk/server@1.12.0', '@bytebase/dbhub@1.4.0', 'postgraphile@5.1.5']
const FOLDER = join(tmpdir(), 'vitrine-bench-peers')

/** Returns the body of a request, or null if the contender cannot answer it. */
export interface Peer extends Contender {
  body(asked: Asked): object | null
  /** A request for a description of the tables. */
  readonly describe: { readonly url: string; readonly body: object }
}

/** Installs and starts all three. `stack` stops them. */
export async function startPeers(database: Database, stack: AsyncDisposableStack): Promise<Peer[]> {
  await mkdir(FOLDER, { recursive: true })
  const packages = join(FOLDER, 'package.json')
  await writeFile(packages, JSON.stringify({ name: 'peers', private: true }), { flag: 'wx' }).catch(() => undefined)
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--save-exact', ...PACKAGES]
  await promisify(execFile)('npm', install, { cwd: FOLDER, timeout: 600_000 })
  return [await toolbox(database, stack), await dbhub(database, stack), await postgraphile(database, stack)]
}

const inside = (path: string): string => join(FOLDER, 'node_modules', path)

/** MCP Toolbox has its own HTTP endpoint for tools, which is faster than its MCP endpoint. */
async function toolbox(
  { host, port, name, user, password, pid }: Database,
  stack: AsyncDisposableStack,
): Promise<Peer> {
  const source = {
    kind: 'source',
    name: 'bench',
    type: 'postgres',
    host,
    port: String(port),
    database: name,
    user,
    password,
  }
  const run = { kind: 'tool', name: 'run', type: 'postgres-execute-sql', source: 'bench', description: 'Runs SQL.' }
  const tables = {
    kind: 'tool',
    name: 'tables',
    type: 'postgres-list-tables',
    source: 'bench',
    description: 'Lists tables.',
  }
  const config = join(FOLDER, 'tools.yaml')
  // The configuration must be YAML, and JSON is valid YAML.
  await writeFile(config, [source, run, tables].map((each) => JSON.stringify(each)).join('\n---\n'))
  const command = inside(`@toolbox-sdk/server-${process.platform}-${process.arch}/bin/toolbox`)
  await chmod(command, 0o755)
  const own = String(await freePort())
  const flags = ['--enable-api', '--disable-reload', '--disable-version-check', '--log-level', 'ERROR']
  const at = `http://127.0.0.1:${own}/api/tool`
  const started = await start(command, ['--config', config, '--port', own, ...flags], `${at}/run`, stack)
  return {
    ...{ name: 'MCP Toolbox', url: `${at}/run/invoke`, headers: {}, pid: started, databasePid: pid },
    body: ({ sql }) => ({ sql }),
    describe: { url: `${at}/tables/invoke`, body: {} },
  }
}

async function dbhub(database: Database, stack: AsyncDisposableStack): Promise<Peer> {
  const own = String(await freePort())
  const dsn = `${database.url}?sslmode=disable`
  const flags = ['--transport', 'http', '--host', '127.0.0.1', '--port', own, '--dsn', dsn]
  const url = `http://127.0.0.1:${own}/mcp`
  const pid = await start(process.execPath, [inside('@bytebase/dbhub/dist/index.js'), ...flags], url, stack)
  const call = (name: string, args: object): object => {
    const params = { name, arguments: args }
    return { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
  }
  return {
    ...{
      name: 'DBHub',
      url,
      headers: { accept: 'application/json, text/event-stream' },
      pid,
      databasePid: database.pid,
    },
    body: ({ sql }) => call('execute_sql', { sql }),
    describe: { url, body: call('search_objects', { object_type: 'table', detail_level: 'full' }) },
  }
}

async function postgraphile(database: Database, stack: AsyncDisposableStack): Promise<Peer> {
  const own = await freePort()
  const service = `makePgService({ connectionString: ${JSON.stringify(database.url)}, poolConfig: { max: 16 } })`
  await writeFile(
    join(FOLDER, 'graphile.config.mjs'),
    `import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'
import { makePgService } from 'postgraphile/adaptors/pg'
export default {
  extends: [PostGraphileAmberPreset], pgServices: [${service}],
  grafserv: { host: '127.0.0.1', port: ${own}, watch: false, graphiql: false },
}`,
  )
  const cli = [inside('postgraphile/dist/cli-run.js'), '-C', 'graphile.config.mjs']
  const url = `http://127.0.0.1:${own}/graphql`
  const pid = await start(process.execPath, cli, url, stack)
  const cursor = await cursors(url)
  const variables = ({ variables, after }: NonNullable<Asked['graphql']>): object =>
    after === undefined ? variables : { ...variables, after: cursor(after) }
  return {
    ...{ name: 'PostGraphile', url, headers: {}, pid, databasePid: database.pid },
    body: ({ graphql }) => (graphql === undefined ? null : { query: graphql.query, variables: variables(graphql) }),
    describe: { url, body: { query: '{ __schema { types { name fields { name type { name ofType { name } } } } } }' } },
  }
}

/** Builds PostGraphile's cursor for the rows after an id, in the form of the first cursor. */
async function cursors(url: string): Promise<(id: number) => string> {
  const query = '{ allOrders(first: 1) { edges { cursor node { rowId } } } }'
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) })
  const { data } = (await answer.json()) as { data: { allOrders: { edges: [{ cursor: string }] } } }
  const form = Buffer.from(data.allOrders.edges[0].cursor, 'base64').toString()
  return (id) => Buffer.from(form.replace(/\d+(?=\D*$)/, String(id))).toString('base64')
}

/** Waits until the peer answers any request. */
async function start(
  command: string,
  args: readonly string[],
  url: string,
  stack: AsyncDisposableStack,
): Promise<number> {
  const env = { ...process.env, NODE_ENV: 'production', GRAPHILE_ENV: 'production', TZ: 'UTC' }
  const child = spawn(command, args, { cwd: FOLDER, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (part: Buffer) => (said = (said + part.toString()).slice(-2_000)))
  stack.defer(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  })
  for (let tries = 0; tries < 600; tries++) {
    const isUp = await fetch(url).then(
      (answer) => answer.arrayBuffer().then(() => true),
      () => false,
    )
    if (isUp) return child.pid ?? 0
    if (child.exitCode !== null) break
    await wait(100)
  }
  throw new Error(`${command} ${args[0]} does not answer: ${said}`)
}
