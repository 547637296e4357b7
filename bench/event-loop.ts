// npm exec -- node bench/event-loop.ts: measures how much one request to the bundle delays other requests. The service
// itself measures the longest delay of its event loop. A thread of this process measures the longest wait for
// /health/live. Linux only (signals). BENCH_ONLY is a pattern for the names. BENCH_ROUNDS (10) is the number of
// requests of each kind. The first request is reported separately.
import type { Document } from 'mongodb'
import { startMongod } from '../test/support/mongodb.ts'
import { openLoopBench } from './loop-bench.ts'
import { connectTo, signIn } from './world.ts'

const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))
const named = (n: number, make: (k: number) => unknown): object =>
  Object.fromEntries(many(n, (k) => [`f${k}`, make(k)]))

/** A small query, queries whose answers have several megabytes, and queries whose bodies have nearly 256 KiB. */
const QUERIES: Readonly<Record<string, Document>> = {
  'one document': { collection: 'small', filter: { _id: 1 } },
  'answer: 1,000 documents of 8 kB': { collection: 'large', filter: { kind: 'texts' } },
  'answer: one document of 6 MB, dates': { collection: 'large', filter: { kind: 'dates' } },
  'answer: one document of 6 MB, UUIDs': { collection: 'large', filter: { kind: 'uuids' } },
  'answer: one document of 6 MB, decimals': { collection: 'large', filter: { kind: 'decimals' } },
  'body: 19,000 texts': {
    collection: 'small',
    pipeline: [{ $project: { x: { $literal: many(19_000, (k) => `text ${k}`) } } }],
  },
  'body: 6,000 dates': {
    collection: 'small',
    filter: {
      $or: many(4, (j) => ({ at: { $in: many(1_500, (k) => ({ $date: new Date(k * 1e7 + j).toISOString() })) } })),
    },
  },
  'body: 2,700 expressions': {
    collection: 'small',
    pipeline: many(9, () => ({ $set: named(300, (k) => ({ $add: ['$_id', { $strLenCP: '$kind' }, k] })) })),
  },
  'body: 9,000 constants, refused': {
    collection: 'small',
    pipeline: many(10, (j) => ({
      $set: Object.fromEntries(many(900, (k): [string, number] => [`field_${j}_${k}`, k])),
    })),
  },
  'body: $group of 900 sums': {
    collection: 'small',
    pipeline: [
      {
        $group: {
          _id: '$kind',
          ...named(900, (k) => ({ $sum: { $cond: [{ $eq: ['$kind', `k${k}`] }, 1, 0] } })),
        },
      },
    ],
  },
  'body: $switch of 2,500 branches': {
    collection: 'small',
    pipeline: [
      {
        $project: {
          x: {
            $switch: { branches: many(2_500, (k) => ({ case: { $eq: ['$kind', `k${k}`] }, then: k })), default: 0 },
          },
        },
      },
    ],
  },
}

await using stack = new AsyncDisposableStack()
const server = stack.use(await startMongod({ auth: true }))
const db = server.client.db('bench')
const { UUID, Decimal128 } = await import('mongodb')
await db.collection('small').insertOne(Object.assign({ kind: 'a', at: new Date() }, { _id: 1 as never }))
await db
  .collection('large')
  .insertMany([
    ...many(1_000, (k) => ({ kind: 'texts', k, text: 'é"x'.repeat(2_000) })),
    { kind: 'dates', all: many(250_000, (k) => new Date(k * 1e6)) },
    { kind: 'uuids', all: many(150_000, () => new UUID()) },
    { kind: 'decimals', all: many(220_000, (k) => Decimal128.fromString(`1234.${k}`)) },
  ])
const { base, bench } = await openLoopBench(stack)

const { host, port, password } = server
const where = { host, port, database: 'bench', username: 'root', sslMode: 'disable', config: {} }
const spec = { type: 'MONGODB', connectionMode: 'DIRECT', ...where, password }
const tables = ['small', 'large'].map((table) => ({ schema: 'bench', table, columns: null }))
const { at, key } = await connectTo(base, spec, tables)
const send = async (method: string, url: string, token: string, body: string): Promise<void> => {
  const accept = 'application/json, text/event-stream'
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept }
  const res = await fetch(new URL(url, base), { method, headers, body })
  const text = await res.arrayBuffer()
  if (!res.ok && ![400, 403, 404].includes(res.status))
    throw new Error(`${res.status} ${Buffer.from(text).toString().slice(0, 300)}`)
}
for (const [name, query] of Object.entries(QUERIES)) {
  const body = JSON.stringify(query)
  await bench(`${name} (${body.length} bytes)`, () => send('POST', `${at}/query`, key, body))
}

const token = await signIn(base)
const keyed = (n: number): object[] => many(n, (k) => ({ [`k${k}`]: k }))
const rpc = (message: object): object => ({ jsonrpc: '2.0', id: 1, ...message })
/** Bodies near the limits of their routes. Most are refused. */
const bodies: Readonly<Record<string, readonly [string, string, object]>> = {
  'exposure of 50,000 wrong elements': ['PUT', `${at}/exposure`, { tables: many(50_000, () => ({})) }],
  'exposure of 59,000 objects of other keys': ['PUT', `${at}/exposure`, { tables: keyed(29_500) }],
  'exposure of 400,000 values': ['PUT', `${at}/exposure`, { tables: many(400_000, (k) => k) }],
  'exposure of 59,000 unknown fields': ['PUT', `${at}/exposure`, named(59_000, () => 1)],
  'exposure of one table of 59,000 fields': ['PUT', `${at}/exposure`, { tables: [named(59_000, () => 1)] }],
  'exposure of 2,000 tables, 40,000 columns': [
    'PUT',
    `${at}/exposure`,
    { tables: many(2_000, (k) => ({ schema: 'bench', table: `t${k}`, columns: many(20, (c) => `column_${c}`) })) },
  ],
  'documentation of 14,000 wrong columns': [
    'PUT',
    `${at}/documentation/bench/small`,
    { columns: named(14_000, () => 1) },
  ],
  'documentation of 14,000 columns': [
    'PUT',
    `${at}/documentation/bench/small`,
    { columns: named(14_000, () => ({ text: 'x' })) },
  ],
  'acceptance of 9,900 tables': [
    'POST',
    `${at}/documentation/accept`,
    { tables: many(9_900, (k) => ({ schema: 'bench', table: `t${k}` })) },
  ],
  'access of 9,900 accounts': ['PUT', `${at}/access`, { accountIds: many(9_900, (k) => `a${k}`) }],
  'check of 14,000 parameters': ['POST', `${at}/check`, { sql: 'SELECT 1', params: keyed(14_000) }],
  'check of 29,000 rounded numbers': [
    'POST',
    `${at}/check`,
    { sql: 'SELECT 1', params: many(29_000, (k) => `0.1234567890123456${k}`) },
  ],
  'key of 2,900 wrong teams': ['POST', '/users/me/keys', { name: 'a', scopes: ['profile'], teamIds: keyed(1_450) }],
  'key of 20,000 unknown fields': ['POST', '/users/me/keys', named(20_000, () => 1)],
  'datasource of 2,900 unknown fields': ['POST', at.replace(/\/[^/]*$/, ''), { config: named(2_900, () => keyed(1)) }],
  'sign-in of 2,900 unknown fields': ['POST', '/auth/sign-in/email', named(2_900, () => 1)],
  'mcp: a call with 14,000 objects': [
    'POST',
    '/mcp',
    rpc({ method: 'tools/call', params: { name: 'query', arguments: { pipeline: keyed(14_000) } } }),
  ],
  'mcp: a call with 29,000 unknown fields': ['POST', '/mcp', rpc(named(29_000, () => 1))],
  'mcp: initialize with 14,000 objects': [
    'POST',
    '/mcp',
    rpc({ method: 'initialize', params: { capabilities: keyed(14_000), clientInfo: named(100, () => 1) } }),
  ],
}
for (const [name, [method, path, value]] of Object.entries(bodies)) {
  const body = JSON.stringify(value).replaceAll(/"(0\.1234\d+)"/g, '$1')
  await bench(name, () => send(method, path, path === '/mcp' ? key : token, body))
}
