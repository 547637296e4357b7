// node bench/mongodb.ts: MongoDB beside the client library that sends the same aggregate unconfined, in turns, in one
// run. What counts are the ratios: first the driver alone, then the whole service over HTTP. Linux only (/proc).
import { Pool } from 'undici'
import type { Collection, Document } from 'mongodb'
import type { Confined } from '../src/drivers/confined.ts'
import type { Catalog, Connection, Driver, Limits } from '../src/drivers/driver.ts'
import { createMongoDriver } from '../src/drivers/mongodb/driver.ts'
import { cut } from '../src/exposure/cut.ts'
import { startMongod, type TestMongo } from '../test/support/mongodb.ts'
import { median, memory } from './load.ts'
import { connectTo, startVitrine } from './world.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 300)
const DOCUMENTS = 100_000
const limits: Limits = { rowCap: 50_000, maxResponseBytes: 64 << 20, timeoutMs: 30_000, maxCost: 1_000_000 }

interface Workload {
  readonly name: string
  readonly body: (turn: number) => {
    readonly collection: string
    readonly filter?: object
    readonly pipeline?: object[]
  }
  readonly rounds: number
  readonly goal: string
}

const WORKLOADS: readonly Workload[] = [
  {
    name: 'one document by an indexed path',
    body: (turn) => ({ collection: 'orders', filter: { number: (turn * 7919) % DOCUMENTS } }),
    rounds: ROUNDS,
    goal: '<= 1.3',
  },
  {
    name: '100 documents by an indexed path',
    body: (turn) => ({ collection: 'orders', filter: { customer: (turn * 31) % 1000 } }),
    rounds: ROUNDS,
    goal: '<= 1.3',
  },
  {
    name: 'sort and limit by an indexed path',
    body: () => ({ collection: 'orders', pipeline: [{ $sort: { number: -1 } }, { $limit: 20 }] }),
    rounds: ROUNDS,
    goal: '-',
  },
  {
    name: '10,000 documents',
    body: (turn) => ({
      collection: 'orders',
      filter: { number: { $gte: (turn * 97) % 1000 } },
      pipeline: [{ $limit: 10_000 }],
    }),
    rounds: Math.ceil(ROUNDS / 30),
    goal: '-',
  },
]

async function fill(server: TestMongo): Promise<Collection> {
  const orders: Collection = server.client.db('bench').collection('orders')
  for (let from = 0; from < DOCUMENTS; from += 10_000) {
    await orders.insertMany(Array.from({ length: 10_000 }, (_, i) => orderOf(from + i)))
  }
  await orders.createIndex({ number: 1 })
  await orders.createIndex({ customer: 1 })
  return orders
}

function orderOf(number: number): Document {
  return {
    number,
    customer: number % 1000,
    total: number / 4,
    note: `note number ${number} of many`,
    at: new Date(1.7e12 + number * 60_000),
    paid: number % 3 === 0,
    address: { city: `city ${number % 50}`, zip: String(number % 9999) },
    tags: ['a', `t${number % 7}`],
    secret: `never shown ${number}`,
  }
}

const EXPOSED = ['_id', 'number', 'customer', 'total', 'note', 'at', 'paid', 'address', 'tags']
const PROJECT = { $project: Object.fromEntries(EXPOSED.map((name) => [name, 1])) }

/** What a program of one's own would send: what is shown, the filter first. */
function raw({ filter, pipeline }: ReturnType<Workload['body']>): Document[] {
  return [...(filter === undefined ? [] : [{ $match: filter }]), ...(pipeline ?? []), PROJECT]
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** p50 of each contender, asked in turns. */
async function inTurns(work: Workload, contenders: Readonly<Record<string, (turn: number) => Promise<unknown>>>) {
  const took = new Map(Object.keys(contenders).map((name) => [name, [] as number[]]))
  for (let turn = 0; turn < work.rounds + 20; turn++) {
    for (const [name, ask] of Object.entries(contenders)) {
      const ms = await timed(() => ask(turn))
      if (turn >= 20 || work.rounds < 20) took.get(name)?.push(ms)
    }
  }
  return new Map([...took].map(([name, times]) => [name, median(times)]))
}

function confiner(driver: Driver, exposed: Catalog) {
  return async (body: unknown): Promise<Confined> => {
    const verdict = await driver.confine(driver.read(body), exposed, limits, new AbortController().signal)
    if (verdict.kind !== 'confined') throw new Error(JSON.stringify(verdict))
    return verdict.query
  }
}

await using server = await startMongod({ auth: true })
const orders = await fill(server)
const spec = {
  type: 'MONGODB',
  connectionMode: 'DIRECT',
  host: server.host,
  port: server.port,
  database: 'bench',
  username: 'root',
  sslMode: 'disable',
  config: {},
}
await using driver = await createMongoDriver()
const settings = driver.settings({ ...spec, secrets: { password: server.password } })
await using connection: Connection = await driver.connect(
  settings,
  { allowPrivateHosts: true },
  AbortSignal.timeout(20_000),
)
const catalog = await connection.introspect(AbortSignal.timeout(20_000))
const exposed = cut(catalog, [{ schema: 'bench', table: 'orders', columns: EXPOSED }])
const confine = confiner(driver, exposed)

await using stack = new AsyncDisposableStack()
const vitrine = await startVitrine(stack)
const tables = [{ schema: 'bench', table: 'orders', columns: EXPOSED }]
const { at, key } = await connectTo(vitrine.base, { ...spec, password: server.password }, tables)
const pool = new Pool(vitrine.base, { connections: 1 })
stack.defer(() => pool.close())
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }

for (const work of WORKLOADS) {
  const p50 = await inTurns(work, {
    raw: (turn) => orders.aggregate(raw(work.body(turn))).toArray(),
    driver: async (turn) => connection.run(await confine(work.body(turn)), limits, new AbortController().signal),
    http: async (turn) => {
      const path = `${new URL(at).pathname}/query`
      const answer = await pool.request({ method: 'POST', path, headers, body: JSON.stringify(work.body(turn)) })
      if (answer.statusCode !== 200) throw new Error(await answer.body.text())
      return answer.body.text()
    },
  })
  const [unconfined = 0, alone = 0, whole = 0] = ['raw', 'driver', 'http'].map((name) => p50.get(name) ?? 0)
  console.log(
    `${work.name}: p50 ${unconfined.toFixed(2)} ms unconfined; driver ${alone.toFixed(2)} (${(alone / unconfined).toFixed(2)} x, goal ${work.goal}); ` +
      `over HTTP ${whole.toFixed(2)} (${(whole / unconfined).toFixed(2)} x)`,
  )
}
const rss = await memory(vitrine.pid)
console.log(`resident ${rss.now.toFixed(0)} MB, at its peak ${rss.peak.toFixed(0)} MB (goal <= 250)`)
