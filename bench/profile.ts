// npm exec -- node bench/profile.ts: profiles BENCH_TABLES (100) tables of 20 columns and BENCH_TABLE_ROWS (100,000) rows
// of a real PostgreSQL through the rooms, and describes 1,000 tables with what is known of them. Prints the time, the
// memory at its highest, the longest pause of the event loop, and how many connections there ever were.
import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { openDescriptions } from '../src/datasources/describe.ts'
import { openCatalogs } from '../src/exposure/catalogs.ts'
import { openRooms } from '../test/support/connected.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { Profiled, withProfiles } from '../test/support/profiled.ts'

const TABLES = Number(process.env['BENCH_TABLES'] ?? 100)
const ROWS = Number(process.env['BENCH_TABLE_ROWS'] ?? 100_000)
const DESCRIBED = 1_000

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
for (let n = 0; n < TABLES; n++) {
  const name = `table_${String(n).padStart(3, '0')}`
  await server.query(
    database,
    n === 0
      ? `CREATE TABLE ${name} (${COLUMNS}); INSERT INTO ${name} SELECT ${VALUES} FROM generate_series(1, ${ROWS}) n; ANALYZE ${name}`
      : `CREATE TABLE ${name} (LIKE table_000 INCLUDING ALL); INSERT INTO ${name} SELECT * FROM table_000; ANALYZE ${name}`,
  )
}
await using rooms = await openRooms()
withProfiles(rooms)
const order = { host: server.host, port: server.port, database, username: server.superuser, password: server.password }
const at = await Profiled.connect(rooms, order, null)

const delay = monitorEventLoopDelay({ resolution: 5 })
global.gc?.()
const before = process.memoryUsage().rss
let [highest, connections] = [0, 0]
let counted: Promise<unknown> = Promise.resolve()
const watch = setInterval(() => {
  highest = Math.max(highest, process.memoryUsage().rss)
  counted = server
    .query('postgres', `SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}'`)
    .then((rows) => (connections = Math.max(connections, Number(rows[0]?.[0]))))
}, 250)
delay.enable()
const started = performance.now()
const cpu = process.cpuUsage()
const result = await at.profile()
const seconds = (performance.now() - started) / 1000
const { user } = process.cpuUsage(cpu)
delay.disable()
clearInterval(watch)
await counted
console.log(JSON.stringify(result))
console.log(`profiled in ${seconds.toFixed(1)} s (goal <= 60), ${(user / 1e6).toFixed(1)} s of CPU here`)
console.log(`resident ${mega(before)} before, ${mega(highest)} at the highest; at most ${connections} connection(s)`)
console.log(
  `event loop held for ${(delay.percentile(99) / 1e6).toFixed(0)} ms at p99, ${(delay.max / 1e6).toFixed(0)} ms at most`,
)

await describeMany()

/** The same profile under 1,000 names: what a description costs when nothing of it is written yet. */
async function describeMany(): Promise<void> {
  const { row } = await at.at()
  const full = await rooms.catalogs.full(row)
  const [table] = full?.tables ?? []
  assert.ok(full && table)
  const names = Array.from({ length: DESCRIBED }, (_, n) => `made_${n}`)
  const catalog = JSON.stringify({ ...full, tables: names.map((name) => ({ ...table, table: name })) })
  const columns = table.columns.map((column) => column.name)
  const tables = JSON.stringify(names.map((name) => ({ schema: 'public', table: name, columns })))
  await rooms.store.write(async (tx) => {
    await tx.updateTable('catalogs').set({ catalog }).where('datasource_id', '=', at.id).execute()
    await tx.updateTable('exposures').set({ tables }).where('datasource_id', '=', at.id).execute()
    const kept = await tx
      .selectFrom('profiles')
      .selectAll()
      .where('datasource_id', '=', at.id)
      .executeTakeFirstOrThrow()
    await tx.deleteFrom('profiles').where('datasource_id', '=', at.id).execute()
    for (const name of names)
      await tx
        .insertInto('profiles')
        .values({ ...kept, table: name })
        .execute()
  })
  const anew = Object.assign(Object.create(rooms), { catalogs: openCatalogs(rooms), descriptions: openDescriptions() })
  const fresh = Profiled.again(anew, at)
  await rooms.catalogs.exposed(row)
  for (const what of ['first, catalog read too', 'from the snapshot, written anew', 'again']) {
    if (what.startsWith('from')) anew.descriptions = openDescriptions()
    const from = performance.now()
    const { json } = await fresh.described()
    const ms = performance.now() - from
    console.log(`described ${DESCRIBED} tables, ${what}: ${ms.toFixed(1)} ms, ${mega(json.length)}`)
  }
}

function mega(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
