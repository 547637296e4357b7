// node bench/description.ts: measures how large a description is in JSON, how long it takes to propose documentation by
// rules, and how long the bundle takes to describe 1,000 tables in each state. Proposals are accepted and published
// before they are measured. BENCH_ONLY is a pattern for the names of the parts. Linux only.
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { PASSWORD, startApp, type Person, type TestApp } from '../test/support/app.ts'
import { startPostgres, type TestPostgres } from '../test/support/postgres.ts'
import { memory } from './cpu-time.ts'
import { startVitrine } from './world.ts'

const ONLY = new RegExp(process.env['BENCH_ONLY'] ?? '')
/** A common estimate for English and JSON. */
const BYTES_A_TOKEN = 4

interface Place {
  readonly app: TestApp
  readonly teamId: string
  readonly id: string
  readonly owner: Person
  readonly at: string
}

interface Described {
  readonly columns: readonly { readonly stats: unknown }[]
  readonly table: string
  readonly description: string | null
  readonly documentation: unknown
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
const tokens = (bytes: number): number => Math.round(bytes / BYTES_A_TOKEN)

async function openPlace(
  app: TestApp,
  postgres: TestPostgres,
  database: string,
  tables: readonly object[],
): Promise<Place> {
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const { host, port, superuser: username, password } = postgres
  const id = await app.datasource(owner, teamId, { host, port, username, password, database }, tables)
  return { app, owner, teamId, id, at: `/teams/${teamId}/datasources/${id}` }
}

async function run({ owner, at }: Place, path: string): Promise<number> {
  const start = performance.now()
  const { jobId } = await owner.must('POST', `${at}/${path}`, {})
  for (;;) {
    const job = await owner.must('GET', `${at}/jobs/${jobId}`)
    if (job.state === 'DONE') return performance.now() - start
    if (job.state !== 'RUNNING') throw new Error(`${path}: ${job.state} ${job.error}`)
    await wait(20)
  }
}

/** Accepts all proposals, and publishes them. */
async function acceptAll({ owner, at }: Place): Promise<void> {
  const accepted = (said: object | null) => said && { ...said, status: 'ACCEPTED' }
  const { tables } = await owner.must('GET', `${at}/documentation`)
  for (const { schema, table, summary, examples, statements, columns } of tables) {
    await owner.must('PUT', `${at}/documentation/${schema}/${table}`, {
      summary: accepted(summary),
      examples: accepted(examples),
      statements: statements.map(accepted),
      columns: Object.fromEntries(Object.entries<object>(columns).map(([name, said]) => [name, accepted(said)])),
    })
  }
  await owner.must('POST', `${at}/documentation/publish`)
}

async function sizes(name: string, place: Place): Promise<void> {
  const described = async () => await place.owner.must('GET', `${place.at}/schema`)
  const bare = sizeOf(await described())
  await run(place, 'profile')
  const profiled = sizeOf(await described())
  await run(place, 'documentation/generate')
  await acceptAll(place)
  const whole = await described()
  const all = sizeOf(whole)
  const tables: readonly Described[] = whole.tables
  const per = (bytes: number) => `${Math.round(bytes / tables.length)} bytes (${tokens(bytes / tables.length)} tokens)`
  console.log(
    `${name}: ${tables.length} tables, ${all} bytes, about ${tokens(all)} tokens (bytes / ${BYTES_A_TOKEN}); a table:`,
  )
  console.log(
    `  ${per(bare)} of names and types, ${per(profiled - bare)} of statistics, ${per(all - profiled)} of documentation`,
  )
  for (const table of tables.length > 20 ? [] : tables) {
    const stats = sizeOf(table.columns.map((column) => column.stats))
    const said = sizeOf([table.documentation])
    console.log(
      `  ${table.table}: ${sizeOf(table)} bytes, about ${tokens(sizeOf(table))} tokens; statistics ${stats}, documentation ${said}`,
    )
  }
}

const NAMES = ['name', 'city', 'note', 'kind', 'code']
const COLUMN_NAMES = [
  ...['id', 'parent_id', 'status', 'total_cents', 'created_at'],
  ...Array.from({ length: 15 }, (_, c) => `${NAMES[c % 5]}_${c}`),
]

/** Makes tables of 20 columns with `rows` rows. Each table references the previous one. */
function manyTables(count: number, rows: number): string {
  return Array.from({ length: count }, (_, n) => {
    const columns = [
      'id int PRIMARY KEY',
      `parent_id int ${n === 0 ? '' : `REFERENCES t${n - 1} (id)`}`,
      "status text NOT NULL DEFAULT 'open'",
      'total_cents int NOT NULL DEFAULT 1',
      'created_at timestamptz NOT NULL DEFAULT now()',
      ...Array.from({ length: 15 }, (_, c) => `${NAMES[c % 5]}_${c} ${c % 3 === 0 ? 'int' : 'text'}`),
    ]
    const values = Array.from({ length: 15 }, (_, c) => (c % 3 === 0 ? `i % ${c + 2}` : `'v' || i % ${c + 2}`))
    return `CREATE TABLE t${n} (${columns.join(', ')});
      INSERT INTO t${n} SELECT i, i, (ARRAY['open','paid','gone'])[i % 3 + 1], i * 100, now(), ${values.join(', ')}
      FROM generate_series(1, ${rows}) AS i;`
  }).join('\n')
}

const allOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ schema: 'public', table: `t${n}`, columns: null }))

interface Got {
  readonly ms: number
  readonly first: number
  readonly bytes: number
  readonly etag: string
  /** How long the previous change took to be answered, in milliseconds. */
  readonly change?: number
}

class Caller {
  readonly #at: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #agent = new Agent({ keepAlive: true })

  constructor(at: string, token: string) {
    this.#at = at
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  }

  describe(etag?: string): Promise<Got> {
    const headers = { ...this.#headers, ...(etag === undefined ? {} : { 'if-none-match': etag }) }
    return new Promise((resolve, reject) => {
      const start = performance.now()
      request(`${this.#at}/schema`, { headers, agent: this.#agent }, (res) => {
        const first = performance.now() - start
        const expected = etag === undefined ? 200 : 304
        if (res.statusCode !== expected) return reject(new Error(`${res.statusCode}, and not ${expected}`))
        let bytes = 0
        res.on('data', (chunk: Buffer) => (bytes += chunk.length))
        res.on('end', () => resolve({ ms: performance.now() - start, first, bytes, etag: String(res.headers.etag) }))
      })
        .on('error', reject)
        .end()
    })
  }

  // The bench trusts the shape of the answers that it reads.
  // oxlint-disable-next-line typescript/no-explicit-any
  async must(method: string, path: string, body?: object): Promise<any> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const res = await fetch(this.#at + path, { method, headers: this.#headers, ...sent })
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`)
    return res.status === 204 ? undefined : await res.json()
  }

  async profile(): Promise<void> {
    const { jobId } = await this.must('POST', '/profile', {})
    for (;;) {
      const job = await this.must('GET', `/jobs/${jobId}`)
      if (job.state === 'DONE') return
      if (job.state !== 'RUNNING' && job.state !== 'QUEUED') throw new Error(`profile: ${job.state} ${job.error}`)
      await wait(20)
    }
  }
}

const ROUNDS = 9

/** Prints the times until the first and the last byte of a description, and the time of the previous change. */
function tell(what: string, got: readonly Got[]): void {
  const span = (of: (each: Got) => number) => {
    const all = got.map(of).sort((a, b) => a - b)
    return `${(all[all.length >> 1] ?? NaN).toFixed(1)} (${(all[0] ?? NaN).toFixed(1)} to ${(all.at(-1) ?? NaN).toFixed(1)})`
  }
  const changed = got.every(({ change }) => change !== undefined)
  const after = changed ? `; the change ${span((it) => it.change ?? NaN)}` : ''
  console.log(
    `  ${what.padEnd(32)} first byte ${span((it) => it.first).padEnd(20)} last ${span((it) => it.ms).padEnd(20)} ms${after}`,
  )
}

/** Only one process may open a store, so the bundle runs on a copy. */
async function states({ app, owner, teamId, id }: Place, isProfiled: boolean): Promise<void> {
  const copy = await mkdtemp(join(tmpdir(), 'vitrine-bench-'))
  await using stack = new AsyncDisposableStack()
  stack.defer(() => rm(copy, { recursive: true, force: true }))
  await cp(app.dataDir, copy, { recursive: true })
  const started = async (work: (caller: Caller, pid: number) => Promise<unknown>) => {
    await using service = new AsyncDisposableStack()
    const { base, pid } = await startVitrine(service, copy)
    await work(new Caller(`${base}/teams/${teamId}/datasources/${id}`, await signIn(base, owner)), pid)
  }
  const rounds = async (count: number, what: string, round: (n: number) => Promise<Got>) => {
    const got: Got[] = []
    for (let n = 0; n < count; n++) got.push(await round(n))
    tell(what, got)
  }
  await started(async (caller, pid) => {
    const { bytes, etag } = await caller.describe()
    console.log(
      `${isProfiled ? 'with statistics and documentation' : 'names and types alone'}, ${(bytes / 1e6).toFixed(1)} MB, ` +
        `at a load of ${loadavg()[0]?.toFixed(1)} (goals: 15 ms from the cache, 250 ms for the first after a change or restart)`,
    )
    await rounds(ROUNDS, 'unchanged', () => caller.describe())
    await rounds(ROUNDS, 'unchanged (304)', () => caller.describe(etag))
    const after = async (change: Promise<unknown>) => {
      const start = performance.now()
      await change
      return { change: performance.now() - start, ...(await caller.describe()) }
    }
    const expose = (tables: readonly object[]) => caller.must('PUT', '/exposure', { tables })
    await rounds(ROUNDS, 'after a publication', () => after(caller.must('POST', '/documentation/publish')))
    await rounds(ROUNDS, 'after one table was hidden', (n) => after(expose(allOf(1000).toSpliced(n, 1))))
    await rounds(ROUNDS, 'and shown again', async (n) => {
      await expose(allOf(1000).toSpliced(n, 1))
      await caller.describe()
      return await after(expose(allOf(1000)))
    })
    if (isProfiled) await rounds(3, 'after a new profile', () => after(caller.profile()))
    await rounds(ROUNDS, 'after every table lost a column', (n) =>
      after(expose(allOf(1000).map((table) => ({ ...table, columns: COLUMN_NAMES.toSpliced(-1 - n, 1 + n) })))),
    )
    await expose(allOf(1000))
    if (isProfiled) await caller.profile()
    await rounds(3, 'after an introspection', () => after(caller.must('POST', '/introspect')))
    const { now, peak } = await memory(pid)
    console.log(`  resident ${now.toFixed(0)} MB, at its peak ${peak.toFixed(0)}`)
  })
  const first: Got[] = []
  for (let n = 0; n < ROUNDS; n++) await started(async (caller) => first.push(await caller.describe()))
  tell('first after a restart', first)
}

async function signIn(base: string, { email }: Person): Promise<string> {
  const signed = await fetch(`${base}/auth/sign-in/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: base },
    body: JSON.stringify({ email, password: PASSWORD }),
  })
  const cookie = signed.headers
    .getSetCookie()
    .map((part) => part.split(';')[0])
    .join('; ')
  return ((await (await fetch(`${base}/auth/token`, { headers: { cookie } })).json()) as { token: string }).token
}

const PARTS: readonly (readonly [string, (app: TestApp, postgres: TestPostgres) => Promise<void>])[] = [
  [
    'demo',
    async (app, postgres) => {
      const read = (name: string) => readFile(new URL(`../demo/${name}`, import.meta.url), 'utf8')
      const database = await postgres.createDatabase('demo', await read('seed.sql'))
      await sizes(
        'the demo shop',
        await openPlace(app, postgres, database, JSON.parse(await read('exposure.json')).tables),
      )
    },
  ],
  [
    'hundred',
    async (app, postgres) => {
      const database = await postgres.createDatabase('hundred', manyTables(100, 200))
      await sizes('100 tables of 20 columns', await openPlace(app, postgres, database, allOf(100)))
    },
  ],
  [
    'generate',
    async (app, postgres) => {
      const database = await postgres.createDatabase('generate', manyTables(500, 100))
      const place = await openPlace(app, postgres, database, allOf(500))
      await run(place, 'profile')
      const seconds = (await run(place, 'documentation/generate')) / 1000
      console.log(
        `proposals for 500 tables by rules, each with an example that ran: ${seconds.toFixed(1)} s (goal <= 10 s)`,
      )
    },
  ],
  [
    'thousand',
    async (app, postgres) => {
      const database = await postgres.createDatabase('thousand', manyTables(1000, 60))
      const place = await openPlace(app, postgres, database, allOf(1000))
      await states(place, false)
      await run(place, 'profile')
      await run(place, 'documentation/generate')
      await acceptAll(place)
      await states(place, true)
    },
  ],
]

await using postgres = await startPostgres()
await using app = await startApp()
for (const [name, part] of PARTS) if (ONLY.test(name)) await part(app, postgres)
