// npm exec -- node bench/audit.ts: measures the audit's writer alone on both stores, then W1 (workloads.ts) in turns
// with and without the audit, then how long it takes to read, export and verify a large audit. BENCH_ONLY is a pattern
// for the names of these parts: writer, W1, large. Other settings are BENCH_AUDIT_ROWS (1,000,000), BENCH_ROUNDS (7),
// and BENCH_MS per turn (2000). Linux only (/proc).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { sql } from 'kysely'
import { piecesOf } from '../src/audit/reading/export.ts'
import { openAudit, type Audit } from '../src/audit/audit.ts'
import type { AuditedCall } from '../src/audit/make-rows.ts'
import { sealWith } from '../src/audit/chain/seal.ts'
import { verifyAudit } from '../src/audit/chain/verify-chains.ts'
import { newId, type AccountId, type ApiKeyId, type DatasourceId, type TeamId } from '../src/ids.ts'
import type { DialectName } from '../src/store/migration.ts'
import { openStore } from '../src/store/open.ts'
import { usageOf } from '../test/support/audited.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { storeSource } from '../test/support/stores.ts'
import { load, median, type Sample } from './load.ts'
import { connectTo, type Contender } from './world.ts'

const only = new RegExp(process.env['BENCH_ONLY'] ?? '')
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const ms = Number(process.env['BENCH_MS'] ?? 2000)
const large = Number(process.env['BENCH_AUDIT_ROWS'] ?? 1_000_000)
const key = new Uint8Array(32).fill(1)

const QUERY = 'SELECT id, customer_id, total, note, ordered_at FROM orders WHERE id = '
const PRINTED =
  'SELECT t0.c0 AS "id", t0.c1 AS "customer_id", t0.c2 AS "total", t0.c3 AS "note", t0.c4 AS "ordered_at" FROM (SELECT "id" AS c0, "customer_id" AS c1, "total" AS c2, "note" AS c3, "ordered_at" AS c4 FROM "public"."orders") AS t0 WHERE t0.c0 = '
const teamId = newId<TeamId>()
const datasourceId = newId<DatasourceId>()
const calls = Array.from({ length: 8 }, (): AuditedCall => {
  const ids = { accountId: newId<AccountId>(), keyId: newId<ApiKeyId>() }
  const caller = { kind: 'key', ...ids, name: 'Ada Lovelace', keyName: 'reports' } as const
  return { action: 'runQuery', caller, client: 'bench/1.0' }
})

/** Flushes as often as a service that writes 2,000 rows per second and flushes every 200 ms. */
async function write(audit: Audit, from: number, rows: number): Promise<void> {
  const tables = [{ schema: 'public', table: 'orders' }]
  const end = { outcome: 'ANSWERED', rowCount: 1, bytes: 310, durationMs: 1.234, tables } as const
  for (let n = from; n < from + rows; n++) {
    for (const call of calls.slice(n % calls.length, (n % calls.length) + 1)) {
      audit.record(call, { teamId, datasourceId, query: QUERY + n, printed: PRINTED + n, ...end })
    }
    if (n % 400 === 399) await audit.flush()
  }
  await audit.flush()
}

async function writerAlone(dialect: DialectName): Promise<void> {
  const rows = Math.min(large, 40_000)
  await using source = await storeSource(dialect)
  await using store = await openStore(await source.config())
  await using audit = openAudit({ store, key })
  await write(audit, 0, 4_000) // warms up
  const began = performance.now()
  const cpu = process.cpuUsage()
  await write(audit, 4_000, rows)
  const { user, system } = process.cpuUsage(cpu)
  const perSecond = (rows / (performance.now() - began)) * 1000
  console.log(
    `the writer alone on ${dialect}: ${perSecond.toFixed(0)} rows a second (goal >= 2000), ` +
      `${((user + system) / rows).toFixed(1)} us of CPU a row (goal <= 50)`,
  )
}

async function largeOne(dialect: DialectName): Promise<void> {
  await using source = await storeSource(dialect)
  await using store = await openStore(await source.config())
  await using audit = openAudit({ store, key })
  await write(audit, 0, large)
  // PostgreSQL would run ANALYZE by itself within a minute.
  await sql`ANALYZE`.execute(store.db)
  const say = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    const pauses = monitorEventLoopDelay({ resolution: 5 })
    pauses.enable()
    const began = performance.now()
    await work()
    const took = performance.now() - began
    pauses.disable()
    const rss = process.memoryUsage.rss() / (1 << 20)
    console.log(
      `${large.toLocaleString('en')} rows on ${dialect}, ${what}: ${took.toFixed(0)} ms, ` +
        `longest pause ${(pauses.max / 1e6).toFixed(0)} ms, resident ${rss.toFixed(0)} MB`,
    )
  }
  const page = (filter: object) => audit.page(teamId, { limit: 50, filter })
  await say('the newest 50', () => page({}))
  await say('50 of one key', () => page({ keyId: calls[0]?.caller.keyId }))
  await say('none of an unknown key', () => page({ keyId: newId<ApiKeyId>() }))
  await say('usage of 30 days', () => usageOf(audit, teamId))
  await say('exported as CSV', async () => {
    for await (const items of audit.all(teamId, {})) for (const item of items) Array.from(piecesOf('csv', item))
  })
  await say('verified', () =>
    store.db.transaction().execute(async (tx) => {
      for await (const { finding } of verifyAudit(tx, sealWith(key), () => undefined))
        if (finding !== null) throw new Error(finding.what)
    }),
  )
}

async function w1(): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const postgres = stack.use(await startPostgres())
  const database = await postgres.createDatabase(
    'bench',
    `CREATE TABLE orders (id int PRIMARY KEY, customer_id bigint, total numeric(12,2), note text, ordered_at timestamptz);
     INSERT INTO orders SELECT i, i % 20000, i / 100.0, 'note number ' || i || ' of many', timestamptz '2023-01-01 00:00+00'
     FROM generate_series(1, 200000) i; ANALYZE orders`,
  )
  const { host, port, superuser: username, password } = postgres
  const spec = { type: 'POSTGRES', connectionMode: 'DIRECT', host, port, database, username, password }
  const [a, b] = [
    await contender('with', [], spec, stack),
    await contender('without', ['--import', NO_AUDIT], spec, stack),
  ]
  let turn = 0
  const next = () => ({ sql: `${QUERY}${(++turn * 7919) % 200_000}` })
  const samples: { a: Sample; b: Sample }[] = []
  for (let round = 0; round <= rounds; round++) {
    // The contender that goes first changes in each round. The first round is a warm-up.
    const pair = { a: null as Sample | null, b: null as Sample | null }
    for (const name of round % 2 === 0 ? (['a', 'b'] as const) : (['b', 'a'] as const)) {
      pair[name] = await load(name === 'a' ? a : b, next, 16, ms)
    }
    if (round > 0 && pair.a !== null && pair.b !== null) samples.push({ a: pair.a, b: pair.b })
  }
  const of = (pick: (s: { a: Sample; b: Sample }) => number): string => median(samples.map(pick)).toFixed(2)
  console.log(
    `W1 with the audit: ${of((s) => s.a.perSecond / s.b.perSecond)} x without (goal >= 0.95); ` +
      `${of((s) => s.a.perSecond)} against ${of((s) => s.b.perSecond)} a second; ` +
      `CPU ${of((s) => s.a.cpuMicros)} against ${of((s) => s.b.cpuMicros)} us a request`,
  )
}

const NO_AUDIT = join(import.meta.dirname, 'no-audit.ts')

/** Runs the service from source, because no-audit.ts replaces a source file. */
async function contender(
  name: string,
  preload: readonly string[],
  spec: object,
  stack: AsyncDisposableStack,
): Promise<Contender> {
  const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const env = {
    ...process.env,
    PORT: '0',
    HOST: '127.0.0.1',
    VITRINE_DATA_DIR: dataDir,
    VITRINE_DEMO: '0',
    LOG_LEVEL: 'error',
  }
  const args = ['--max-semi-space-size=4', ...preload, join(import.meta.dirname, '../src/main.ts')]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  stack.defer(async () => {
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
  })
  let said = ''
  child.stdout.on('data', (chunk) => (said += String(chunk)))
  while (!/listens at \S+/.test(said)) await once(child.stdout, 'data')
  const base = /listens at (\S+)/.exec(said)?.[1] ?? ''
  const { at, key: token } = await connectTo(base, spec, [{ schema: 'public', table: 'orders', columns: null }])
  return { name, url: `${at}/query`, headers: { authorization: `Bearer ${token}` }, pid: child.pid ?? 0 }
}

for (const dialect of ['sqlite', 'postgres'] as const) if (only.test('writer')) await writerAlone(dialect)
if (only.test('W1')) await w1()
for (const dialect of ['sqlite', 'postgres'] as const) if (only.test('large')) await largeOne(dialect)
