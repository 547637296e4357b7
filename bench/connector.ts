// Measures the agent connector on the demo shop: how many tokens each tool has, how much time the connector adds to
// REST, how much memory the SDK takes, and how many turns a scripted agent needs. `npm run bench` runs this bench last,
// except with --peers or --growth. BENCH_ONLY=connector runs it alone.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { TOOLS } from '../src/connector/tool-definitions.ts'
import { median } from './load.ts'

/** Few rounds, because the budget of the demo's team is 300 queries a minute. */
const ROUNDS = 60
const META = 'io.modelcontextprotocol/'

interface Demo extends AsyncDisposable {
  readonly url: string
  readonly key: string
  readonly pid: number
}

/**
 * The name of the task, a wrong query that an agent might write after a quick look at the description, and the right
 * query.
 */
const TASKS: readonly (readonly [string, string, string])[] = [
  ['right the first time', 'SELECT count(*) FROM orders', 'SELECT count(*) FROM orders'],
  ['a near column', 'SELECT count(ship_at) FROM orders', 'SELECT count(shipped_at) FROM orders'],
  ['a near table', 'SELECT count(*) FROM order_item', 'SELECT count(*) FROM order_items'],
  [
    'two near names',
    "SELECT count(*) FROM order WHERE state = 'paid'",
    "SELECT count(*) FROM orders WHERE status = 'paid'",
  ],
  [
    'a hidden column besides',
    'SELECT city, email FROM customers WHERE id = 1',
    'SELECT city FROM customers WHERE id = 1',
  ],
  ['a lock', 'SELECT stock FROM products WHERE id = 1 FOR UPDATE', 'SELECT stock FROM products WHERE id = 1'],
  [
    'two mistakes',
    "SELECT sum(amout) FROM payment WHERE methd = 'card'",
    "SELECT sum(amount) FROM payments WHERE method = 'card'",
  ],
]

export async function benchConnector(): Promise<void> {
  for (const { name, description, inputSchema, ...rest } of TOOLS) {
    const model = encode(JSON.stringify({ name, description, inputSchema })).length
    const wire = encode(JSON.stringify({ name, description, inputSchema, ...rest })).length
    console.log(`tool ${name}: ${model} tokens to the model, ${wire} on the wire`)
  }
  console.log(`all tools: ${encode(JSON.stringify(TOOLS)).length} tokens on the wire (goal <= 2500)`)
  await using demo = await startDemo()
  const before = await residentMb(demo.pid)
  const { datasources } = await tool(demo, 'list_datasources', {})
  const at = { teamId: datasources[0].teamId, datasourceId: datasources[0].id }
  await times(demo, at)
  const between = await residentMb(demo.pid)
  await post(demo, 'tools/list', {})
  const after = await residentMb(demo.pid)
  console.log(
    `resident ${before.toFixed(0)} MB after the start, ${between.toFixed(0)} MB after ${4 * ROUNDS} queries, ${after.toFixed(0)} MB with the SDK loaded (goal: adds <= 14)`,
  )
  for (const [name, first, right] of TASKS) {
    const turns = await turnsTo(demo, at, first, right)
    console.log(`agent, ${name}: ${turns === null ? 'no answer' : `${turns} turns`} after the description`)
  }
  const { schema } = await tool(demo, 'describe_datasource', at)
  console.log(`description of the demo shop: ${encode(schema).length} tokens`)
}

/** One client sends each query to REST and to run_query in turns. */
async function times(demo: Demo, at: { teamId: string; datasourceId: string }): Promise<void> {
  const path = `${demo.url}/teams/${at.teamId}/datasources/${at.datasourceId}/query`
  const headers = { authorization: `Bearer ${demo.key}`, 'content-type': 'application/json' }
  for (const [name, text] of [
    ['1 row', (n: number) => `SELECT id, status FROM orders WHERE id = ${n}`],
    ['100 rows', (n: number) => `SELECT * FROM orders WHERE id > ${n} ORDER BY id LIMIT 100`],
  ] as const) {
    const [rest, connector]: [number[], number[]] = [[], []]
    for (let n = 1; n <= ROUNDS; n++) {
      const body = JSON.stringify({ sql: text(n) })
      const one = performance.now()
      await (await fetch(path, { method: 'POST', headers, body })).text()
      const two = performance.now()
      await post(demo, 'tools/call', { name: 'run_query', arguments: { ...at, sql: text(n) } })
      rest.push(two - one)
      connector.push(performance.now() - two)
    }
    const [a, b] = [median(rest.slice(10)), median(connector.slice(10))]
    console.log(
      `run_query, ${name}: p50 ${b.toFixed(2)} ms, REST ${a.toFixed(2)} ms (adds ${(b - a).toFixed(2)}, goal <= 0.5)`,
    )
  }
}

const TURNS_MAX = 5

/**
 * Runs the first query, and then the query that each refusal suggests. Returns the number of turns until the answer is
 * right. Returns null if a turn has no suggestion, or after TURNS_MAX turns.
 */
async function turnsTo(demo: Demo, at: object, first: string, right: string): Promise<number | null> {
  const wanted = JSON.stringify((await tool(demo, 'run_query', { ...at, sql: right })).rows)
  let sql = first
  for (let turn = 1; turn <= TURNS_MAX; turn++) {
    const answer = await tool(demo, 'run_query', { ...at, sql })
    if (JSON.stringify(answer.rows) === wanted) return turn
    if (typeof answer.suggestion !== 'string') return null
    sql = answer.suggestion
  }
  return null
}

// oxlint-disable-next-line typescript/no-explicit-any
async function tool(demo: Demo, name: string, args: object): Promise<any> {
  return (await post(demo, 'tools/call', { name, arguments: args })).result.structuredContent
}

// oxlint-disable-next-line typescript/no-explicit-any
async function post(demo: Demo, method: string, params: Readonly<Record<string, unknown>>): Promise<any> {
  const version = '2026-07-28'
  const _meta = { [`${META}protocolVersion`]: version, [`${META}clientCapabilities`]: {} }
  const response = await fetch(`${demo.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${demo.key}`,
      'content-type': 'application/json',
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...(typeof params['name'] === 'string' && { 'mcp-name': params['name'] }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  })
  return await response.json()
}

async function startDemo(): Promise<Demo> {
  const folder = await mkdtemp(join(tmpdir(), 'vitrine-bench-'))
  const env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    PORT: '0',
    VITRINE_DATA_DIR: folder,
    VITRINE_DEMO: '1',
  }
  const child = spawn(process.execPath, ['--max-semi-space-size=4', '--heap-growing-percent=80', 'dist/main.js'], {
    env,
  })
  let printed = ''
  for await (const part of child.stdout) {
    printed += String(part)
    if (/sk_live_\w+[^]*VITRINE_DEMO=0/.test(printed)) break
  }
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(printed) ?? []
  const [key] = /sk_live_\w+/.exec(printed) ?? []
  if (url === undefined || key === undefined || child.pid === undefined) throw new Error(`no demo: ${printed}`)
  return {
    url,
    key,
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}
