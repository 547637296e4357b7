// npm exec -- node bench/long-work.ts: measures how much one large request delays others, for operations on 1,000
// tables of 20 columns and on a table of 1,600 columns. BENCH_ONLY, BENCH_ROUNDS and BENCH_BEFORE are as in
// long-values.ts.
import { setTimeout as wait } from 'node:timers/promises'
import { startPostgres } from '../test/support/postgres.ts'
import { openLoopBench } from './loop-bench.ts'
import { connectTo } from './world.ts'

const TABLES = 1_000
const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))
const columns = many(20, (k) => `column_${k}`)
const wide = many(1_600, (k) => `wide_column_${k}`)
const tables = many(TABLES, (k) => `table_${k}`)

await using stack = new AsyncDisposableStack()
const server = stack.use(await startPostgres({ settings: { max_locks_per_transaction: '4096' } }))
const sql = [
  ...tables.map((table) => `CREATE TABLE ${table} (${columns.map((c) => `${c} int`).join(', ')})`),
  `CREATE TABLE wide (${wide.map((c) => `${c} int`).join(', ')})`,
  `INSERT INTO wide (${wide.join(', ')}) SELECT ${wide.map(() => 'i').join(', ')} FROM generate_series(1, 1000) i`,
].join(';\n')
const database = await server.createDatabase('bench', sql)
const { base, bench } = await openLoopBench(stack)
const { host, port, superuser: username, password } = server
const spec = { type: 'POSTGRES', connectionMode: 'DIRECT', host, port, database, username, password }
const exposed = [...tables, 'wide'].map((table) => ({ schema: 'public', table, columns: null as string[] | null }))
const { at, key, token } = await connectTo(base, spec, exposed)
const team = at.replace(/\/datasources\/.*/, '')

async function send(
  method: string,
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Buffer> {
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const authorization = `Bearer ${url.endsWith('/mcp') ? key : token}`
  const accept = 'application/json, text/event-stream'
  const res = await fetch(new URL(url, base), {
    method,
    headers: { authorization, accept, 'accept-encoding': 'identity', ...json, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const bytes = Buffer.from(await res.arrayBuffer())
  if (!res.ok) throw new Error(`${method} ${url}: ${res.status} ${bytes.subarray(0, 300).toString()}`)
  return bytes
}

async function run(path: string, body: object = {}): Promise<void> {
  const { jobId } = JSON.parse(String(await send('POST', `${at}/${path}`, body)))
  for (;;) {
    const job = JSON.parse(String(await send('GET', `${at}/jobs/${jobId}`)))
    if (job.state === 'DONE') return
    if (job.state !== 'RUNNING') throw new Error(`${path}: ${JSON.stringify(job).slice(0, 300)}`)
    await wait(20)
  }
}

const measure = async (name: string, ...args: Parameters<typeof send>): Promise<void> =>
  bench(name, async () => void (await send(...args)))
const mcp = (name: string, args: object): Parameters<typeof send> => [
  'POST',
  '/mcp',
  { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
]
const [, , teamId = '', , datasourceId = ''] = new URL(at, base).pathname.split('/')

const listed = exposed.map((each) => ({ ...each, columns: each.table === 'wide' ? wide : columns }))
await measure('introspect', 'POST', `${at}/introspect`)
await measure('PUT exposure, all columns', 'PUT', `${at}/exposure`, { tables: exposed })
await measure('PUT exposure, columns listed', 'PUT', `${at}/exposure`, { tables: listed })
await measure('GET exposure', 'GET', `${at}/exposure`)
await measure('GET drift', 'GET', `${at}/drift`)
await measure('GET catalog', 'GET', `${at}/catalog`)
await measure('GET catalog, gzip', 'GET', `${at}/catalog`, undefined, { 'accept-encoding': 'gzip' })
let n = 0
await bench('PUT exposure, then GET schema', async () => {
  await send('PUT', `${at}/exposure`, { tables: n++ % 2 === 0 ? listed.slice(1) : listed })
  await send('GET', `${at}/schema`)
})
await measure('GET schema', 'GET', `${at}/schema`)
await measure('GET schema, br', 'GET', `${at}/schema`, undefined, { 'accept-encoding': 'br' })
await measure('GET agent-view', 'GET', `${at}/agent-view`)
await measure('describe_datasource', ...mcp('describe_datasource', { teamId, datasourceId }))
await measure(
  'describe_datasource, search',
  ...mcp('describe_datasource', { teamId, datasourceId, search: 'column_7' }),
)
await measure(
  'describe_datasource, wide',
  ...mcp('describe_datasource', { teamId, datasourceId, tables: ['public.wide'] }),
)
await measure('query of 1,600 columns', 'POST', `${at}/query`, { sql: 'SELECT * FROM wide' })
await measure('run_query of 1,600 columns', ...mcp('run_query', { teamId, datasourceId, sql: 'SELECT * FROM wide' }))
await measure('params of 900 kB', 'POST', `${at}/query`, {
  sql: 'SELECT 1 FROM wide WHERE $1::text = $2',
  params: ['x'.repeat(60_000), 'y'.repeat(2_000)],
})
await bench('profile', () => run('profile'))
await bench('generate', () => run('documentation/generate'))
await measure('GET documentation', 'GET', `${at}/documentation`)
await measure('accept', 'POST', `${at}/documentation/accept`, {
  tables: [...tables, 'wide'].map((table) => ({ schema: 'public', table })),
})
await measure('publish', 'POST', `${at}/documentation/publish`, {})
await measure('GET schema, after publication', 'GET', `${at}/schema`)
await measure('GET audit', 'GET', `${team}/audit?limit=200`)
await measure('audit, CSV', 'GET', `${team}/audit/export?format=csv`)
await measure('openapi', 'GET', '/openapi.json')
await measure('docs', 'GET', '/docs')
