// npm exec -- node bench/replicas.ts: compares one process with two processes on one PostgreSQL store. Measures
// requests per second, and the CPU time per request of the services, the store and the datasource. Then measures under
// load how long it takes until a change at one process applies at the other. BENCH_ROUNDS (3), BENCH_MS per turn
// (2000), BENCH_CHANGES (40) of each kind. If REDIS_URL is set, Redis counts budgets. Linux only (/proc).
import { availableParallelism } from 'node:os'
import { startPostgres } from '../test/support/postgres.ts'
import { cpuMicros } from './cpu-time.ts'
import { load, median } from './load.ts'
import { connectTo, serverOf, signIn, startVitrine, type Contender } from './world.ts'

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 3)
const ms = Number(process.env['BENCH_MS'] ?? 2000)
const changes = Number(process.env['BENCH_CHANGES'] ?? 40)
/** The number of clients of each process. */
const CLIENTS = 8
const ORDERS = `CREATE TABLE orders (id int PRIMARY KEY, note text NOT NULL);
INSERT INTO orders SELECT i, 'note ' || i FROM generate_series(1, 20000) i; ANALYZE orders;`

const line = (text: string) => void process.stdout.write(`${text}\n`)

await using stack = new AsyncDisposableStack()
const store = stack.use(await startPostgres({ settings: { fsync: 'on' } }))
const source = stack.use(await startPostgres())
const storeUrl = store.url(await store.createDatabase('store'))
const database = await source.createDatabase('orders', ORDERS)
const more = {
  DATABASE_URL: storeUrl,
  VITRINE_SECRET_KEY: Buffer.alloc(32, 5).toString('base64'),
}
const [one, other] = [
  await startVitrine(stack, undefined, undefined, more),
  await startVitrine(stack, undefined, undefined, more),
]
const { host, port, superuser: username, password } = source
const where = { type: 'POSTGRES', connectionMode: 'DIRECT', host, port, database, username, password }
const made = await connectTo(one.base, where, [{ schema: 'public', table: 'orders', columns: null }])
const headers = { authorization: `Bearer ${made.key}` }
const path = made.at.slice(one.base.length)
const contenders = [one, other].map(({ base, pid }): Contender => ({
  name: base,
  url: `${base}${path}/query`,
  headers,
  pid,
}))
const pids = await Promise.all([storeUrl, source.url(database)].map(serverOf))

let next = 0
const body = () => ({ sql: `SELECT id, note FROM orders WHERE id = ${(next++ % 20_000) + 1}` })

interface Turn {
  readonly perSecond: number
  readonly service: number
  readonly store: number
  readonly source: number
}

/** CPU times are microseconds per request. For several services, they are means. */
async function turn(processes: readonly Contender[]): Promise<Turn> {
  const before = await Promise.all(pids.map((pid) => cpuMicros(pid)))
  const samples = await Promise.all(processes.map((at) => load(at, body, CLIENTS, ms)))
  const after = await Promise.all(pids.map((pid) => cpuMicros(pid)))
  const requests = samples.reduce((sum, sample) => sum + sample.requests, 0)
  const [ofStore = 0, ofSource = 0] = after.map((micros, n) => (micros - (before[n] ?? 0)) / requests)
  return {
    perSecond: samples.reduce((sum, sample) => sum + sample.perSecond, 0),
    service: samples.reduce((sum, sample) => sum + sample.cpuMicros * sample.requests, 0) / requests,
    store: ofStore,
    source: ofSource,
  }
}

for (const at of contenders) await load(at, body, CLIENTS, ms)
const turns = new Map<number, Turn[]>([
  [1, []],
  [2, []],
])
for (let round = 0; round < rounds; round++) {
  for (const [processes, list] of turns) list.push(await turn(contenders.slice(0, processes)))
}
const middle = (list: readonly Turn[], of: keyof Turn) => median(list.map((each) => each[of]))
line(`${availableParallelism()} cores for the callers, the services, the store and the datasource together`)
line('| processes | queries a second | service, µs | store, µs | datasource, µs |')
line('| --------- | ---------------- | ----------- | --------- | -------------- |')
for (const [processes, list] of turns) {
  const [perSecond, ...costs] = (['perSecond', 'service', 'store', 'source'] as const).map((of) =>
    middle(list, of).toFixed(0),
  )
  line(`| ${processes} | ${perSecond} | ${costs.join(' | ')} |`)
}
const ratio = middle(turns.get(1) ?? [], 'service') / middle(turns.get(2) ?? [], 'service')
line(`two processes on cores of their own: ${(2 * ratio).toFixed(2)} × one, by the CPU time of a query in the service`)

/** The headers of the owner, who makes the changes at the first process. */
const admin = { authorization: `Bearer ${made.token}` }
const teamPath = path.slice(0, path.indexOf('/datasources/'))
const call = async (base: string, method: string, at: string, as: Record<string, string>, sent?: object) => {
  const res = await fetch(base + at, {
    method,
    headers: { ...as, ...(sent !== undefined && { 'content-type': 'application/json' }) },
    ...(sent !== undefined && { body: JSON.stringify(sent) }),
  })
  return { status: res.status, text: await res.text() }
}
const must = async (method: string, at: string, sent?: object) => {
  const answer = await call(one.base, method, at, admin, sent)
  if (answer.status >= 300) throw new Error(`${method} ${at}: ${answer.status} ${answer.text}`)
  return answer.text === '' ? null : JSON.parse(answer.text)
}
const exposed = (columns: readonly string[]) => ({ tables: [{ schema: 'public', table: 'orders', columns }] })
const asked = (as = headers) =>
  call(other.base, 'POST', `${path}/query`, as, { sql: 'SELECT note FROM orders WHERE id < 4' })

/** Adds a member. Returns the member's id, and headers with a key. */
async function member() {
  const as = { authorization: `Bearer ${await signIn(one.base, 'Bo', 'bo@example.test')}` }
  const json = async (method: string, at: string, sent?: object) => {
    const { status, text } = await call(one.base, method, at, as, sent)
    if (status >= 300) throw new Error(`${method} ${at}: ${status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
  const { id, email } = await json('GET', '/users/me')
  const { inviteToken } = await must('POST', `${teamPath}/members`, { email, role: 'MEMBER' })
  if (inviteToken !== undefined) await call(one.base, 'POST', `/invitations/${inviteToken}/accept`, as)
  await json('POST', `${teamPath}/open`)
  const { key } = await json('POST', '/users/me/keys', { name: 'bench', scopes: ['data:read'] })
  return { id: String(id), headers: { authorization: `Bearer ${key}` } }
}
const bo = await member()

const KINDS: Readonly<Record<string, () => Promise<number>>> = {
  async keys() {
    const { key, id } = await must('POST', '/users/me/keys', { name: 'bench', scopes: ['data:read'] })
    const as = { authorization: `Bearer ${key}` }
    await untilSeen(
      () => asked(as),
      ({ status }) => status === 200,
    )
    await must('DELETE', `/users/me/keys/${id}`)
    return untilSeen(
      () => asked(as),
      ({ status }) => status === 401,
    )
  },
  async exposure() {
    await must('PUT', `${path}/exposure`, exposed(['id']))
    const took = await untilSeen(
      () => asked(),
      ({ status }) => status === 403,
    )
    await must('PUT', `${path}/exposure`, exposed(['id', 'note']))
    await untilSeen(
      () => asked(),
      ({ status }) => status === 200,
    )
    return took
  },
  async settings() {
    await must('PATCH', teamPath, { settings: { rowCap: 2 } })
    const took = await untilSeen(
      () => asked(),
      ({ text }) => text.includes('"truncated":true'),
    )
    await must('PATCH', teamPath, { settings: { rowCap: 1000 } })
    await untilSeen(
      () => asked(),
      ({ text }) => text.includes('"truncated":false'),
    )
    return took
  },
  async access() {
    await must('PATCH', path, { accessMode: 'EXPLICIT' })
    await must('PUT', `${path}/access`, { accountIds: [bo.id] })
    await untilSeen(
      () => asked(bo.headers),
      ({ status }) => status === 200,
    )
    await must('PUT', `${path}/access`, { accountIds: [] })
    return untilSeen(
      () => asked(bo.headers),
      ({ status }) => status === 404,
    )
  },
  async members() {
    await must('PATCH', path, { accessMode: 'ROLE_BASED', minRole: 'ADMIN' })
    await must('PATCH', `${teamPath}/members/${bo.id}`, { role: 'ADMIN' })
    await untilSeen(
      () => asked(bo.headers),
      ({ status }) => status === 200,
    )
    await must('PATCH', `${teamPath}/members/${bo.id}`, { role: 'MEMBER' })
    const took = await untilSeen(
      () => asked(bo.headers),
      ({ status }) => status === 404,
    )
    await must('PATCH', path, { minRole: 'MEMBER' })
    return took
  },
}

/** Returns the milliseconds until a new request sees the change. */
async function untilSeen(
  ask: () => Promise<{ status: number; text: string }>,
  isSeen: (answer: { status: number; text: string }) => boolean,
): Promise<number> {
  const changed = performance.now()
  for (;;) {
    const began = performance.now()
    if (isSeen(await ask())) return began - changed
    if (began - changed > 10_000) throw new Error('the other process does not see the change')
  }
}

line('')
line(`milliseconds until the other process sees a change, while ${CLIENTS / 2} callers query without a pause`)
line('| change | p50 | p99 |')
line('| ------ | --- | --- |')
for (const [kind, change] of Object.entries(KINDS)) {
  let isDone = false
  const background = (async () => {
    while (!isDone) await Promise.all(contenders.map((at) => loadQuietly(at)))
  })()
  const took: number[] = []
  try {
    for (let n = 0; n < changes; n++) took.push(await change())
  } finally {
    isDone = true
    await background
  }
  const sorted = took.toSorted((a, b) => a - b)
  line(`| ${kind} | ${median(took).toFixed(0)} | ${(sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0).toFixed(0)} |`)
}

/** Ignores refusals, because the exposure changes during the load. */
async function loadQuietly(at: Contender): Promise<void> {
  const sent = {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body()),
  }
  await Promise.all(Array.from({ length: CLIENTS / 4 }, async () => (await fetch(at.url, sent)).arrayBuffer()))
}
