// npm exec -- node bench/profile.ts: the bundle profiles a real PostgreSQL with BENCH_TABLES (100) tables of 20 columns
// and BENCH_TABLE_ROWS (100,000) rows, while one caller keeps querying. Prints the time, the memory over time, and the
// times of the caller's queries with and without a profile. Linux only (/proc).
import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import { startPostgres } from '../test/support/postgres.ts'
import { memory } from './cpu-time.ts'
import { post } from './load.ts'
import { connectTo, signIn, startVitrine } from './world.ts'

const TABLES = Number(process.env['BENCH_TABLES'] ?? 100)
const ROWS = Number(process.env['BENCH_TABLE_ROWS'] ?? 100_000)
/** How long the caller sends queries before the profile starts. */
const ALONE_MS = 5_000

const COLUMNS = `id int PRIMARY KEY, customer_id int, state text, label text, email text, city text, note text, code char(4),
  amount numeric(12, 2), price double precision, quantity int, big bigint, flag boolean, born date, at timestamptz,
  updated timestamp, ref uuid, tags text[], doc jsonb, sparse int`
const VALUES = `n, n % 5000, (ARRAY['open','paid','sent'])[1 + n % 3], 'label ' || n % 400, 'user' || n || '@example.com',
  'city ' || n % 40, 'some words about row number ' || n, 'c' || n % 9, n * 1.25, n / 7.0, n % 100, n::bigint * 1000003,
  n % 2 = 0, date '1970-01-01' + n % 18000, timestamptz '2024-01-01Z' + n * interval '1 minute',
  timestamp '2024-01-01' + n % 1000 * interval '1 hour', md5(n::text)::uuid, ARRAY['a', 'b'], '{"a": 1}',
  CASE WHEN n % 50 = 0 THEN n END`

await using server = await startPostgres({ settings: { shared_buffers: '128MB' } })
const database = await server.createDatabase('bench')
console.log(`loading ${TABLES} tables of 20 columns and ${ROWS} rows …`)
const names = Array.from({ length: TABLES }, (_, n) => `table_${String(n).padStart(3, '0')}`)
for (const [n, name] of names.entries()) {
  const [like, from] =
    n === 0
      ? [COLUMNS, `${VALUES} FROM generate_series(1, ${ROWS}) n`]
      : ['LIKE table_000 INCLUDING ALL', '* FROM table_000']
  await server.query(database, `CREATE TABLE ${name} (${like}); INSERT INTO ${name} SELECT ${from}; ANALYZE ${name}`)
}
const order = { host: server.host, port: server.port, database, username: server.superuser, password: server.password }
await profileByBundle()

/** Runs the profile over HTTP. */
async function profileByBundle(): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { base, pid } = await startVitrine(stack)
  const spec = { type: 'POSTGRES', connectionMode: 'DIRECT', ...order }
  const { at, key } = await connectTo(
    base,
    spec,
    names.map((table) => ({ schema: 'public', table, columns: null })),
  )
  const headers = { authorization: `Bearer ${await signIn(base)}` }
  const alone = await asked(at, key, wait(ALONE_MS))
  const before = await memory(pid)
  const seen: string[] = []
  const started = performance.now()
  const { jobId } = (await (await fetch(`${at}/profile`, { method: 'POST', headers })).json()) as { jobId: string }
  let [lastTenth, result] = [-1, '']
  const ended = (async () => {
    for (;;) {
      const job = (await (await fetch(`${at}/jobs/${jobId}`, { headers })).json()) as Job
      const { now } = await memory(pid)
      const tenth = Math.floor((job.done * 10) / TABLES)
      if (tenth > lastTenth) seen.push(now.toFixed(0))
      lastTenth = Math.max(lastTenth, tenth)
      result = JSON.stringify(job)
      if (job.state !== 'RUNNING' && job.state !== 'QUEUED') return
      await wait(100)
    }
  })()
  const beside = await asked(at, key, ended)
  const seconds = (performance.now() - started) / 1000
  const after = await memory(pid)
  console.log(result)
  console.log(`profiled in ${seconds.toFixed(1)} s (goal <= 60), while one caller queried without pause`)
  console.log(
    `resident ${before.now.toFixed(0)} MB before, each tenth of the tables ${seen.join(' ')}, ` +
      `${after.peak.toFixed(0)} MB at the peak (goal <= 250)`,
  )
  console.log(`a caller's point look-ups: alone ${alone}; beside a profile ${beside}`)
}

interface Job {
  readonly state: string
  readonly done: number
}

/** One caller looks up rows one after another until the promise settles. Returns a text with the times. */
async function asked(at: string, key: string, until: Promise<unknown>): Promise<string> {
  const { origin, pathname } = new URL(`${at}/query`)
  const pool = new Pool(origin, { connections: 1 })
  const headers = { authorization: `Bearer ${key}` }
  const took: number[] = []
  let isOver = false
  const over = until.finally(() => (isOver = true))
  for (let n = 0; !isOver; n++) {
    const sent = performance.now()
    await post(pool, pathname, headers, {
      sql: `SELECT id, state, amount FROM table_000 WHERE id = ${(n * 7919) % ROWS}`,
    })
    took.push(performance.now() - sent)
  }
  await over
  await pool.close()
  took.sort((a, b) => a - b)
  const of = (share: number): string => (took[Math.floor((took.length - 1) * share)] ?? Number.NaN).toFixed(1)
  return `${took.length} queries, p50 ${of(0.5)}, p95 ${of(0.95)}, p99 ${of(0.99)}, longest ${of(1)} ms`
}
