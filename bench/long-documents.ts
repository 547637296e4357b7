// npm exec -- node bench/long-documents.ts: measures how much long MongoDB documents, long tool answers and long
// audited queries delay other requests. BENCH_ONLY is a pattern for the names. BENCH_ROUNDS (10) is the number of
// requests of each kind. BENCH_BEFORE names another checkout, whose bundle is measured instead.
import { Binary, BSONRegExp, type Document } from 'mongodb'
import { startMongod } from '../test/support/mongodb.ts'
import { openLoopBench } from './loop-bench.ts'
import { connectTo } from './world.ts'

const ONLY = new RegExp(process.env['BENCH_ONLY'] ?? '')
const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))
const named = (n: number, make: (k: number) => unknown, name = 'f'): Document =>
  Object.fromEntries(many(n, (k) => [`${name}${k}`, make(k)]))
function nested(depth: number, value: unknown): unknown {
  for (let n = 0; n < depth; n++) value = { a: value }
  return value
}
/** A document in which the name `a` occurs several times. */
class Repeated extends Map<string, unknown> {
  readonly #times: number
  constructor(times: number) {
    super()
    this.#times = times
  }
  override *entries(): MapIterator<[string, unknown]> {
    yield ['_id', 1]
    for (let n = 0; n < this.#times; n++) yield ['a', null]
  }
}

/** In these collections, the value of `v` becomes the whole document. */
const ROOTS = new Set(['a field 5,000,000 times', '85 names of 4,000 bytes'])

const DOCUMENTS: Readonly<Record<string, () => readonly (Document | Map<string, unknown>)[]>> = {
  'a text of 16 MB': () => [{ v: 'abcdefghij'.repeat(1_670_000) }],
  'a text of quotes, 16 MB': () => [{ v: 'a"b\n'.repeat(4_170_000) }],
  'a text of control characters, 16 MB': () => [{ v: '\u0001'.repeat(16_700_000) }],
  'an array of 1,000,000': () => [{ v: many(1_000_000, (k) => k) }],
  'an array of 100,000 documents': () => [{ v: many(100_000, (k) => ({ a: k, b: 'text', c: [k] })) }],
  'binary data of 16 MB': () => [{ v: new Binary(Buffer.alloc(16_700_000, 7)) }],
  'a text of 16 MB in 90 levels': () => [{ v: nested(90, 'x'.repeat(16_700_000)) }],
  'an array of 1,000,000 in 90 levels': () => [
    {
      v: nested(
        90,
        many(1_000_000, (k) => k),
      ),
    },
  ],
  'an array of 17,000 documents of 90 levels': () => [{ v: many(17_000, (k) => nested(90, k)) }],
  '1,000,000 keys': () => [{ v: named(1_000_000, (k) => k) }],
  'a name of 16 MB': () => [{ v: { ['n'.repeat(16_700_000)]: 1 } }],
  'a pattern of 16 MB': () => [{ v: new BSONRegExp('a"'.repeat(8_300_000)) }],
  'patterns in patterns of 8 MB': () => [
    { v: [new BSONRegExp('x'.repeat(8_300_000)), new BSONRegExp('x'.repeat(8_300_000))] },
  ],
  'a field 5,000,000 times': () => [{ v: new Repeated(5_000_000) }],
  'three documents of 16 MB': () => many(3, () => ({ v: 'x'.repeat(16_700_000) })),
  'a document of 16 MB, then another column': () => [{ v: 'x'.repeat(16_700_000) }, { w: 1 }],
  'a text of control characters, 10 MB, then another column': () => [{ v: '\u0001'.repeat(10_500_000) }, { w: 1 }],
  '50,000 documents of 300 bytes': () => many(50_000, (k) => ({ k, text: 'abcde'.repeat(40), at: new Date(k) })),
  '50,000 empty documents after one of 999 fields': () => [named(999, (k) => k), ...many(49_999, () => ({}))],
  '16,000 documents of 999 columns': () => many(60, (j) => named(999, (k) => 'x'.repeat(250) + j * k)),
  '85 names of 4,000 bytes': () => [{ v: Object.fromEntries(many(85, (k) => [`${k}`.padEnd(4_000, 'n"'), k])) }],
}

await using stack = new AsyncDisposableStack()
const server = stack.use(await startMongod({ auth: true }))
const names = Object.keys(DOCUMENTS).filter((name, n) => n === 0 || ONLY.test(name))
const db = server.client.db('bench')
for (const [n, name] of names.entries())
  for (const document of DOCUMENTS[name]?.() ?? []) await db.collection(`t${n}`).insertOne(document)
const { base, bench } = await openLoopBench(stack)
const { host, port, password } = server
const where = { host, port, database: 'bench', username: 'root', sslMode: 'disable', config: {} }
const exposed = names.map((_, n) => ({ schema: 'bench', table: `t${n}`, columns: null }))
const { at, key, token } = await connectTo(
  base,
  { type: 'MONGODB', connectionMode: 'DIRECT', ...where, password },
  exposed,
)
const [, , teamId = '', , datasourceId = ''] = new URL(at).pathname.split('/')

async function send(method: string, url: string, by: string, body?: object): Promise<void> {
  const accept = 'application/json, text/event-stream'
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const headers = { authorization: `Bearer ${by}`, accept, ...json }
  const res = await fetch(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const bytes = Buffer.from(await res.arrayBuffer())
  // 422 means that the answer has too many fields, or that their names are too long.
  if (!res.ok && res.status !== 422) throw new Error(`${res.status} ${bytes.subarray(0, 300).toString()}`)
}

for (const [n, name] of names.entries()) {
  const pipeline = ROOTS.has(name) ? [{ $replaceRoot: { newRoot: '$v' } }] : []
  const query = { collection: `t${n}`, pipeline }
  await bench(name, () => send('POST', `${at}/query`, key, query))
  const call = (more: object): object => ({
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: 'run_query', arguments: { teamId, datasourceId, ...query, limit: 50_000 }, ...more },
  })
  await bench(`${name}, run_query`, () => send('POST', `${base}/mcp`, key, call({})))
  // The SDK answers messages with unknown fields.
  await bench(`${name}, run_query by the SDK`, () => send('POST', `${base}/mcp`, key, call({ extra: 1 })))
}

const audit = `${base}/teams/${teamId}/audit`
if (ONLY.test('audit')) {
  const values = many(100, () => ({ _id: { $in: many(150, (k) => `va"lue ${k}`) } }))
  for (let n = 0; n < 60; n++) await send('POST', `${at}/query`, key, { collection: 't0', filter: { $or: values } })
}
await bench('audit of 60 queries of 230 kB, a page', () => send('GET', `${audit}?limit=200`, token))
await bench('audit of 60 queries of 230 kB, CSV', () => send('GET', `${audit}/export?format=csv`, token))
await bench('audit of 60 queries of 230 kB, JSON', () => send('GET', `${audit}/export?format=jsonl`, token))
