// The contenders of mongodb.ts, on one real mongod with 100,000 orders: the client library alone, Vitrine's driver
// alone, FLOOR(mongodb), and Vitrine's bundle over HTTP.
import type { Document } from 'mongodb'
import type { Limits } from '../src/drivers/driver.ts'
import { createMongoDriver } from '../src/drivers/mongodb/driver.ts'
import { cut } from '../src/exposure/cut-catalog.ts'
import { startMongod, type TestMongo } from '../test/support/mongodb.ts'
import { connectTo, startFloor, startVitrine, type Contender } from './world.ts'

export const DOCUMENTS = 100_000
const EXPOSED = ['_id', 'number', 'customer', 'total', 'note', 'at', 'paid', 'address', 'tags']
const TABLES = [{ schema: 'bench', table: 'orders', columns: EXPOSED }]
const PROJECT = { $project: Object.fromEntries(EXPOSED.map((name) => [name, 1])) }
const LIMITS: Limits = { rowCap: 50_000, maxResponseBytes: 64 << 20, timeoutMs: 30_000, maxCost: 1_000_000 }

export interface Asked {
  readonly filter?: object
  readonly pipeline?: readonly object[]
  /** Limits the rows that Vitrine returns. FLOOR(mongodb) has no limit. */
  readonly limit?: number
}

export interface MongoWorld extends AsyncDisposable {
  /** Asks through the client library alone. */
  raw(asked: Asked): Promise<unknown>
  /** Asks through guard and connection, without HTTP. */
  driver(asked: Asked): Promise<unknown>
  readonly floor: Contender
  readonly vitrine: Contender
  /** The bundle of another checkout, or null if none was named. */
  readonly before: Contender | null
  /** Starts another Vitrine process on the same data, which has not answered a query yet. */
  fresh(): Promise<Contender>
}

export function ours({ filter, pipeline, limit }: Asked): object {
  return {
    collection: 'orders',
    ...(limit === undefined ? {} : { limit }),
    ...(filter === undefined ? {} : { filter }),
    ...(pipeline && { pipeline }),
  }
}

/** Returns what a hand-written program would send: the filter, the pipeline, then the exposed fields. */
export function plain({ filter, pipeline }: Asked): { collection: string; pipeline: Document[] } {
  return {
    collection: 'orders',
    pipeline: [...(filter === undefined ? [] : [{ $match: filter }]), ...(pipeline ?? []), PROJECT],
  }
}

/** `before` is another checkout, whose bundle is compared. */
export async function openMongoWorld(before?: string): Promise<MongoWorld> {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startMongod({ auth: true }))
  await fill(server)
  const driver = await driverAlone(server, stack)
  const { client, password } = server
  const uri = `mongodb://root:${password}@${server.host}:${server.port}/?directConnection=true`
  const databasePid = await pidOf(server)
  const floor = { ...(await startFloor('floor-mongodb.ts', [uri, 'bench'], stack)), databasePid }
  const vitrine = { ...(await service(server, stack)), databasePid }
  const old = before === undefined ? null : await service(server, stack, before)
  const orders = client.db('bench').collection('orders')
  const owned = stack.move()
  return {
    raw: (asked) => orders.aggregate(plain(asked).pipeline).toArray(),
    driver,
    floor,
    vitrine,
    before: old && { ...old, name: 'before', databasePid },
    fresh: () => service(server, owned),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function pidOf({ client }: TestMongo): Promise<number> {
  const { pid } = await client.db('admin').command({ serverStatus: 1 })
  return Number(pid)
}

async function fill(server: TestMongo): Promise<void> {
  const orders = server.client.db('bench').collection('orders')
  for (let from = 0; from < DOCUMENTS; from += 10_000) {
    await orders.insertMany(Array.from({ length: 10_000 }, (_, i) => orderOf(from + i)))
  }
  await orders.createIndex({ number: 1 })
  await orders.createIndex({ customer: 1 })
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

function specOf({ host, port }: TestMongo) {
  const where = { host, port, database: 'bench', username: 'root', sslMode: 'disable', config: {} }
  return { type: 'MONGODB', connectionMode: 'DIRECT', ...where }
}

async function driverAlone(server: TestMongo, stack: AsyncDisposableStack): Promise<MongoWorld['driver']> {
  const driver = stack.use(await createMongoDriver())
  const settings = driver.settings({ ...specOf(server), secrets: { password: server.password } })
  const soon = AbortSignal.timeout(20_000)
  const connection = stack.use(await driver.connect(settings, { allowPrivateHosts: true }, soon))
  const exposed = cut(await connection.introspect(soon), TABLES)
  const { signal } = new AbortController()
  return async (asked) => {
    const verdict = await driver.confine(driver.read(ours(asked)), exposed, LIMITS, signal)
    if (verdict.kind !== 'confined') throw new Error(JSON.stringify(verdict))
    return connection.run(verdict.query, LIMITS, signal)
  }
}

async function service(server: TestMongo, stack: AsyncDisposableStack, folder?: string): Promise<Contender> {
  const { base, pid } = await startVitrine(stack, undefined, folder)
  const { at, key } = await connectTo(base, { ...specOf(server), password: server.password }, TABLES)
  return { name: 'vitrine', url: `${at}/query`, headers: { authorization: `Bearer ${key}` }, pid }
}
