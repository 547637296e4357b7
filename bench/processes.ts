// npm exec -- node bench/processes.ts: compares one service with two services that share a PostgreSQL store. The two
// set-ups take turns, with the same total number of callers. BENCH_ROUNDS (7), BENCH_MS per turn (1500), BENCH_ONLY.
// Linux only (/proc). docs/decisions/0039-no-workers.md has results.
import { memory } from './cpu-time.ts'
import { load, median, type Sample } from './load.ts'
import { machine } from './report.ts'
import { WORKLOADS, type Workload } from './workloads.ts'
import { connect, openWorld, startVitrine, type Contender } from './world.ts'

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const ms = Number(process.env['BENCH_MS'] ?? 1500)
const only = new RegExp(process.env['BENCH_ONLY'] ?? '^(W1 point|W1n a|W2|W3)')

interface Total {
  readonly perSecond: number
  /** Microseconds per request, of all services together. */
  readonly cpuMicros: number
}

/** Divides the callers equally among the services, and loads all services at the same time. */
async function together(services: readonly Contender[], work: Workload): Promise<Total> {
  const clients = work.clients / services.length
  const each = services.map((at) => load(at, () => ({ sql: work.next().sql }), clients, ms))
  const samples = await Promise.all(each)
  const sum = (pick: (sample: Sample) => number): number => samples.reduce((total, sample) => total + pick(sample), 0)
  const requests = sum((sample) => sample.requests)
  return { perSecond: sum((sample) => sample.perSecond), cpuMicros: sum((at) => at.cpuMicros * at.requests) / requests }
}

await using world = await openWorld()
await using stack = new AsyncDisposableStack()
const { postgres, database } = world

/** Starts services that share one new store, with one datasource and one key. */
async function services(count: number): Promise<Contender[]> {
  const DATABASE_URL = postgres.url(await postgres.createDatabase(`store_${count}`))
  const env = { DATABASE_URL, VITRINE_SECRET_KEY: Buffer.alloc(32, 5).toString('base64') }
  const started: { base: string; pid: number }[] = []
  for (let n = 0; n < count; n++) started.push(await startVitrine(stack, undefined, undefined, env))
  const [first] = started
  if (first === undefined) return []
  const { at, key } = await connect(first.base, database)
  const headers = { authorization: `Bearer ${key}` }
  return started.map(({ base, pid }) => ({
    name: 'vitrine',
    url: `${at.replace(first.base, base)}/query`,
    headers,
    pid,
  }))
}

const [one, two] = [await services(1), await services(2)]
console.log(await machine(postgres))
for (const work of WORKLOADS.filter(({ name }) => only.test(name))) {
  const pairs: { one: Total; two: Total }[] = []
  for (let round = 0; round <= rounds; round++) {
    const pair = { one: await together(one, work), two: await together(two, work) }
    if (round > 0) pairs.push(pair)
  }
  const of = (pick: (pair: { one: Total; two: Total }) => number, digits: number): string =>
    median(pairs.map(pick)).toFixed(digits)
  console.log(
    `${work.name}, c=${work.clients}: two services give ${of((at) => at.two.perSecond / at.one.perSecond, 2)} x the answers of one; ` +
      `service CPU a request ${of((at) => at.two.cpuMicros, 0)} against ${of((at) => at.one.cpuMicros, 0)} us`,
  )
}
const peaks = await Promise.all([...one, ...two].map(async ({ pid }) => (await memory(pid)).peak.toFixed(0)))
console.log(`resident MB at the peak: one ${peaks[0]}; two ${peaks.slice(1).join(' and ')}`)
