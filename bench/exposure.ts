// npm exec -- node bench/exposure.ts: runs the bundle on a database of 2,000 tables with 40,000 columns. While another
// caller sends queries, measures how long it takes to save an exposure of all tables, to describe 1,000 tables, to read
// the catalog, and to preview 10,000 audited queries. Linux only.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { startPostgres } from '../test/support/postgres.ts'
import { memory } from './cpu-time.ts'
import { median } from './load.ts'
import { startVitrine } from './world.ts'

const TABLES = 2_000
const COLUMNS = 20
const QUERIES = 10_000
const PERSON = { name: 'Bench', email: 'bench@example.test', password: 'correct horse battery staple' }

const types = ['int', 'text', 'numeric(12,2)', 'timestamptz', 'bool']
const columnsOf = Array.from({ length: COLUMNS }, (_, c) => `column_${c} ${types[c % types.length] ?? 'int'}`)
const names = Array.from({ length: TABLES }, (_, n) => `some_table_${n}`)

class Client {
  readonly base: string
  #token = ''

  constructor(base: string) {
    this.base = base
  }

  async signIn(path: 'sign-up' | 'sign-in'): Promise<void> {
    const up = await fetch(`${this.base}/auth/${path}/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: this.base },
      body: JSON.stringify(path === 'sign-up' ? PERSON : { email: PERSON.email, password: PERSON.password }),
    })
    const cookie = up.headers
      .getSetCookie()
      .map((part) => part.split(';')[0])
      .join('; ')
    const answer = await fetch(`${this.base}/auth/token`, { headers: { cookie } })
    this.#token = ((await answer.json()) as { token: string }).token
  }

  async ask(method: string, path: string, body?: unknown, headers: object = {}): Promise<Response> {
    return await fetch(this.base + path, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  // The bench trusts the shape of the answers that it reads.
  // oxlint-disable-next-line typescript/no-explicit-any
  async must(method: string, path: string, body?: unknown): Promise<any> {
    const answer = await this.ask(method, path, body)
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return await answer.json()
  }
}

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const began = performance.now()
  const value = await work()
  return { ms: performance.now() - began, value }
}

const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

async function save(client: Client, at: string): Promise<void> {
  const tables = names.map((table) => ({
    schema: 'public',
    table,
    columns: Array.from({ length: COLUMNS }, (_, c) => `column_${c}`),
  }))
  const took: number[] = []
  for (let round = 0; round < 5; round++)
    took.push((await timed(() => client.must('PUT', `${at}/exposure`, { tables }))).ms)
  console.log(
    `saving an exposure of ${TABLES} tables with ${TABLES * COLUMNS} columns: first ${ms(took[0] ?? 0)}, median ${ms(median(took))} (goal < 1 s)`,
  )
}

async function describe(client: Client, at: string, when: string): Promise<void> {
  const first = await timed(() =>
    client.ask('GET', `${at}/schema`).then((res) => res.text().then((text) => ({ res, text }))),
  )
  const etag = first.value.res.headers.get('etag') ?? ''
  const again: number[] = []
  const unchanged: number[] = []
  for (let round = 0; round < 20; round++) {
    again.push((await timed(() => client.ask('GET', `${at}/schema`).then((res) => res.text()))).ms)
    const not = await timed(() => client.ask('GET', `${at}/schema`, undefined, { 'if-none-match': etag }))
    if (not.value.status !== 304) throw new Error(`${not.value.status} and not 304`)
    unchanged.push(not.ms)
  }
  const { tables } = JSON.parse(first.value.text) as { tables: unknown[] }
  console.log(
    `describing ${tables.length} tables (${(first.value.text.length / 1e6).toFixed(1)} MB) ${when}: first ${ms(first.ms)}, then ${ms(median(again))}, ` +
      `304 ${ms(median(unchanged))} (goal <= 50 ms)`,
  )
}

/** Measures how long the catalog takes, also directly after a save. */
async function choose(client: Client, at: string, when: string): Promise<void> {
  const ask = () => timed(() => client.ask('GET', `${at}/catalog`).then((res) => res.text()))
  const first = await ask()
  const again: number[] = []
  const changed: number[] = []
  for (let round = 0; round < 7; round++) {
    again.push((await ask()).ms)
    const tables = names.slice(round, 1_000).map((table) => ({ schema: 'public', table, columns: null }))
    await client.must('PUT', `${at}/exposure`, { tables })
    changed.push((await ask()).ms)
  }
  console.log(
    `the catalog of ${TABLES} tables (${(first.value.length / 1e6).toFixed(1)} MB) ${when}: first ${ms(first.ms)}, then ${ms(median(again))}, ` +
      `after a save ${ms(median(changed))}, at most ${ms(Math.max(...changed))} (goal < 300 ms)`,
  )
}

/** Measures how long the description takes directly after a save. */
async function describeChanged(client: Client, at: string): Promise<void> {
  const exposed = names.slice(0, 1_000).map((table) => ({ schema: 'public', table, columns: null }))
  const change = async (what: string, tables: (n: number) => readonly object[]): Promise<void> => {
    const saved: number[] = []
    const described: number[] = []
    for (let round = 0; round < 7; round++) {
      saved.push((await timed(() => client.must('PUT', `${at}/exposure`, { tables: tables(round) }))).ms)
      described.push((await timed(() => client.ask('GET', `${at}/schema`).then((res) => res.text()))).ms)
    }
    console.log(
      `${what}: saved in ${ms(median(saved))}, described in ${ms(median(described))}, at most ${ms(Math.max(...described))}`,
    )
  }
  await change('one table of 1,000 hidden', (n) => exposed.toSpliced(n, 1))
  await change('a column of each hidden', (n) =>
    exposed.map((table) => ({
      ...table,
      columns: Array.from({ length: COLUMNS - 1 - n }, (_, c) => `column_${c}`),
    })),
  )
  await client.must('PUT', `${at}/exposure`, { tables: exposed })
}

/** Makes a different text for each n. Together the texts read 500 tables, and some are refused. */
function queryText(n: number): string {
  const table = names[n % 500] ?? ''
  const other = names[(n * 7) % 500] ?? ''
  if (n % 3 === 0) return `SELECT column_0, column_1 FROM ${table} WHERE column_0 = ${n}`
  if (n % 3 === 1)
    return `SELECT a.column_1, count(*) AS n, sum(b.column_2) FROM ${table} a JOIN ${other} b ON a.column_0 = b.column_0 WHERE a.column_3 > '2024-01-01' AND b.column_1 = 'text ${n}' GROUP BY 1 ORDER BY 2 DESC LIMIT ${n % 50}`
  return `SELECT column_1, column_9 FROM ${table} WHERE column_1 ILIKE '%${n}%' AND column_0 IN (${n}, ${n + 1})`
}

async function preview(client: Client, at: string): Promise<void> {
  let next = 0
  const caller = async (): Promise<void> => {
    for (let n = next++; n < QUERIES; n = next++) {
      const answer = await client.ask('POST', `${at}/query`, { sql: queryText(n) })
      if (answer.status !== 200 && answer.status !== 403) throw new Error(`${answer.status} ${await answer.text()}`)
      await answer.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: 16 }, caller))
  const tables = names
    .slice(0, 250)
    .map((table) => ({ schema: 'public', table, columns: ['column_0', 'column_1', 'column_2', 'column_3'] }))
  const waits: number[] = []
  const { ms: took, value: job } = await timed(async () => {
    const { jobId } = await client.must('POST', `${at}/exposure/preview`, { tables, days: 1 })
    for (;;) {
      waits.push((await timed(() => client.must('POST', `${at}/query`, { sql: 'SELECT 1' }))).ms)
      const state = await client.must('GET', `${at}/jobs/${jobId}`)
      if (state.state === 'DONE') return state
      if (state.state !== 'RUNNING') throw new Error(JSON.stringify(state))
      await wait(50)
    }
  })
  const { nowRefused, nowAllowed, cannotTell } = job.result
  console.log(
    `previewing ${job.total} audited queries: ${ms(took)} (goal <= 30 s); ${nowRefused.count} refused, ${nowAllowed.count} allowed, ${cannotTell.count} unknown; ` +
      `a concurrent query took ${ms(median(waits))}, at most ${ms(Math.max(...waits))}`,
  )
}

await using stack = new AsyncDisposableStack()
const postgres = stack.use(await startPostgres({ settings: { max_locks_per_transaction: '4096' } }))
const sql = names.map((name) => `CREATE TABLE ${name} (${columnsOf.join(', ')});`).join('\n')
const database = await postgres.createDatabase('bench', sql)
const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-bench-'))
stack.defer(() => rm(dataDir, { recursive: true, force: true }))
let at = ''
{
  await using service = new AsyncDisposableStack()
  const { base, pid } = await startVitrine(service, dataDir)
  const client = new Client(base)
  await client.signIn('sign-up')
  const team = await client.must('POST', '/teams', { name: 'Bench' })
  await client.must('PATCH', `/teams/${team.id}`, {
    settings: { queryBudget: { limit: 10_000_000, windowSeconds: 60 } },
  })
  const { host, port, superuser: username, password } = postgres
  const { id } = await client.must('POST', `/teams/${team.id}/datasources`, {
    name: 'bench',
    type: 'POSTGRES',
    ...{ connectionMode: 'DIRECT', sslMode: 'disable', host, port, username, password, database },
  })
  at = `/teams/${team.id}/datasources/${id}`
  const looked = await timed(() => client.must('POST', `${at}/introspect`))
  console.log(`introspecting ${looked.value.tableCount} tables: ${ms(looked.ms)}`)
  await save(client, at)
  const drift = await timed(() => client.must('GET', `${at}/drift`))
  console.log(`computing the drift: ${ms(drift.ms)}`)
  await client.must('PUT', `${at}/exposure`, {
    tables: names.slice(0, 1_000).map((table) => ({ schema: 'public', table, columns: null })),
  })
  await describe(client, at, 'after a save')
  await describeChanged(client, at)
  await choose(client, at, 'before any query')
  await preview(client, at)
  await choose(client, at, 'after 10,000 queries')
  const { now, peak } = await memory(pid)
  console.log(`resident ${now.toFixed(0)} MB, at its peak ${peak.toFixed(0)} MB`)
}
for (let round = 0; round < 5; round++) {
  await using service = new AsyncDisposableStack()
  const { base } = await startVitrine(service, dataDir)
  const client = new Client(base)
  await client.signIn('sign-in')
  await describe(client, at, 'after a restart')
}
