// node bench/description.ts: how large a description is, as a model reads it, and how long it takes to propose documentation
// and to write a description with statistics and documentation. Everything goes through the door; everything proposed is
// accepted and published. BENCH_ONLY: a pattern on the names of the parts.
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describeDatasource, openDescriptions } from '../src/datasources/describe.ts'
import { reach } from '../src/datasources/reach.ts'
import { openCatalogs } from '../src/exposure/catalogs.ts'
import { asId, type AccountId, type DatasourceId, type TeamId } from '../src/ids.ts'
import { startApp, type Person, type TestApp } from '../test/support/app.ts'
import { openRooms, sessionCall } from '../test/support/connected.ts'
import { startPostgres, type TestPostgres } from '../test/support/postgres.ts'

const ONLY = new RegExp(process.env['BENCH_ONLY'] ?? '')
/** Of English and JSON, a usual estimate; no tokenizer is asked. */
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

/** Runs a job to its end; how long it took, in milliseconds. */
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

/** Accepts whatever is proposed, and publishes it. */
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

/** Tables of 20 columns that point to the one before; `rows` in each. */
function manyTables(count: number, rows: number): string {
  const names = ['name', 'city', 'note', 'kind', 'code']
  return Array.from({ length: count }, (_, n) => {
    const columns = [
      'id int PRIMARY KEY',
      `parent_id int ${n === 0 ? '' : `REFERENCES t${n - 1} (id)`}`,
      "status text NOT NULL DEFAULT 'open'",
      'total_cents int NOT NULL DEFAULT 1',
      'created_at timestamptz NOT NULL DEFAULT now()',
      ...Array.from({ length: 15 }, (_, c) => `${names[c % 5]}_${c} ${c % 3 === 0 ? 'int' : 'text'}`),
    ]
    const values = Array.from({ length: 15 }, (_, c) => (c % 3 === 0 ? `i % ${c + 2}` : `'v' || i % ${c + 2}`))
    return `CREATE TABLE t${n} (${columns.join(', ')});
      INSERT INTO t${n} SELECT i, i, (ARRAY['open','paid','gone'])[i % 3 + 1], i * 100, now(), ${values.join(', ')}
      FROM generate_series(1, ${rows}) AS i;`
  }).join('\n')
}

const allOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ schema: 'public', table: `t${n}`, columns: null }))

/** In the room, as HTTP and its client take longer than that: a copy of the store, as one process has it at a time. */
async function timeToDescribe({ app, owner, teamId, id }: Place): Promise<void> {
  const copy = await mkdtemp(join(tmpdir(), 'vitrine-bench-'))
  await using stack = new AsyncDisposableStack()
  stack.defer(() => rm(copy, { recursive: true, force: true }))
  await cp(app.dataDir, copy, { recursive: true })
  const rooms = stack.use(await openRooms({ at: { dataDir: copy, databaseUrl: null } }))
  const call = sessionCall(asId<AccountId>(owner.id), 'describeDatasource')
  const at = await reach(rooms, call, asId<TeamId>(teamId), asId<DatasourceId>(id))
  let bytes = 0
  const describe = async (catalogs = rooms.catalogs, descriptions = openDescriptions()) => {
    const start = performance.now()
    bytes = (await describeDatasource({ ...rooms, catalogs, descriptions }, call, at, { full: false })).json.length
    return performance.now() - start
  }
  const times = async (round: () => Promise<number>) => {
    const all: number[] = []
    for (let n = 0; n < 15; n++) all.push(await round())
    const [least = 0, ...others] = all.sort((a, b) => a - b)
    return `${others[6]?.toFixed(1)} ms (least ${least.toFixed(1)})`
  }
  const kept = openDescriptions()
  await describe(rooms.catalogs, kept)
  console.log(
    `description of 1,000 tables of 20 columns, ${bytes} characters: as it stands ${await times(() => describe(rooms.catalogs, kept))}, ` +
      `written anew ${await times(() => describe())}, after a restart ${await times(() => describe(openCatalogs(rooms)))} (goal <= 50 ms)`,
  )
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
      const database = await postgres.createDatabase('thousand', manyTables(1000, 20))
      const place = await openPlace(app, postgres, database, allOf(1000))
      await run(place, 'profile')
      await run(place, 'documentation/generate')
      await acceptAll(place)
      await timeToDescribe(place)
    },
  ],
]

await using postgres = await startPostgres()
await using app = await startApp()
for (const [name, part] of PARTS) if (ONLY.test(name)) await part(app, postgres)
