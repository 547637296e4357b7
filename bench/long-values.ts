// npm exec -- node bench/long-values.ts: measures how much one long value in an answer delays other requests, for
// PostgreSQL. BENCH_ONLY is a pattern for the names. BENCH_ROUNDS (10) is the number of requests of each kind.
// BENCH_BEFORE names another checkout, whose bundle is measured instead.
import { startPostgres } from '../test/support/postgres.ts'
import { openLoopBench } from './loop-bench.ts'
import { connectTo } from './world.ts'

/** Long values as PostgreSQL expressions. The number is the length of their text in millions of bytes. */
const POSTGRES: Readonly<Record<string, string>> = {
  'text, 1 MB': `repeat('abcdefghij', 100000)`,
  'text, 8 MB': `repeat('abcdefghij', 800000)`,
  'text, 29 MB': `repeat('abcdefghij', 2900000)`,
  'text, 60 MB': `repeat('abcdefghij', 6000000)`,
  'text of quotes and newlines, 29 MB': `repeat(e'a"b\n', 7250000)`,
  'text of control characters, 10 MB': `repeat(e'\u0001', 10000000)`,
  'text of 3-byte characters, 29 MB': `repeat('日本語', 3200000)`,
  'text of 4-byte characters, 29 MB': `repeat('😀😀', 3600000)`,
  'bytea, 29 MB': `decode(repeat('c0ffee00', 7250000), 'hex')`,
  'jsonb, wide, 29 MB': `(SELECT jsonb_object_agg('key' || i, i) FROM generate_series(1, 1500000) i)`,
  'jsonb, deep, 29 MB': `(repeat('[', 6000) || '"' || repeat('x', 29000000) || '"' || repeat(']', 6000))::jsonb`,
  'integer array of 1,000,000': `(SELECT array_agg(i) FROM generate_series(1, 1000000) i)`,
  'text array of 300,000 quoted elements': `(SELECT array_agg('say "hi" ' || i) FROM generate_series(1, 300000) i)`,
  'text array of one element, 29 MB': `ARRAY[repeat(e'a"b ', 7250000)]`,
  'jsonb array of 300,000': `(SELECT array_agg(jsonb_build_object('k', i, 'v', 'text')) FROM generate_series(1, 300000) i)`,
  'numeric array of 100 × 131,000 digits': `array_fill(repeat('9', 131000)::numeric, ARRAY[100])`,
  'composite of a text of 29 MB': `ROW(1, repeat(e'a"b ', 7250000))::pair`,
  'array of 200,000 composites': `(SELECT array_agg(ROW(i, 'a "b" c')::pair) FROM generate_series(1, 200000) i)`,
}

/** Answers that are long, although none of their values is. */
const ROWS: Readonly<Record<string, string>> = {
  'rows of 100 numbers of 131,000 digits': `SELECT repeat('9', 131000)::numeric AS v FROM generate_series(1, 100)`,
  '8,000 rows of 8 kB': `SELECT repeat('abcdefghij', 780) AS v FROM generate_series(1, 8000)`,
}

await using stack = new AsyncDisposableStack()
const { base, bench } = await openLoopBench(stack)

async function asked(name: string, url: string, key: string, query: object): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  await bench(name, async () => {
    const res = await fetch(url, { method: 'POST', headers, body: JSON.stringify(query) })
    const bytes = Buffer.from(await res.arrayBuffer())
    const end = bytes.subarray(-120).toString()
    if (!res.ok || !/"rowCount":[1-9]/.test(end)) throw new Error(`${name}: ${res.status} ${end}`)
  })
}

async function postgres(): Promise<void> {
  await using server = await startPostgres()
  const tables = [...Object.keys(POSTGRES), ...Object.keys(ROWS)]
  const sql = [
    'CREATE TYPE pair AS (a int, b text)',
    ...Object.values(POSTGRES).map((value, n) => `CREATE TABLE t${n} AS SELECT ${value} AS v`),
    ...Object.values(ROWS).map((rows, n) => `CREATE TABLE t${n + Object.keys(POSTGRES).length} AS ${rows}`),
    'ANALYZE',
  ].join(';\n')
  const database = await server.createDatabase('bench', sql)
  const { host, port, superuser: username, password } = server
  const spec = { type: 'POSTGRES', connectionMode: 'DIRECT', host, port, database, username, password }
  const exposed = tables.map((_, n) => ({ schema: 'public', table: `t${n}`, columns: null }))
  const { at, key } = await connectTo(base, spec, exposed)
  for (const [n, name] of tables.entries())
    await asked(`PostgreSQL: ${name}`, `${at}/query`, key, { sql: `SELECT v FROM t${n}` })
}

await postgres()
